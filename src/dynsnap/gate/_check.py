"""Two generations held against rules, from whatever holds them to the verdict."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dynsnap.comparison import Comparison, Settings, default_top_k, lined_up
from dynsnap.gate._inputs import Side
from dynsnap.gate._judge import Verdict, judge, leveled
from dynsnap.gate._read import read_columns, read_rules
from dynsnap.gate._rule import (
    MIN_COUNT,
    Rule,
    Unresolved,
    as_rules,
    groups,
    top_k,
)
from dynsnap.metrics import GROUPS
from dynsnap.predictions import ColumnNames, Predictions, Source, Table
from dynsnap.predictions.tasks import Task

_SHOWN = 0.95  # the level of intervals beside a verdict, whatever rules ask for


def check(
    old: Predictions | Source,
    new: Predictions | Source | None,
    rules: str | Path | Rule | Iterable[Rule],
    *,
    columns: ColumnNames | Mapping[str, Any] | None = None,
    rename: Mapping[str, str] | None = None,
    slices: Table | str | Path | None = None,
    noise_floor: Predictions | Source | None = None,
    allow_missing: float = 0.0,
    allow_unknown_labels: float | None = None,
    allow_unlabelled: float = 0.0,
    min_count: int = MIN_COUNT,
    weights_from: Side = "old",
    slices_from: Side = "old",
    unresolved: Unresolved = "fail",
    resamples: int = 1000,
    seed: int = 0,
    task: str | Task | None = None,
    **of_task: Any,
) -> Verdict:
    """Hold a retrained model against rules, as `dynsnap gate` does.

    Args:
        old: The deployed predictions: `Predictions`, a frame, a dict of arrays, or a file.
        new: Those of the retrained model; None where `old` is a table of both models, which
            `columns` takes apart (`labels` or `model`).
        rules: A file of rules, or rules. A table `[columns]` of the file names the columns.
        columns: What the columns are called; this goes before the file of rules.
        rename: New names for some classes, in both.
        slices: A frame or a file with ids and columns that rules may be about.
        noise_floor: The predictions of OLD trained again on the same data.
        allow_missing: As for `judge`, and so are the next six.
        resamples: How many resamples the intervals come from.
        seed: Names the resamples.
        task: What answers are, where they are not classes; as for `dynsnap.compare`.
        of_task: What is set of the task, such as `threshold` or `tolerance`.

    Example:
        >>> ids = list(range(40))
        >>> old = {"id": ids, "truth": ["cat", "dog"] * 20, "label": ["cat", "dog"] * 20}
        >>> new = {"id": ids, "label": ["cat", "dog"] * 19 + ["dog", "cat"]}
        >>> verdict = check(old, new, Rule(metric="lost", at_most=0.02))
        >>> verdict.passed, verdict.outcomes[0].judged
        (False, 0.05)
    """
    chosen = dict(_given(columns))
    if isinstance(rules, str | Path):
        chosen = {**read_columns(rules), **chosen}
        rules = read_rules(rules)
    asked = as_rules(rules)
    settings = Settings(
        resamples=resamples,
        seed=seed,
        top_k=top_k(asked),
        twin=noise_floor is not None,
        metrics=GROUPS if "ranking" in groups(asked) else None,
    )
    with lined_up(
        [old] if new is None else [old, new],
        names=["old", "new"],
        columns=chosen,
        rename=rename,
        slices=slices,
        noise_floor=noise_floor,
        task=task,
        settings=of_task,
    ) as blocks:
        return judge(
            leveled(blocks, asked, settings),
            asked,
            allow_missing=allow_missing,
            allow_unknown_labels=allow_unknown_labels,
            allow_unlabelled=allow_unlabelled,
            min_count=min_count,
            weights_from=weights_from,
            slices_from=slices_from,
            unresolved=unresolved,
        )


def judge_pair(
    old: Predictions,
    new: Predictions,
    rules: Sequence[Rule],
    *,
    names: Sequence[str],
    min_count: int = MIN_COUNT,
    unresolved: Unresolved = "fail",
    resamples: int = 1000,
) -> tuple[Verdict, Comparison]:
    """The verdict on two generations, and the comparison that a report shows beside it, at 0.95.

    Args:
        old: The deployed predictions.
        new: Those of the retrained model.
        rules: What they are held against, at least one.
        names: What the two are called.
        min_count: As for `judge`, and so is `unresolved`.
        resamples: How many resamples the intervals come from.
    """
    with lined_up([old, new], names=names) as blocks:
        settings = Settings(
            resamples=resamples,
            seed=0,
            top_k=(*default_top_k(len(blocks.classes)), *top_k(rules)),
            metrics=GROUPS if "ranking" in groups(rules) else None,
        )
        levels = leveled(blocks, rules, settings)
        verdict = judge(levels, rules, min_count=min_count, unresolved=unresolved)
        return verdict, levels(_SHOWN)


def _given(columns: ColumnNames | Mapping[str, Any] | None) -> Mapping[str, Any]:
    if not isinstance(columns, ColumnNames):
        return columns or {}
    return {role: getattr(columns, role) for role in ColumnNames.roles()}
