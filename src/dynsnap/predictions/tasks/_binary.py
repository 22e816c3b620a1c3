"""Two classes, distinguished by one score and a threshold."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from dynsnap.errors import InputError, PlanError
from dynsnap.predictions._labels import encoded, positions_in
from dynsnap.predictions._schema import ColumnLayout, ColumnNames
from dynsnap.predictions._text import check_name, listed, positions_of, shown
from dynsnap.predictions._vocabulary import Batches, Vocabulary, names_in
from dynsnap.predictions.tasks._task import ReadRows, Task, laid_out, numbers

# What the positive class is called where it is not given.
_POSITIVE = ("1", "true", "yes", "y", "positive", "pos", "t")
_NAMES = ("negative", "positive")


@dataclass(frozen=True, kw_only=True)
class Binary(Task):
    """The score of the positive class, from 0 to 1, and the threshold from which it is the label.

    It is read into labels and scores of two classes, which are compared as any classes are.

    Attributes:
        threshold: A score of at least so much gives the positive class.
        positive: The positive class, as the truth calls it; None where its name shows it ("1",
            "true", "yes", "positive").

    Raises:
        PlanError: The threshold is outside [0, 1].

    Example:
        >>> Binary(threshold=0.3).meaning
        'The label is the positive class where its score is at least 0.3.'
    """

    name: ClassVar[str] = "binary"
    role: ClassVar[str] = "score"

    threshold: float = 0.5
    positive: str | None = None

    def __post_init__(self) -> None:
        check_threshold(self.threshold)
        if self.positive is not None:
            check_name(self.positive, kind="class name")

    def interpret(self, schema: pa.Schema, columns: ColumnNames) -> ColumnLayout:
        """The column of scores; labels beside it do not count, for the threshold decides."""
        return laid_out(
            schema, columns, self, (columns.score,), role="score", ignored=(columns.label,)
        )

    def vocabulary(self, source: Batches, layout: ColumnLayout) -> Vocabulary:
        """The two classes, the negative one first."""
        true, missing, _ = names_in(source, layout.truth)
        classes = self._classes(true, layout.truth or "truth")
        return Vocabulary(
            classes=classes,
            made_up=tuple(name for name in classes if name not in true),
            scored=2,
            slices={},
            has_truth=bool(true),
            truth_gaps=bool(true) and missing > 0,
            notes=(self.meaning,),
        )

    def read(
        self, batch: pa.RecordBatch, layout: ColumnLayout, vocabulary: Vocabulary, before: int
    ) -> ReadRows:
        """Scores of both classes, and the label that the threshold gives."""
        assert layout.label is not None
        column = batch.column(layout.label)
        score = numbers(column, name=layout.label, task=self, before=before)
        outside = (score < 0) | (score > 1)
        if outside.any():
            row = int(np.argmax(outside))
            raise InputError(
                f"The column {shown(layout.label)} must hold scores from 0 to 1, but row "
                f"{before + row} (counted from 0) has {score[row]:.4g}. If they are logits, apply "
                "a sigmoid first; if they are predictions of a number, give --task regression."
            )
        truth = None
        if vocabulary.has_truth and layout.truth is not None:
            names, codes = encoded(batch.column(layout.truth))
            truth = positions_in(names, codes, positions_of(vocabulary.classes), what="truth")
        return ReadRows(
            values=None,
            truth=truth,
            labels=(score >= self.threshold).astype(np.int32),
            scores=np.stack([1 - score, score], axis=1),
        )

    def _classes(self, true: set[str], column: str) -> tuple[str, str]:
        if len(true) > 2:
            raise InputError(
                f"The task binary has two classes, but the column {shown(column)} has "
                f"{len(true):,}: {listed(sorted(true), most=3)}. Merge some, or write a column "
                "score:<class> for each class, and leave --task out."
            )
        if self.positive is not None:
            others = sorted(true - {self.positive})
            if len(others) == 2:
                raise InputError(
                    f"The positive class {shown(self.positive)} is none of the classes in "
                    f"{shown(column)}: {listed(others)}. Name one of these with --positive."
                )
            return (others[0] if others else f"not {self.positive}", self.positive)
        if not true:
            return _NAMES
        known = [name for name in true if name.lower() in _POSITIVE]
        if len(known) == 1:
            rest = sorted(true - set(known))
            return (rest[0] if rest else _opposite(known[0]), known[0])
        if len(true) == 1 and (name := next(iter(true))).lower() in _OPPOSITES:
            return (name, _OPPOSITES[name.lower()])
        raise InputError(
            f"Which class of {listed(sorted(true))} is the score of? Name it with `--positive "
            f"CLASS` (in Python: `positive={sorted(true)[0]!r}`)."
        )

    @property
    def meaning(self) -> str:
        """What agrees and what is right."""
        return f"The label is the positive class where its score is at least {self.threshold:g}."


_OPPOSITES = {"0": "1", "false": "true", "no": "yes", "negative": "positive", "f": "t", "n": "y"}


def _opposite(name: str) -> str:
    by = {positive: negative for negative, positive in _OPPOSITES.items()}
    return by.get(name.lower(), f"not {name}")


def named_alike(
    classes: Sequence[tuple[str, ...]], made_up: Sequence[Collection[str]]
) -> list[tuple[str, ...]]:
    """The two classes of each generation, by the names that the truth of any has for them.

    Args:
        classes: Of each generation, the negative and the positive class.
        made_up: Those of them that its own truth does not name.

    Example:
        >>> named_alike([("ham", "spam"), ("negative", "positive")], [(), ("negative", "positive")])
        [('ham', 'spam'), ('ham', 'spam')]
    """
    known = [
        next(
            (
                each[side]
                for each, own in zip(classes, made_up, strict=True)
                if each[side] not in own
            ),
            classes[0][side],
        )
        for side in (0, 1)
    ]
    return [
        tuple(known[side] if each[side] in own else each[side] for side in (0, 1))
        for each, own in zip(classes, made_up, strict=True)
    ]


def check_threshold(threshold: float) -> None:
    """Raise unless a threshold lies in [0, 1]."""
    if not (isinstance(threshold, int | float) and 0 <= threshold <= 1) or math.isnan(threshold):
        raise PlanError(
            f"`threshold` must lie between 0 and 1, as scores do, got {threshold}. Give each "
            "generation the one it is served with (--threshold)."
        )
