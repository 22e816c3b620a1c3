"""Comparing many Parquet files: this process alone, and parallel over processes or Ray.

    python benchmarks/many_files.py [--rows 4000000] [--classes 10] [--files 8] [--workers 2]

Two generations of random scores, each in a folder of several files, with ids in the same order and
in another one. Results are compared bit by bit. Workers are started before the clock, Ray too. The
load is that of the last minute.
"""

import argparse
import json
import os
import tempfile
import time
from pathlib import Path

import numpy as np

from dynsnap.comparison import compare, to_json
from dynsnap.engine import ProcessesMap, RayMap
from dynsnap.predictions import Predictions, write


def made(folder: Path, ids: np.ndarray, *, classes: int, files: int, seed: int) -> None:
    folder.mkdir()
    for number, part in enumerate(np.array_split(ids, files)):
        rng = np.random.default_rng([seed, number])
        scores = rng.random((len(part), classes), np.float32)
        scores /= scores.sum(axis=1, keepdims=True)
        names = [f"class {place}" for place in range(classes)]
        truth = part % classes
        write(
            Predictions(ids=part, classes=names, scores=scores, truth=truth),
            folder / f"part-{number:04}.parquet",
        )


def timed(places, parallel=None):
    start = time.perf_counter()
    found = compare(*places, names=["old", "new"], parallel=parallel)
    return json.dumps(to_json(found)), time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--engines", nargs="+", choices=["processes", "ray"], default=["processes"])
    options = parser.parse_args()
    kinds = {"processes": ProcessesMap, "ray": RayMap}
    sizes = {"classes": options.classes, "files": options.files}
    ids = np.arange(options.rows)
    with tempfile.TemporaryDirectory() as folder:
        old, new, mixed, few = (Path(folder, name) for name in ("old", "new", "mixed", "few"))
        made(old, ids, seed=1, **sizes)
        made(new, ids, seed=2, **sizes)
        made(mixed, np.random.default_rng(0).permutation(ids), seed=2, **sizes)
        made(few, ids[: max(1, options.rows // 100)], seed=3, **sizes)
        timed((few, few))
        for name, places in (("the same order", (old, new)), ("another order", (old, mixed))):
            expected, alone = timed(places)
            print(f"{options.rows:,} rows, ids in {name}: {alone:.1f} s alone")
            for kind in options.engines:
                with kinds[kind](workers=options.workers) as parallel:
                    list(parallel(abs, range(2 * options.workers)))
                    timed((few, few), parallel)
                    found, taken = timed(places, parallel)
                assert found == expected, "the numbers differ"
                print(
                    f"  {kind}, {options.workers} workers: {taken:.1f} s, {taken / alone:.2f} of "
                    f"it (the same bits), load {os.getloadavg()[0]:.1f}"
                )


if __name__ == "__main__":
    main()
