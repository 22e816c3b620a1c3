"""From the pool's inputs to what a module is fed, fitted on the round's own training rows only."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np
import torch
from torch import Tensor

from dynsnap._types import AnyArray, Positions
from dynsnap.errors import InputError

State: TypeAlias = dict[str, Tensor]

_ROWS_AT_ONCE = 4096


class Encoded(Protocol):
    """A data set as tensors, before anything was fitted: rounds share one."""

    def __len__(self) -> int: ...

    def take(self, rows: Tensor, /) -> Tensor:
        """The raw batch of these rows."""
        ...

    def part(self, start: int, end: int, /) -> Tensor:
        """The raw batch of the rows from `start` to before `end`."""
        ...

    def to(self, device: torch.device, /) -> "Encoded": ...


class Preparation(Protocol):
    """Turns inputs into tensors in two steps, of which a round fits only the second.

    Attributes:
        elementwise: Whether `apply` treats every number of an input on its own, so that many
            rounds with states of their own can be prepared as one tensor.
    """

    elementwise: ClassVar[bool]

    def encode(self, inputs: AnyArray, /) -> Encoded:
        """The part that depends on nothing but the inputs."""
        ...

    def fit(self, encoded: Encoded, rows: Positions, /) -> State:
        """What a round learns from its training rows; stored beside its weights."""
        ...

    def bind(self, state: State, encoded: Encoded, /) -> State:
        """What `apply` needs to prepare rows of this data set with that state."""
        ...

    def apply(self, raw: Tensor, bound: State, /) -> Tensor:
        """A raw batch as the module is fed with it."""
        ...

    def offers(self, encoded: Encoded, /) -> Mapping[str, Any]:
        """What a model factory may ask for by keyword."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Inputs of one shape, a row each."""

    values: Tensor

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: Tensor, /) -> Tensor:
        return self.values.index_select(0, rows.to(self.values.device))

    def part(self, start: int, end: int, /) -> Tensor:
        return self.values[start:end]

    def to(self, device: torch.device, /) -> "Rows":
        return Rows(self.values.to(device))


class _Dense:
    """What the preparations of plain arrays share."""

    elementwise: ClassVar[bool] = True

    def bind(self, state: State, encoded: Encoded, /) -> State:
        return state

    def offers(self, encoded: Encoded, /) -> Mapping[str, Any]:
        assert isinstance(encoded, Rows)
        return {"inputs": tuple(encoded.values.shape[1:])}


@dataclass(frozen=True)
class Features(_Dense):
    """Numbers as they are."""

    def encode(self, inputs: AnyArray, /) -> Rows:
        if inputs.dtype == object or inputs.dtype.kind not in "buif":
            raise InputError(
                f"Features must be numbers, got inputs of type {inputs.dtype}. "
                "Prepare texts with `dynsnap.train.Words`."
            )
        if inputs.dtype.kind == "f" and not np.isfinite(inputs).all():
            raise InputError(
                "Features must be finite, but some inputs are NaN or infinite. "
                "Fill or drop them first."
            )
        return Rows(torch.from_numpy(np.ascontiguousarray(inputs, dtype=np.float32)))

    def fit(self, encoded: Encoded, rows: Positions, /) -> State:
        return {}

    def apply(self, raw: Tensor, bound: State, /) -> Tensor:
        return raw


@dataclass(frozen=True)
class Standardised(Features):
    """Numbers less their mean over the round's training rows, over their deviation."""

    def fit(self, encoded: Encoded, rows: Positions, /) -> State:
        assert isinstance(encoded, Rows)
        # In numpy, on the CPU: the same bits for every device and number of threads.
        values = encoded.values.cpu().numpy()[rows].astype(np.float64)
        deviation = values.std(axis=0)
        deviation[deviation == 0] = 1
        return {
            "mean": torch.from_numpy(np.asarray(values.mean(axis=0), dtype=np.float32)),
            "deviation": torch.from_numpy(np.asarray(deviation, dtype=np.float32)),
        }

    def apply(self, raw: Tensor, bound: State, /) -> Tensor:
        return (raw - bound["mean"]).div_(bound["deviation"])


@dataclass(frozen=True)
class Images(Features):
    """Numbers of images (rows, height, width, channels) as they are, channels brought forward."""

    def encode(self, inputs: AnyArray, /) -> Rows:
        if inputs.ndim != 4:
            raise InputError(
                "Images must be of the shape (rows, height, width, channels), got the shape "
                f"{inputs.shape}. Prepare other numbers as `Features`."
            )
        return super().encode(inputs.transpose(0, 3, 1, 2))


@dataclass(frozen=True)
class Pixels(_Dense):
    """Bytes over 255, less the mean of each pixel over the round's training rows."""

    def encode(self, inputs: AnyArray, /) -> Rows:
        if inputs.dtype != np.uint8 or inputs.ndim not in (3, 4):
            raise InputError(
                "Images must be bytes of the shape (rows, height, width, channels), got "
                f"{inputs.dtype} of the shape {inputs.shape}. Prepare other numbers as `Features`."
            )
        images = inputs[..., np.newaxis] if inputs.ndim == 3 else inputs
        return Rows(torch.from_numpy(np.ascontiguousarray(images.transpose(0, 3, 1, 2))))

    def fit(self, encoded: Encoded, rows: Positions, /) -> State:
        total: Tensor | int = 0
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            part = torch.from_numpy(rows[start : start + _ROWS_AT_ONCE])
            # Whole numbers: exact in any order.
            total = total + encoded.take(part).sum(dim=0, dtype=torch.int64)
        assert isinstance(total, Tensor)
        return {"mean": (total.double() / (255 * len(rows))).float()}

    def apply(self, raw: Tensor, bound: State, /) -> Tensor:
        return raw.float().mul_(1 / 255) - bound["mean"]


@dataclass(frozen=True)
class ImagesFirst(Features):
    """Numbers of images (rows, channels, height, width) as they are."""

    def encode(self, inputs: AnyArray, /) -> Rows:
        if inputs.ndim != 4:
            raise InputError(
                "Images must be of the shape (rows, channels, height, width), got the shape "
                f"{inputs.shape}. Prepare other numbers as `Features`."
            )
        return super().encode(inputs)


@dataclass(frozen=True)
class PixelsFirst(Pixels):
    """Bytes of images (rows, channels, height, width), over 255, less their mean."""

    def encode(self, inputs: AnyArray, /) -> Rows:
        if inputs.ndim != 4:
            raise InputError(
                "Images must be bytes of the shape (rows, channels, height, width), got the shape "
                f"{inputs.shape}."
            )
        return super().encode(inputs.transpose(0, 2, 3, 1))
