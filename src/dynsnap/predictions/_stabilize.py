"""Beyond the paper: keep the deployed label unless another class leads by a margin (hysteresis)."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from dynsnap import _check
from dynsnap._types import AnyArray, Labels, Scores
from dynsnap.errors import InputError
from dynsnap.predictions._align import refuse_disjoint_ids, titles_of
from dynsnap.predictions._ids import places_in
from dynsnap.predictions._predictions import Predictions, changed
from dynsnap.predictions._read import as_predictions
from dynsnap.predictions._schema import ColumnNames
from dynsnap.predictions._stream_file import Source
from dynsnap.predictions._text import listed
from dynsnap.predictions._validate import highest_class

MARGIN = 0.2  # docs/beyond.md states why
# A class that leads by exactly the margin does not lead by more, however that is rounded: votes of
# members often differ by exactly so much. It is more than single precision loses.
_TIE = 1e-6


def stabilize(
    old: Predictions | Source,
    new: Predictions | Source,
    *,
    margin: float = MARGIN,
    columns: ColumnNames | Mapping[str, Any] | None = None,
) -> Predictions:
    """New predictions that keep the old label unless another class leads by more than a margin.

    Two equally good models decide close calls by chance. The old label has one more argument for
    it: it is deployed, and users rely on it. Inputs that the old predictions lack, and inputs
    whose old class the new model does not know, keep their new label.

    Args:
        old: The deployed predictions; labels are enough. A frame or a file will do, see `read`.
        new: The predictions of the retrained model, with scores.
        margin: By how much another class must lead: 0 changes nothing, 1 keeps every old label.
        columns: What the columns of frames and files are called.

    Example:
        >>> old = Predictions(ids=[1, 2], classes=["cat", "dog"], labels=["dog", "dog"])
        >>> new = Predictions(ids=[1, 2, 3], classes=["cat", "dog"],
        ...                   scores=[[0.55, 0.45], [0.8, 0.2], [0.55, 0.45]])
        >>> kept = stabilize(old, new, margin=0.2)
        >>> kept.names_of(kept.labels).tolist()
        ['dog', 'cat', 'cat']
    """
    old, new = (as_predictions(each, columns) for each in (old, new))
    if new.scores is None:
        raise InputError(
            "The new predictions hold labels alone, and need scores (columns `score:<class>`): a "
            "margin between classes follows from scores."
        )
    refuse_own_decisions(new)
    _, deployed = deployed_in(old, new)
    scores = stabilize_scores(new.scores, deployed, margin=margin).astype(new.scores.dtype)
    # Of classes with the same score, a file may name another one than the first.
    labels = np.where((deployed < 0) | (margin == 0), new.labels, highest_class(scores))
    note = (
        f"Stabilized: deployed labels are kept unless another class leads by more than {margin:g}."
    )
    return relabelled(new, labels=labels, scores=scores, note=note)


def refuse_own_decisions(new: Predictions) -> None:
    """Raise where labels were not decided by the highest score, as with a threshold of one's own.

    Rules compare scores. They would replace such labels, also those of inputs that were never
    answered before.
    """
    assert new.scores is not None
    rows = np.arange(len(new.labels))
    behind = np.flatnonzero(new.scores[rows, new.labels] < new.scores.max(axis=1))
    if len(behind):
        row = behind[0]
        best = new.classes[int(new.scores[row].argmax())]
        raise InputError(
            f"{len(behind):,} of {len(rows):,} labels of the new predictions are not the class "
            f"with the highest score, such as {new.classes[new.labels[row]]!r} for the id "
            f"{new.ids[row]!s}, where {best!r} has more. A rule compares scores, and cannot keep "
            "labels that were decided otherwise. Leave the labels out, or shift the scores as "
            "your threshold does."
        )


def deployed_in(old: Predictions, new: Predictions) -> tuple[Labels, Labels]:
    """For each new input, its row among the old ones and the column of its deployed class.

    Both are -1 for an input that the old predictions lack; the column is -1 for a class that the
    new ones lack.
    """
    places = places_in(new.id_column, old.id_column)
    if (places < 0).all():
        refuse_disjoint_ids(titles_of(("old", "new"), 2), [old.id_column, new.id_column])
    column = {name: position for position, name in enumerate(new.classes)}
    if column.keys().isdisjoint(old.classes):
        raise InputError(
            f"No class of the old predictions ({listed(old.classes)}) is one of the new ones "
            f"({listed(new.classes)}), so that no label could be kept. Give both the same names."
        )
    columns = np.array([column.get(name, -1) for name in old.classes])
    return places, np.where(places < 0, -1, columns[old.labels[places]])


def relabelled(
    predictions: Predictions, *, labels: Labels, scores: Scores, note: str
) -> Predictions:
    """The same inputs with other labels and scores, and a note about it."""
    return changed(predictions, labels=labels, scores=scores, notes=(*predictions.notes, note))


def stabilize_scores(scores: Scores, deployed: Labels, *, margin: float = MARGIN) -> Scores:
    """`stabilize` on bare arrays: the score of the deployed class is raised by the margin.

    Args:
        scores: A row for each input, which sums to one; so do the rows that are given back.
        deployed: The column of each input's deployed class; -1 where there is none.
        margin: By how much another class must lead.

    Example:
        >>> scores = np.array([[0.5, 0.4, 0.1], [0.8, 0.1, 0.1]])
        >>> stabilize_scores(scores, np.array([1, 1]), margin=0.25).argmax(axis=1)
        array([1, 0])
    """
    _check.margin(margin)
    scores, deployed = _check.scores(scores=scores)[0], _columns(scores, deployed)
    raised: Scores = scores.astype(float)
    rows = np.flatnonzero(deployed >= 0)
    granted = margin + _TIE if margin else 0.0
    raised[rows, deployed[rows]] += granted
    raised[rows] /= 1 + granted
    return raised


def _columns(scores: Scores, deployed: Labels) -> AnyArray:
    inputs, classes = np.shape(scores)
    found = np.asarray(deployed)
    if found.shape != (inputs,) or found.dtype.kind not in "iu":
        raise InputError(
            f"`deployed` must be the column of one class for each of {inputs} inputs, but is "
            f"{found.dtype} of the shape {found.shape}."
        )
    if not -1 <= found.min() <= found.max() < classes:
        raise InputError(
            f"`deployed` must be columns of {classes} classes, or -1 for none, but goes from "
            f"{found.min()} to {found.max()}."
        )
    return found
