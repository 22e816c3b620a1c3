"""The whole metric set of two generations, beside numpy, scikit-learn and torchmetrics.

    python benchmarks/metrics.py --rows 10000000

CPU time of one process, compilation not counted, as a Markdown table. dynsnap does everything that
`compare` does: it checks that the ids are the same, and gives every metric with an interval, per
class as well: consistency, then also the metrics that scikit-learn has. numpy gives the values
alone, written as one would. scikit-learn and torchmetrics
give those of the metrics that they have. A peer that is not installed is skipped by name.
"""

import argparse
import importlib.metadata
import platform
import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import numpy.typing as npt

import dynsnap

Values = dict[str, float]
Scores = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int32]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=3, help="of dynsnap; the best counts")
    parser.add_argument("--ranking", action="store_true", help="measure AUROC as well")
    settings = parser.parse_args()

    old, new, truth = generations(settings.rows, settings.classes)
    labels = old.argmax(axis=1).astype(np.int32), new.argmax(axis=1).astype(np.int32)
    print(f"{settings.rows:,} inputs, {settings.classes} classes, float32. {machine()}\n")
    print("| | CPU time | beside dynsnap | metrics | largest difference |")
    print("|---|---|---|---|---|")
    ours, values = measured_by_dynsnap(old, new, truth, settings.repeats)
    print(f"| dynsnap, with intervals and per class | {ours:.2f} s | 1.0 | {len(values)} | |")
    for more in (("classification",), ("classification", "ranking")):
        if "ranking" in more and not settings.ranking:
            continue
        taken, found = measured_by_dynsnap(old, new, truth, settings.repeats, more)
        row = (f"dynsnap, and {' and '.join(more)}", f"{taken:.2f} s", f"{taken / ours:.1f}")
        print(f"| {' | '.join(row)} | {len(found)} | |", flush=True)
    for name, compute in peers():
        try:
            seconds, found = cpu_time(partial(compute, old, new, *labels, truth))
        except ImportError as error:
            print(f"| {name} | skipped: {error.name} is not installed | | | |")
            continue
        apart = max(abs(found[metric] - values[metric]) for metric in found)
        row = (name, f"{seconds:.2f} s", f"{seconds / ours:.1f}", str(len(found)), f"{apart:.0e}")
        print(f"| {' | '.join(row)} |", flush=True)


