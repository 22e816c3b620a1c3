"""Inputs that modules take as they are: a dict of arrays, or the items of a torch `Dataset`.

Nothing here imports torch: a `Dataset` is what has a length and gives items by position.
"""

import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np

from dynsnap._types import AnyArray, Positions
from dynsnap.errors import InputError, one_line

_LABELS = ("labels", "label")  # what tokenised data sets call them
Collate: TypeAlias = Callable[[list[Any]], Any]


class NamedArrays:
    """Inputs of several named parts, such as tokens and their mask: an array each, row by row.

    Example:
        >>> made = NamedArrays({"input_ids": np.zeros((4, 3)), "attention_mask": np.ones((4, 3))})
        >>> len(made), len(made[np.array([0, 2])])
        (4, 2)
    """

    def __init__(self, arrays: Mapping[str, Any]) -> None:
        self.arrays = {str(name): _array(name, values) for name, values in arrays.items()}
        if not self.arrays:
            raise InputError("`X` is a dict without arrays.")
        for name, values in self.arrays.items():
            if values.dtype.kind not in "biuf" or not values.ndim:
                raise InputError(
                    f"`X[{name!r}]` must be an array of numbers with a row for each input, got "
                    f"{values.dtype} of the shape {values.shape}. Pad tokens to one length."
                )
            if values.dtype.kind == "f" and not np.isfinite(values).all():
                raise InputError(f"`X[{name!r}]` contains NaN or infinity, which no module takes.")
        lengths = {name: len(values) for name, values in self.arrays.items()}
        if len(set(lengths.values())) > 1:
            raise InputError(f"The arrays of `X` must be of one length, but have {lengths}.")

    def __len__(self) -> int:
        return len(next(iter(self.arrays.values())))

    def __getitem__(self, rows: Any) -> "NamedArrays":
        return NamedArrays({name: values[rows] for name, values in self.arrays.items()})

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows alone: each part has a shape of its own."""
        return (len(self),)

    @property
    def type(self) -> tuple[Any, ...]:
        """The names of the parts and the shapes of their rows."""
        return tuple((name, values.shape[1:]) for name, values in sorted(self.arrays.items()))

    def join(self, other: Any) -> "NamedArrays":
        """These rows, then those of the other."""
        if not isinstance(other, NamedArrays) or other.type != self.type:
            found = other.type if isinstance(other, NamedArrays) else type(other).__name__
            raise InputError(
                f"`X` must have the same parts in all generations, {self.type}, and has {found}."
            )
        return NamedArrays(
            {n: np.concatenate([values, other.arrays[n]]) for n, values in self.arrays.items()}
        )

    def contents(self) -> Iterator[bytes]:
        """What each row holds."""
        parts = [self.arrays[name] for name in sorted(self.arrays)]
        for rows in zip(*parts, strict=True):
            yield b"".join(_number_bytes(row) for row in rows)


class DatasetRows:
    """Rows of one or more data sets, read anew whenever they are needed.

    A data set may draw at random, to augment what it gives: every epoch of a training reads its
    rows again. If it has an attribute `plain`, a data set of the same rows without that,
    validation and prediction read `plain`.

    Args:
        sources: The data sets, one after another.
        collate: Makes a batch of items.
        rows: Which rows, counted through all of them; None for all.
    """

    def __init__(
        self,
        sources: Sequence[Any],
        *,
        collate: Collate | None = None,
        rows: Positions | None = None,
    ) -> None:
        self._sources = tuple(sources)
        self.collate = collate
        self._ends = np.cumsum([length_of(source) for source in self._sources])
        total = int(self._ends[-1])
        self.rows = np.arange(total) if rows is None else rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows: Any) -> "DatasetRows":
        return DatasetRows(self._sources, collate=self.collate, rows=self.rows[rows])

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows alone: what an item is, the data set knows."""
        return (len(self),)

    @property
    def type(self) -> str:
        """The kind of inputs."""
        return "dataset"

    def items(self, rows: Sequence[int], *, plain: bool) -> list[Any]:
        """The items of these rows, as training or as validation reads them."""
        return [self._item(int(self.rows[row]), plain=plain) for row in rows]

    def _item(self, row: int, *, plain: bool) -> Any:
        place = int(np.searchsorted(self._ends, row, side="right"))
        source = self._sources[place]
        start = int(self._ends[place - 1]) if place else 0
        try:
            return (getattr(source, "plain", source) if plain else source)[row - start]
        except Exception as error:  # it is the caller's code
            raise InputError(
                f"Item {row - start} of the data set {type(source).__name__} cannot be read: "
                f"{one_line(str(error)).rstrip('.') or type(error).__name__}."
            ) from error

    def join(self, other: Any) -> "DatasetRows":
        """These rows, then those of the other."""
        if not isinstance(other, DatasetRows):
            raise InputError(
                f"`X` must be a Dataset in all generations, but is a {type(other).__name__} now."
            )
        sources, total = (*self._sources, *other._sources), int(self._ends[-1])
        rows = np.concatenate([self.rows, other.rows + total])
        return DatasetRows(sources, collate=self.collate, rows=rows)

    def contents(self) -> Iterator[bytes]:
        """What each row holds, without what is drawn at random."""
        for row in range(len(self)):
            with drawing_from(0):
                (item,) = self.items([row], plain=True)
            yield _item_bytes(without_label(item))


