"""Does it help to pull refreshed members towards the deployed ensemble's right answers?

    python results/pull.py results/digits-rolling/pull.csv

A rolling ensemble of digits that trains on its carried members, with a share `pull` of the loss
that asks them to say what the deployed ensemble said, wherever that was right: the paper names
consistency in training as future work. Whatever it finds, the script keeps the claim honest.
"""

import argparse
import csv
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from dynsnap import study
from dynsnap.data import Stream
from dynsnap.ensemble import (
    Rolling,
    Round,
    RoundSpec,
    SoftTargets,
    best,
    combine,
    grow_rounds,
    members,
)
from dynsnap.study import StudyPlan
from dynsnap.train import TorchTrainer
from dynsnap.train.models import by_name

Scores = npt.NDArray[np.floating]
PULLS = (0.0, 0.5, 0.9)
SETS = ("test", "late", "untouched")


@dataclass(frozen=True, eq=False)
class Learner:
    """One member: its bytes, what it says, and what it has seen."""

    weights: bytes
    said: Mapping[str, Scores]
    known: npt.NDArray[np.bool_]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", type=Path, help="the table, as CSV")
    parser.add_argument("--refresh", type=int, default=2, help="epochs")
    settings = parser.parse_args()
    torch.set_num_threads(1)
    plan = study.read_study(Path(study.__file__).parents[1] / "studies" / "digits-rolling.toml")
    stream, _ = study.open_stream(plan.data)
    options = {name: value for name, value in plan.model.items() if name != "name"}
    stock: dict[str, bytes] = {}
    trainer = TorchTrainer(
        stream,
        model=by_name(plan.model["name"], **options),
        parents=stock.__getitem__,
        **plan.training,
    )
    rows = []
    for pull in PULLS:
        found = []
        for replicate in range(plan.replicates):
            line = generations(plan, stream, trainer, stock, replicate, pull, settings.refresh)
            found.append(measured(list(line), stream))
        for metric in found[0]:
            values = [one[metric] for one in found]
            rows.append([pull, metric, np.mean(values), np.std(values, ddof=1), len(values)])
            print(f"pull {pull:g}  {metric:20} {np.mean(values):.4f}", flush=True)
    with settings.output.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["pull", "metric", "value", "spread", "replicates"])
        writer.writerows([pull, name, f"{a:.6f}", f"{b:.6f}", n] for pull, name, a, b, n in rows)


def generations(
    plan: StudyPlan,
    stream: Stream,
    trainer: TorchTrainer,
    stock: dict[str, bytes],
    replicate: int,
    pull: float,
    refresh: int,
) -> Iterator[Sequence[Learner]]:
    """The ensembles of one replicate, generation after generation."""
    method = plan.method("rolling")
    assert method.rolling is not None and method.plan.size != "auto"
    count = method.rolling.carried(method.plan.size)
    recipe = replace(method.rolling, finetune_epochs=refresh).finetuning
    assert recipe is not None
    ensemble: list[Learner] = []
    for generation in range(1, len(stream.generations) + 1):
        wanted = replace(method.plan, size=method.plan.size - (count if ensemble else 0))
        rounds = grow_rounds(
            wanted,
            trainer,
            recipe=method.recipe,
            generation=generation,
            replicate=replicate,
            seed=plan.seed,
        )
        fresh = [learner(rounds[at], j, stream) for at, j in members(wanted, rounds).origin]
        carried = []
        if ensemble:
            specs = []
            kept = judged(ensemble, stream, generation, count)
            for place, one in enumerate(kept):
                parent = f"{pull}-{replicate}-{generation}-{place}"
                stock[parent] = one.weights
                specs.append(
                    RoundSpec(
                        recipe=recipe,
                        generation=generation,
                        replicate=replicate,
                        seed=plan.seed,
                        parent=parent,
                    )
                )
            student = trainer
            if pull:
                student = trainer.taught(lesson(ensemble, trainer, stream, pull))
            done = {one.spec: one for one in student.train(specs)}
            # A few epochs on top are too few to learn a class.
            carried = [
                replace(learner(done[spec], 0, stream), known=old.known)
                for spec, old in zip(specs, kept, strict=True)
            ]
        ensemble = carried + fresh
        yield ensemble


def learner(done: Round, place: int, stream: Stream) -> Learner:
    """One snapshot of a round."""
    said = {name: done.scores[name][place] for name in SETS}
    return Learner(done.weights[place], said, stream.learned(done.spec.generation))


def together(ensemble: Sequence[Learner], scores: Sequence[Scores]) -> Scores:
    """What the members say together, each about what it knows."""
    known = np.stack([one.known for one in ensemble])
    return combine(np.stack(scores), how="average", known=known)


def judged(
    ensemble: Sequence[Learner], stream: Stream, generation: int, count: int
) -> list[Learner]:
    """The best members, by rows that none was ever trained on."""
    rows = stream.selection_holdout[generation - 1]
    truth = stream.evaluation["untouched"].labels[rows]
    right = [np.mean(one.said["untouched"][rows].argmax(axis=1) == truth) for one in ensemble]
    kept = best(np.array(right), np.zeros(len(right)), count=count, rolling=Rolling())
    return [ensemble[place] for place in kept]


def lesson(
    ensemble: Sequence[Learner], trainer: TorchTrainer, stream: Stream, pull: float
) -> SoftTargets:
    """What the deployed ensemble says where it is right, and the truth elsewhere."""
    pool = stream.pool
    scores = trainer.score([one.weights for one in ensemble], pool.inputs)
    said = together(ensemble, list(scores))
    wrong = said.argmax(axis=1) != pool.labels
    said[wrong] = np.eye(len(pool.classes))[pool.labels[wrong]]
    return SoftTargets(scores=said, weight=pull)


def measured(line: Sequence[Sequence[Learner]], stream: Stream) -> dict[str, float]:
    """Accuracy of each generation, consistency over all pairs, and the new class."""
    truth = stream.evaluation["test"].labels
    labels = [together(one, [m.said["test"] for m in one]).argmax(axis=1) for one in line]
    late = together(line[-1], [m.said["late"] for m in line[-1]]).argmax(axis=1)
    pairs = list(itertools.combinations(labels, 2))
    same = [old == new for old, new in pairs]
    right = [(old == truth) & (new == truth) for old, new in pairs]
    return {
        **{f"accuracy_{n}": float(np.mean(said == truth)) for n, said in enumerate(labels, 1)},
        "consistency": float(np.mean(same)),
        "correct_consistency": float(np.mean(right)),
        "late_accuracy": float(np.mean(late == stream.evaluation["late"].labels)),
    }


if __name__ == "__main__":
    main()
