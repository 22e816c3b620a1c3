"""The preparations by name, and the one that suits given inputs."""

import dataclasses
from typing import Any

import numpy as np

from dynsnap._types import AnyArray
from dynsnap.errors import FileError, InputError, PlanError, did_you_mean
from dynsnap.train._prepare import Features, Images, Pixels, Preparation, Standardised
from dynsnap.train._text import Words

_MOST_CHANNELS = 4  # of an image that is told by its shape

_KINDS: dict[str, type[Any]] = {
    "features": Features,
    "standardised": Standardised,
    "pixels": Pixels,
    "images": Images,
    "words": Words,
}


def preparation(choice: str | Preparation, inputs: AnyArray) -> Preparation:
    """The preparation that was asked for; "auto" is the one that suits the inputs.

    Example:
        >>> preparation("auto", np.zeros((2, 8, 8, 1), np.uint8))
        Pixels()
        >>> preparation("auto", np.zeros((2, 8, 8, 1)))
        Images()
    """
    if not isinstance(choice, str):
        return choice
    if choice == "auto":
        choice = _suited(inputs)
    if choice not in _KINDS:
        raise PlanError(f"There is no preparation {choice!r}. {did_you_mean(choice, _KINDS)}")
    made: Preparation = _KINDS[choice]()
    return made


def to_header(prepare: Preparation) -> dict[str, Any] | None:
    """The preparation and its settings as JSON, or None for a caller's own."""
    for name, kind in _KINDS.items():
        if type(prepare) is kind:
            return {"kind": name, **dataclasses.asdict(prepare)}  # type: ignore[call-overload]
    return None


def from_header(header: dict[str, Any] | None) -> Preparation:
    """The preparation that `to_header` wrote down."""
    if header is None:
        raise PlanError(
            "These learners were trained with a preparation of their own: hand it in as `prepare`."
        )
    settings = dict(header)
    try:
        made: Preparation = _KINDS[settings.pop("kind")](**settings)
    except (KeyError, TypeError) as error:
        raise FileError(
            f"A stored learner names a preparation that this dynsnap does not know: {header}. "
            "Update dynsnap."
        ) from error
    return made


def _suited(inputs: AnyArray) -> str:
    if inputs.dtype.kind in "OU":
        return "words"
    bytes_ = inputs.dtype == np.uint8
    if inputs.ndim != 4:
        return "pixels" if bytes_ and inputs.ndim == 3 else "features"
    # Images: channels are last everywhere but in torch, whose users bring them first as well.
    _, first, _, last = inputs.shape
    is_first, is_last = (0 < count <= _MOST_CHANNELS for count in (first, last))
    if bytes_:
        if is_first and not is_last:
            raise InputError(
                f"Inputs of the shape {inputs.shape} look like bytes of images with their channels "
                "first. Bring them as (rows, height, width, channels), as in "
                '`X.transpose(0, 2, 3, 1)`, or say `prepare="pixels"` if they are.'
            )
        return "pixels"
    if is_first == is_last:
        raise InputError(
            f"Inputs of the shape {inputs.shape} do not tell which axis holds the channels of an "
            'image. Say `prepare="images"` for (rows, height, width, channels), or '
            '`prepare="features"` to hand them to the module as they are, channels first.'
        )
    return "images" if is_last else "features"
