"""Accuracy and losses of a study's methods on its selection holdout, by which settings are chosen.

    python results/heldout.py runs/cifar10-single --data cifar-10-batches-py
    python results/heldout.py runs/digits-single --csv results/digits-single/heldout.csv

No network was trained on these rows, and they are not test rows. Only the rounds of the run folder
are read; nothing is trained.
"""

import argparse
import csv
import dataclasses
from pathlib import Path

import numpy as np

from dynsnap.cli._stored import RoundsByName
from dynsnap.data import SELECTION_SET
from dynsnap.ensemble import NoTrainer
from dynsnap.study import (
    EnsemblePredictor,
    RoundManager,
    open_stream,
    read_study,
    series_of,
    trained_as,
)
from dynsnap.study._ensembles import distinct


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path, help="a run folder")
    parser.add_argument("--data", type=Path, help="the data, as `dynsnap run --data` has it")
    parser.add_argument("--csv", type=Path, help="also write the values of every replicate")
    settings = parser.parse_args()
    plan = read_study(settings.run / "study.toml", stored=True)
    if settings.data is not None:
        plan = dataclasses.replace(
            plan, data=dataclasses.replace(plan.data, path=settings.data.resolve())
        )
    stream, _ = open_stream(plan.data)
    held, arrived = stream.evaluation[SELECTION_SET], stream.selection_holdout
    series = [one for one in series_of(plan, len(arrived)) if one.kind == "method"]
    store = RoundsByName(settings.run, stream)
    manager = RoundManager(NoTrainer(), store, None, stream, trained_as=trained_as(plan))
    ensembles, _ = manager.gather(distinct(series))
    predictor = EnsemblePredictor(ensembles, stream)
    seen = arrived[0]
    new = np.setdiff1d(arrived[-1], seen)
    new = new[~np.isin(held.labels[new], held.labels[seen])]
    found: dict[str, list[list[float]]] = {}
    costs: dict[str, float] = {}
    for one in series:
        if not all(each in ensembles for each in one.ensembles):
            continue
        labels = [
            next(predictor.predictions(each, {SELECTION_SET: held}, ["average"]))[2].labels
            for each in one.ensembles
        ]
        prices = [ensembles[each].price(plan.epochs).kappa for each in one.ensembles[1:]]
        costs[one.name] = float(np.mean(prices))
        right = [said == held.labels for said in labels]
        pairs = [(a, b) for b in range(len(labels)) for a in range(b)]
        lost = [(right[a] & ~right[a + 1])[seen].mean() for a in range(len(right) - 1)]
        found.setdefault(one.name, []).append(
            [
                *(float(each[seen].mean()) for each in right),
                float(np.mean([(labels[a] == labels[b])[seen].mean() for a, b in pairs])),
                float(np.mean([(right[a] & right[b])[seen].mean() for a, b in pairs])),
                float(np.mean(lost)),
                float(right[-1][new].mean()) if len(new) else float("nan"),
            ]
        )
    heads = [f"ACC {number}" for number in range(1, len(arrived) + 1)]
    heads += ["CON", "ACC-CON", "lost", "new class", "replicates"]
    if settings.csv is not None:
        with settings.csv.open("w", newline="", encoding="utf-8") as file:
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow(["method", "retrain_cost", "replicate", *heads[:-1], "rows", "new rows"])
            for name, lines in found.items():
                for replicate, line in enumerate(lines):
                    values = [f"{value:.6f}" for value in line]
                    end = [len(seen), len(new)]
                    rows.writerow([name, f"{costs[name]:g}", replicate, *values, *end])
    print("| method |", " | ".join(heads), "|")
    print("|---|" + "---|" * len(heads))
    for name, lines in found.items():
        cells = [f"{100 * value:.1f}" for value in np.mean(lines, axis=0)]
        print(f"| {name} |", " | ".join([*cells, str(len(lines))]), "|")
    print(f"{len(seen)} rows, and {len(new)} of new classes; lost: per retrain.")


if __name__ == "__main__":
    main()
