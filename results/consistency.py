"""Consistency with the generation before and with the first, from the predictions of a long study.

    python results/consistency.py runs/digits-stream results/digits-stream/consistency.csv

`table.csv` has averages over all pairs; over a long stream, those say little.
"""

import argparse
import csv
from pathlib import Path

import numpy as np

from dynsnap import predictions


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path, help="a run folder, or published results")
    parser.add_argument("output", type=Path, help="the table, as CSV")
    settings = parser.parse_args()
    labels: dict[tuple[str, int], dict[int, np.ndarray]] = {}
    for key, place in predictions.stored(settings.run).items():
        if key.kind == "test" and key.combination == "average":
            said = predictions.read(place).labels
            labels.setdefault((key.method, key.replicate), {})[key.generation] = said
    found: dict[tuple[str, int, str], list[float]] = {}
    for (method, _), line in sorted(labels.items()):
        for number in sorted(line)[1:]:
            for name, other in (("previous", number - 1), ("first", 1)):
                same = float(np.mean(line[number] == line[other]))
                found.setdefault((method, number, name), []).append(same)
    with settings.output.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["method", "generation", "to", "value", "replicates"])
        for (method, number, name), values in found.items():
            writer.writerow([method, number, name, f"{np.mean(values):.6f}", len(values)])


if __name__ == "__main__":
    main()