def length_of(source: Any) -> int:
    """How many rows a data set has.

    Raises:
        InputError: It has no length, no rows, or none by position.
    """
    name = type(source).__name__
    data = sys.modules.get("torch.utils.data")
    try:
        count = len(source)
    except (TypeError, NotImplementedError):
        count = None
    if count is None or (data is not None and isinstance(source, data.IterableDataset)):
        lacks = "no length" if count is None else "no rows by position: it is an IterableDataset"
        raise InputError(
            f"The data set {name} has {lacks}. Rounds draw their rows by position: give it "
            "`__len__` and `__getitem__`, or read it into arrays."
        )
    if not count:
        raise InputError(f"The data set {name} has no rows.")
    plain = getattr(source, "plain", None)
    if plain is not None and len(plain) != count:
        raise InputError(
            f"The data set {name} has {count} rows, and its `plain` has {len(plain)}. They must be "
            "the same rows."
        )
    return count


def is_dataset(inputs: Any) -> bool:
    """Whether this is a `Dataset` or a `DataLoader` of torch."""
    data = sys.modules.get("torch.utils.data")  # one exists only if it was imported
    return isinstance(inputs, DatasetRows) or (
        data is not None and isinstance(inputs, data.Dataset | data.DataLoader)
    )


def read_dataset(inputs: Any, *, batch_size: int | None) -> DatasetRows:
    """A `Dataset` or `DataLoader` of torch, as rows.

    Of a loader, the data set and how it makes batches count. Order and batches are a round's own,
    so a loader with other ones is refused.

    Args:
        inputs: The data set or the loader.
        batch_size: Rows in a step of training; None to predict, which gives every row its scores
            whatever the batches.
    """
    if isinstance(inputs, DatasetRows):
        return inputs
    data = sys.modules["torch.utils.data"]
    if not isinstance(inputs, data.DataLoader):
        return DatasetRows([inputs])
    rows = DatasetRows(
        [inputs.dataset],
        collate=None if inputs.collate_fn is data.default_collate else inputs.collate_fn,
    )
    if (way := _own_order(inputs, data)) is not None:
        raise InputError(
            f"The DataLoader draws rows by a {way}, but a round takes every row once in each "
            "epoch. Leave the sampler out."
        )
    if batch_size is None:
        return rows
    if inputs.drop_last:
        raise InputError(
            "The DataLoader has `drop_last=True`, but a round takes every row once in each epoch. "
            "Leave it out."
        )
    if inputs.batch_size not in (None, 1, batch_size):
        raise InputError(
            f"The DataLoader has `batch_size={inputs.batch_size}`, and the estimator "
            f"`batch_size={batch_size}`, which is the one that counts. Make them equal."
        )
    return rows


def _own_order(loader: Any, data: Any) -> str | None:
    """What a loader draws rows by, where that is not each row once."""
    if loader.batch_sampler is not None and type(loader.batch_sampler) is not data.BatchSampler:
        return type(loader.batch_sampler).__name__
    sampler = getattr(loader.batch_sampler, "sampler", loader.sampler)
    if type(sampler) is data.SequentialSampler:
        return None
    if type(sampler) is data.RandomSampler:
        once = not sampler.replacement and sampler.num_samples == len(loader.dataset)
        return None if once else "RandomSampler with rows that come twice or never"
    return type(sampler).__name__


def labels_of(rows: DatasetRows) -> AnyArray:
    """The label of each item: the second of a pair, or `labels` of a dict."""
    found = []
    for row in range(len(rows)):
        with drawing_from(0):
            (item,) = rows.items([row], plain=True)
        if isinstance(item, Mapping):
            key = next((name for name in _LABELS if name in item), None)
            label = None if key is None else item[key]
        else:
            label = item[1] if isinstance(item, tuple | list) and len(item) == 2 else None
        if label is None:
            raise InputError(
                f"Item {row} of the data set has no label. Give pairs of input and label, or dicts "
                "with `labels`; or pass `y`."
            )
        value = np.asarray(label)
        if value.ndim:
            raise InputError(f"The label of item {row} must be one class, got {value.shape}.")
        found.append(value.item())
    return np.array(found)


def without_label(item: Any) -> Any:
    """The input of an item or a batch: the first of a pair, a dict without `labels`, or all.

    A `TensorDataset` without labels gives its inputs in tuples of one.
    """
    if isinstance(item, Mapping):
        return {name: value for name, value in item.items() if name not in _LABELS}
    return item[0] if isinstance(item, tuple | list) and len(item) in (1, 2) else item


@contextmanager
def drawing_from(seed: int) -> Iterator[None]:
    """Have a data set draw from a seed, with torch, numpy or Python, and leave their states."""
    torch = sys.modules.get("torch")
    states = random.getstate(), np.random.get_state()
    mine = None if torch is None else torch.get_rng_state()
    random.seed(seed)
    np.random.seed(seed % 2**32)
    if torch is not None:
        torch.manual_seed(seed)
    try:
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])
        if torch is not None:
            torch.set_rng_state(mine)


def _item_bytes(item: Any) -> bytes:
    if isinstance(item, Mapping):
        return b"".join(str(name).encode() + _item_bytes(item[name]) for name in sorted(item))
    try:
        return _number_bytes(np.asarray(item))
    except (TypeError, ValueError) as error:
        raise InputError(
            f"The items of the data set hold {type(item).__name__}, which is no tensor. Turn it "
            "into numbers in `__getitem__`."
        ) from error


def _number_bytes(row: AnyArray) -> bytes:
    return np.ascontiguousarray(row, dtype=np.float64).tobytes()


def _array(name: str, values: Any) -> AnyArray:
    try:
        return np.asarray(values)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"`X[{name!r}]` cannot be read as an array of numbers: {one_line(str(error))} Pad "
            "tokens to one length."
        ) from error
