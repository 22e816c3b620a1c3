"""The preparations by name, and the one that suits given inputs."""

import dataclasses
from typing import Any

import numpy as np

from dynsnap._types import AnyArray
from dynsnap.data import DatasetRows, Frame, NamedArrays, columns_in_words
from dynsnap.errors import FileError, InputError, PlanError, did_you_mean
from dynsnap.train._items import AsGiven
from dynsnap.train._prepare import (
    Features,
    Images,
    ImagesFirst,
    Pixels,
    PixelsFirst,
    Preparation,
    Standardised,
)
from dynsnap.train._text import Words

_MOST_CHANNELS = 4  # of an image that is recognised by its shape

_KINDS: dict[str, type[Any]] = {
    "features": Features,
    "standardised": Standardised,
    "pixels": Pixels,
    "images": Images,
    "words": Words,
    "images-nchw": ImagesFirst,
    "pixels-nchw": PixelsFirst,
    "as given": AsGiven,
}
# Other names, for those who want to say it.
_SAME = {"images-nhwc": "images", "pixels-nhwc": "pixels"}


def preparation(choice: str | Preparation, inputs: Any) -> Preparation:
    """The preparation that was asked for; "auto" is the one that suits the inputs.

    Example:
        >>> preparation("auto", np.zeros((2, 8, 8, 1), np.uint8))
        Pixels()
        >>> preparation("auto", np.zeros((2, 8, 8, 1)))
        Images()
    """
    if isinstance(inputs, Frame):
        words = inputs.named("category", "text") or list(inputs.columns)
        raise InputError(
            f"A torch module takes tensors, and {columns_in_words(words)} are columns of a frame. "
            "Encode them first, or use boosted trees."
        )
    if not isinstance(choice, str):
        return choice
    own = isinstance(inputs, DatasetRows | NamedArrays)
    if own and choice not in ("auto", "as given"):
        raise PlanError(
            f"`prepare={choice!r}` is for arrays, and a dict or a Dataset gives its inputs as the "
            "module takes them. Leave it out, and prepare them there."
        )
    if choice == "auto":
        choice = "as given" if own else _suited(inputs)
    choice = _SAME.get(choice, choice)
    if choice not in _KINDS:
        names = [name for name in (*_KINDS, *_SAME) if name != "as given"]
        raise PlanError(f"There is no preparation {choice!r}. {did_you_mean(choice, names)}")
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
                'first. Say `prepare="pixels-nchw"` if they are, or `prepare="pixels-nhwc"` for '
                "(rows, height, width, channels)."
            )
        return "pixels"
    if is_first == is_last:
        raise InputError(
            f"Inputs of the shape {inputs.shape} do not tell which axis holds the channels of an "
            'image. Say `prepare="images-nhwc"` for (rows, height, width, channels), or '
            '`prepare="images-nchw"` for (rows, channels, height, width).'
        )
    return "images" if is_last else "features"
