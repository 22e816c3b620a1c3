"""Beyond the paper: an answer that is deployed stands, unless another one is clearly better."""

import numpy as np

from dynsnap import _check
from dynsnap._types import AnyArray, Labels, Scores
from dynsnap.errors import InputError
from dynsnap.predictions._align import refuse_strangers, titles_of
from dynsnap.predictions._join import places_in
from dynsnap.predictions._predictions import Predictions, changed
from dynsnap.predictions._validate import highest_class

MARGIN = 0.2  # docs/beyond.md says why
# A class that is ahead by just the margin is not ahead by more, however that is rounded: votes of
# members are often apart by just so much. It is more than single precision loses.
_TIE = 1e-6


def stand(old: Predictions, new: Predictions, *, margin: float = MARGIN) -> Predictions:
    """New predictions in which an old answer stands unless another is ahead by more than a margin.

    Two models that are equally good answer close calls by chance. The old answer has one more
    reason for it: it is deployed, and somebody relies on it. Inputs that the old predictions do
    not have, and those whose old class the new model does not know, are answered as they are.

    Args:
        old: What is deployed; labels are enough.
        new: What the retrained model says, with scores.
        margin: By how much another class must be ahead: 0 changes nothing, 1 lets no answer fall.

    Example:
        >>> old = Predictions(ids=[1, 2], classes=["cat", "dog"], labels=["dog", "dog"])
        >>> new = Predictions(ids=[1, 2, 3], classes=["cat", "dog"],
        ...                   scores=[[0.55, 0.45], [0.8, 0.2], [0.55, 0.45]])
        >>> stood = stand(old, new, margin=0.2)
        >>> stood.names_of(stood.labels).tolist()
        ['dog', 'cat', 'cat']
    """
    if new.scores is None:
        raise InputError(
            "The new predictions are labels alone: how far another answer is ahead, only scores "
            "say. Let the model write its scores."
        )
    places = places_in(new.id_column, old.id_column)
    if (places < 0).all():
        refuse_strangers(titles_of(("old", "new"), 2), [old.id_column, new.id_column])
    column = {name: position for position, name in enumerate(new.classes)}
    columns = np.array([column.get(name, -1) for name in old.classes])
    deployed = np.where(places < 0, -1, columns[old.labels[places]])
    scores = standing(new.scores, deployed, margin=margin).astype(new.scores.dtype)
    note = f"Deployed answers stand unless another class is ahead by more than {margin:g}."
    return changed(new, scores=scores, labels=highest_class(scores), notes=(*new.notes, note))


def standing(scores: Scores, deployed: Labels, *, margin: float = MARGIN) -> Scores:
    """The same on bare arrays: scores in which the deployed class is granted a margin.

    Args:
        scores: A row for each input, which sums to one; so do the rows that are given back.
        deployed: The class that each input was given last, as its column; -1 where there is none.
        margin: By how much another class must be ahead of it.

    Example:
        >>> scores = np.array([[0.5, 0.4, 0.1], [0.8, 0.1, 0.1]])
        >>> standing(scores, np.array([1, 1]), margin=0.25).argmax(axis=1)
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
