"""Pools from what torch users have: tensors, and map-style data sets."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from dynsnap._types import AnyArray
from dynsnap.data import Pool
from dynsnap.errors import InputError


class MapDataset(Protocol):
    """A map-style data set of pairs of input and label, such as torchvision's."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Any: ...


def pool_of(
    data: MapDataset | AnyArray | Any,
    labels: Any | None = None,
    *,
    classes: Sequence[str] | None = None,
    name: str = "data",
) -> Pool:
    """A pool from a map-style data set of (input, label) pairs, or from tensors or arrays.

    Every input is read once and held in memory as it comes: transforms that draw at random are
    drawn once, so leave them to the trainer's `augment`.

    Args:
        data: The data set, or the inputs where `labels` are given.
        labels: Positions in `classes`.
        classes: Class names; the data set's own `classes` or the numbers unless given.
        name: What to call it in messages.

    Example:
        >>> import torch
        >>> pool = pool_of(torch.zeros(4, 3), torch.tensor([0, 1, 1, 0]))
        >>> pool.classes, pool.inputs.shape
        (('0', '1'), (4, 3))
    """
    if classes is None:
        classes = getattr(data, "classes", None)
    if labels is None:
        data, labels = _read(data, name)
    inputs, truth = np.asarray(data), np.asarray(labels)
    if inputs.dtype.kind == "U":
        inputs = inputs.astype(object)
    if truth.ndim != 1 or truth.dtype.kind not in "iu":
        raise InputError(
            f"{name}: labels must be one whole number per input, a position in the classes, got "
            f"{truth.dtype} of the shape {truth.shape}."
        )
    if classes is None:
        classes = [str(number) for number in range(int(truth.max(initial=-1)) + 1)]
    return Pool(
        name=name,
        inputs=inputs,
        labels=truth.astype(np.int64),
        classes=tuple(str(one) for one in classes),
        ids=np.arange(len(truth)),
    )


def _read(data: Any, name: str) -> tuple[AnyArray, AnyArray]:
    inputs: list[AnyArray] = []
    labels: list[int] = []
    for index in range(len(data)):
        item = data[index]
        if not isinstance(item, tuple | list) or len(item) != 2:
            raise InputError(
                f"{name}: a data set must give pairs of input and label, but item {index} is "
                f"{type(item).__name__}."
            )
        one = np.asarray(item[0])
        if inputs and one.shape != inputs[0].shape:
            raise InputError(
                f"{name}: inputs must be of one shape, but item {index} has {one.shape} and the "
                f"first {inputs[0].shape}."
            )
        inputs.append(one)
        labels.append(int(item[1]))
    if not inputs:
        raise InputError(f"{name}: the data set is empty.")
    return np.stack(inputs), np.array(labels)
