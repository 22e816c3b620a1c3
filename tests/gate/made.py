"""Comparisons made by hand, so that what a gate or a report says can be read off."""

from dynsnap.comparison import (
    Comparison,
    Estimate,
    Flow,
    GenerationResult,
    GroupResult,
    PairResult,
    TransitionCounts,
)
from dynsnap.predictions import AlignmentReport


def estimates(**values):
    """Each value with an interval of 0.05 to either side, or as given."""
    return {
        name: value if isinstance(value, Estimate) else Estimate(value, value - 0.05, value + 0.05)
        for name, value in values.items()
    }


def group(name, *, kind="class", column="truth", inputs=50, **values):
    values = values or {"lost": 0.1, "gained": 0.2, "consistency": 0.7, "correct_consistency": 0.6}
    return GroupResult(
        kind=kind,
        column=column,
        name=name,
        inputs=inputs,
        weight=float(inputs),
        metrics=estimates(**values),
        changed=0.25,
    )


def pair(old="old", new="new", *, groups=(), noise_floor=None, **values):
    values = {
        "consistency": 0.8,
        "correct_consistency": 0.7,
        "kept": 0.7,
        "gained": 0.15,
        "lost": 0.05,
        "never": 0.1,
        "churn": 0.2,
    } | values
    return PairResult(
        old=old,
        new=new,
        metrics=estimates(**values),
        transitions=TransitionCounts(kept=70, gained=15, lost=5, never=10),
        mcnemar=0.0413,
        flows=(Flow("frog", "frog", "cat", 4), Flow("cat", "frog", "cat", 3)),
        groups=groups,
        noise_floor=noise_floor,
    )


def alignment(missing=(0, 0), shared=100, names=("old", "new")):
    return AlignmentReport(
        names=names,
        rows=tuple(shared + sum(missing) - lacks for lacks in missing),
        shared=shared,
        missing=missing,
        examples=tuple(("7",) if lacks else () for lacks in missing),
        same_order=True,
    )


def comparison(*pairs, names=("old", "new"), classes=("cat", "frog"), missing=None, **more):
    fields = {
        "inputs": 100,
        "classes": classes,
        "generations": tuple(
            GenerationResult(name=name, metrics=estimates(accuracy=0.75 + 0.1 * place))
            for place, name in enumerate(names)
        ),
        "pairs": pairs or (pair(),),
        "averages": estimates(accuracy=0.8, consistency=0.8, correct_consistency=0.7),
        "agreement": estimates(ambiguity=0.2),
        "alignment": alignment(missing or (0,) * len(names), names=names),
    }
    return Comparison(**(fields | more))
