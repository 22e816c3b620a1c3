"""Dicts of arrays and data sets, as modules are fed with them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from dynsnap._types import Positions
from dynsnap.data import DatasetRows, NamedArrays, drawing_from, without_label
from dynsnap.errors import InputError
from dynsnap.train._prepare import Encoded, State


def forward(module: nn.Module, inputs: Any) -> Any:
    """A module's scores of a batch: a dict is handed over as keyword arguments.

    Modules of Hugging Face give an object with `logits`.
    """
    return scores_of(module(**inputs) if isinstance(inputs, Mapping) else module(inputs))


def scores_of(outputs: Any) -> Any:
    """The scores among what a module gives."""
    return outputs if isinstance(outputs, Tensor) else getattr(outputs, "logits", outputs)


def plain(encoded: Encoded) -> Encoded:
    """The same rows as validation reads them, without what a data set draws at random."""
    found: Encoded = getattr(encoded, "plain", encoded)
    return found


def count(batch: Any) -> int:
    """How many rows a batch has."""
    return len(next(iter(batch.values()))) if isinstance(batch, Mapping) else len(batch)


class NamedRows:
    """Named tensors, a row each."""

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        self.tensors = dict(tensors)

    def __len__(self) -> int:
        return count(self.tensors)

    def take(self, rows: Tensor, /) -> Any:
        return {
            name: values.index_select(0, rows.to(values.device))
            for name, values in self.tensors.items()
        }

    def part(self, start: int, end: int, /) -> Any:
        return {name: values[start:end] for name, values in self.tensors.items()}

    def to(self, device: torch.device, /) -> "NamedRows":
        return NamedRows({name: values.to(device) for name, values in self.tensors.items()})

    @property
    def inputs(self) -> Any:
        """What a factory may ask for: the names."""
        return tuple(sorted(self.tensors))


class LazyRows:
    """Rows of data sets, read whenever they are taken.

    Attributes:
        plain: The same rows without what a data set draws at random.
    """

    def __init__(
        self, source: DatasetRows, device: torch.device | None = None, *, drawing: bool = True
    ) -> None:
        self._source = source
        self._device = device
        self._drawing = drawing
        self.plain = LazyRows(source, device, drawing=False) if drawing else self

    def __len__(self) -> int:
        return len(self._source)

    def take(self, rows: Tensor, /) -> Any:
        return self._batch(rows.tolist())

    def part(self, start: int, end: int, /) -> Any:
        return self.plain._batch(list(range(start, min(end, len(self)))))

    def to(self, device: torch.device, /) -> "LazyRows":
        return LazyRows(self._source, device, drawing=self._drawing)

    @property
    def inputs(self) -> Any:
        """What a factory may ask for: the shape of an input, or the names of a dict."""
        first = self.part(0, 1)
        if isinstance(first, Mapping):
            return tuple(sorted(first))
        return tuple(first.shape[1:]) if self._source.collate is None else ()

    def _batch(self, rows: list[int]) -> Any:
        # In training from torch's generator, which has the seed of the epoch.
        seed = int(torch.randint(2**31, ())) if self._drawing else rows[0]
        with drawing_from(seed):
            items = self._source.items(rows, plain=not self._drawing)
            batch = without_label(self._collated(items))
        if isinstance(batch, Mapping):
            return {str(name): self._tensor(value) for name, value in batch.items()}
        return self._tensor(batch)

    def _collated(self, items: list[Any]) -> Any:
        collate = self._source.collate or torch.utils.data.default_collate
        try:
            return collate(items)
        except (RuntimeError, TypeError, ValueError) as error:
            reason = str(error).partition("\n")[0].rstrip(".")
            raise InputError(
                f"Items of the data set make no batch: {reason}. Give items of one shape, or a "
                "DataLoader whose `collate_fn` pads them."
            ) from error

    def _tensor(self, value: Any) -> Tensor:
        made = torch.as_tensor(value)
        made = made.float() if made.dtype == torch.float64 else made
        return made if self._device is None else made.to(self._device)


@dataclass(frozen=True)
class AsGiven:
    """Dicts of arrays and items of data sets as they are: floats in single precision."""

    elementwise: ClassVar[bool] = False

    def encode(self, inputs: Any, /) -> Any:
        if isinstance(inputs, DatasetRows):
            return LazyRows(inputs)
        if isinstance(inputs, NamedArrays):
            return NamedRows({name: _tensor(values) for name, values in inputs.arrays.items()})
        raise InputError(
            "The members were trained on a dict of arrays or a Dataset, got "
            f"{type(inputs).__name__}. Bring what they were trained on."
        )

    def fit(self, encoded: Encoded, rows: Positions, /) -> State:
        return {}

    def bind(self, state: State, encoded: Encoded, /) -> State:
        return state

    def apply(self, raw: Any, bound: State, /) -> Any:
        return raw

    def offers(self, encoded: Any, /) -> Mapping[str, Any]:
        return {"inputs": encoded.inputs}


def _tensor(values: Any) -> Tensor:
    made = torch.from_numpy(np.ascontiguousarray(values))
    return made.float() if made.dtype == torch.float64 else made