def generations(rows: int, classes: int) -> tuple[Scores, Scores, Labels]:
    """Two models that are right about half of the time and agree on most inputs."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, classes, rows).astype(np.int32)
    logits = 3 * rng.standard_normal((rows, classes), np.float32)
    logits[np.arange(rows), truth] += 4

    def softmax(logits: Scores) -> Scores:
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        return odds / odds.sum(axis=1, keepdims=True)

    return softmax(logits), softmax(logits + rng.standard_normal(logits.shape, np.float32)), truth


def cpu_time(work: Callable[[], Values]) -> tuple[float, Values]:
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def measured_by_dynsnap(
    old: Scores, new: Scores, truth: Labels, repeats: int, metrics: tuple[str, ...] = ()
) -> tuple[float, Values]:
    names = [f"class {place}" for place in range(old.shape[1])]
    before, now = (
        dynsnap.Predictions(ids=np.arange(len(rows)), classes=names, scores=rows, truth=truth)
        for rows in (old, new)
    )

    def work() -> Values:
        found = dynsnap.compare(before, now, metrics=metrics)
        values = {name: each.value for name, each in found.pairs[0].metrics.items()}
        for generation, when in zip(found.generations, ("old", "new"), strict=True):
            values |= {f"{name}, {when}": each.value for name, each in generation.metrics.items()}
        return values

    work()  # compiles, or loads what was compiled before
    runs = [cpu_time(work) for _ in range(repeats)]
    return min(seconds for seconds, _ in runs), runs[0][1]


Peer = Callable[[Scores, Scores, Labels, Labels, Labels], Values]


def peers() -> Iterator[tuple[str, Peer]]:
    yield "numpy, straightforward", with_numpy
    yield "scikit-learn, what it has", with_sklearn
    yield "torchmetrics, what it has", with_torchmetrics


def with_numpy(old: Scores, new: Scores, a: Labels, b: Labels, truth: Labels) -> Values:
    rows, classes = old.shape
    before, now = a == truth, b == truth
    kept, gained = (before & now).mean(), (~before & now).mean()
    lost, never = (before & ~now).mean(), (~before & ~now).mean()
    agreed = (a == b).mean()
    used = [np.bincount(each, minlength=classes) / rows for each in (a, b)]
    chance = (used[0] * used[1]).sum()
    found = {
        "consistency": agreed,
        "correct_consistency": kept,
        "kept": kept,
        "gained": gained,
        "lost": lost,
        "never": never,
        "composite": kept + gained - lost,
        "churn": 1 - agreed,
        "neutral_churn": ((a != b) & ~before & ~now).mean(),
        "relative_negative_flip_rate": lost / (before.mean() * (1 - now.mean())),
        "backward_trust_compatibility": kept / before.mean(),
        "backward_error_compatibility": never / (1 - now.mean()),
        "win_loss_ratio": gained / lost,
        "cohen_kappa": (agreed - chance) / (1 - chance),
    }
    p, q = old.astype(np.float64), new.astype(np.float64)
    centred = [each - each.mean(axis=1, keepdims=True) for each in (p, q)]
    norms = [np.linalg.norm(each, axis=1) for each in (*centred, p, q)]
    found["pearson"] = ((centred[0] * centred[1]).sum(axis=1) / (norms[0] * norms[1])).mean()
    found["cosine"] = ((p * q).sum(axis=1) / (norms[2] * norms[3])).mean()
    distance = np.linalg.norm(p - q, axis=1)
    found["minkowski"] = distance.mean()
    found["prediction_difference"] = np.abs(p - q).sum(axis=1).mean() / 2
    middle = (p + q) / 2
    parts = [
        np.where(each > 0, each * np.log2(np.where(each > 0, each / middle, 1)), 0)
        for each in (p, q)
    ]
    found["jensen_shannon"] = (parts[0] + parts[1]).sum(axis=1).mean() / 2
    top = [np.argpartition(-each, 2, axis=1)[:, :2] for each in (p, q)]
    found["top_2_consistency"] = (top[0][:, :, None] == top[1][:, None, :]).any(axis=(1, 2)).mean()
    target = np.zeros_like(p)
    target[np.arange(rows), truth] = 1
    away = [np.linalg.norm(each - target, axis=1) for each in (p, q)]
    found["correct_distance"] = (distance + away[0] + away[1]).mean()
    for when, each, right, far, highest in zip(
        ("old", "new"), (p, q), (before, now), away, top, strict=True
    ):
        sure = each.max(axis=1)
        place = np.clip(np.ceil(sure * 15).astype(int) - 1, 0, 14)
        gaps = np.bincount(place, weights=right - sure, minlength=15)
        found[f"accuracy, {when}"] = right.mean()
        found[f"top_2_accuracy, {when}"] = (highest == truth[:, None]).any(axis=1).mean()
        found[f"correctness, {when}"] = (1 - far / np.sqrt(2)).mean()
        found[f"expected_calibration_error, {when}"] = np.abs(gaps).sum() / rows
    return {name: float(value) for name, value in found.items()}


def with_sklearn(old: Scores, new: Scores, a: Labels, b: Labels, truth: Labels) -> Values:
    from sklearn import metrics

    classes = np.arange(old.shape[1])
    found = {
        "consistency": metrics.accuracy_score(a, b),
        "cohen_kappa": metrics.cohen_kappa_score(a, b),
    }
    for when, scores, labels in (("old", old, a), ("new", new, b)):
        found[f"accuracy, {when}"] = metrics.accuracy_score(truth, labels)
        found[f"top_2_accuracy, {when}"] = metrics.top_k_accuracy_score(
            truth, scores, k=2, labels=classes
        )
    return {name: float(value) for name, value in found.items()}


def with_torchmetrics(old: Scores, new: Scores, a: Labels, b: Labels, truth: Labels) -> Values:
    import torch
    from torchmetrics import functional
    from torchmetrics.functional.regression import jensen_shannon_divergence

    torch.set_num_threads(1)
    p, q = torch.from_numpy(old), torch.from_numpy(new)
    before, now, true = (torch.from_numpy(each.astype(np.int64)) for each in (a, b, truth))
    many = {"task": "multiclass", "num_classes": old.shape[1]}
    found = {
        "consistency": functional.accuracy(before, now, average="micro", **many),
        "cohen_kappa": functional.cohen_kappa(before, now, **many),
        "cosine": functional.cosine_similarity(p, q, reduction="mean"),
        "jensen_shannon": jensen_shannon_divergence(p, q) / np.log(2),
    }
    for when, scores, labels in (("old", p, before), ("new", q, now)):
        found[f"accuracy, {when}"] = functional.accuracy(labels, true, average="micro", **many)
        found[f"top_2_accuracy, {when}"] = functional.accuracy(
            scores, true, top_k=2, average="micro", **many
        )
        found[f"expected_calibration_error, {when}"] = functional.calibration_error(
            scores, true, n_bins=15, **many
        )
    return {name: float(value) for name, value in found.items()}


def machine() -> str:
    names = ("numpy", "numba", "scikit-learn", "torch", "torchmetrics")
    versions = []
    for name in names:
        try:
            versions.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return f"Python {platform.python_version()}, {', '.join(versions)}."


if __name__ == "__main__":
    main()
