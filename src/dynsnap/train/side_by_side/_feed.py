"""What rounds side by side are fed with: images and texts, prepared for each as it has fitted."""

from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from dynsnap.train._augment import ShiftsAndFlips
from dynsnap.train._context import TrainingContext
from dynsnap.train._prepare import Pixels, Rows, State
from dynsnap.train._text import Texts, Words, padded


class ImageFeed:
    """Images as bytes, less the mean image of the round that looks at them."""

    def __init__(self, pool: Tensor, augment: ShiftsAndFlips | None) -> None:
        self._pool, self._augment = pool, augment

    def room(self, rounds: int, /) -> Tensor:
        return torch.zeros(rounds, *self._pool.shape[1:], device=self._pool.device)

    def fitted(self, bound: State, /) -> Tensor:
        return bound["mean"]

    def batch(self, fitted: Tensor, rows: Tensor, draws: Tensor | None = None, /) -> Tensor:
        augment = self._augment
        if augment is None or draws is None:
            images = plain_images(self._pool, fitted, rows)
        else:
            images = augmented_images(
                self._pool, fitted, rows, draws, shift=augment.shift, flip=augment.flip
            )
        return images.contiguous(memory_format=torch.channels_last)

    def example(self) -> Tensor:
        return self._pool[:2].cpu().float() / 255

    def suits(self, module: nn.Module, /) -> bool:
        return True


def plain_images(pool: Tensor, mean: Tensor, rows: Tensor) -> Tensor:
    """Images (rounds · batch, channels, height, width) of these rows, as they are.

    Args:
        pool: Bytes (inputs, channels, height, width).
        mean: The mean image of each round (rounds, channels, height, width).
        rows: Rows of the pool (rounds, batch).
    """
    values = pool[rows].float().mul(1 / 255).sub(mean[:, None])
    return values.flatten(0, 1)


def augmented_images(
    pool: Tensor, mean: Tensor, rows: Tensor, draws: Tensor, *, shift: float, flip: bool
) -> Tensor:
    """The same, each image with a shift and flip of its own.

    Args:
        draws: Three numbers in [0, 1) for each image (rounds, batch, 3): across, down, mirror.
        shift: Largest shift as a share of the side.
        flip: Whether to mirror half of the images.
    """
    _, channels, height, width = pool.shape
    row = torch.arange(height, device=pool.device, dtype=torch.float32)
    column = torch.arange(width, device=pool.device, dtype=torch.float32)
    across = (draws[:, :, 0:1] - 0.5) * (2 * shift * width)
    down = (draws[:, :, 1:2] - 0.5) * (2 * shift * height)
    if flip:
        column = torch.where(draws[:, :, 2:3] < 0.5, width - 1 - column, column)
    y = (row + down).clamp(0, height - 1)[:, :, None, :, None]
    x = (column + across).clamp(0, width - 1)[:, :, None, None, :]
    top, left = y.floor(), x.floor()
    below, right = y - top, x - left
    top, left = top.long(), left.long()
    bottom, far = (top + 1).clamp(max=height - 1), (left + 1).clamp(max=width - 1)
    plane = torch.arange(channels, device=pool.device)[:, None, None] * (height * width)
    image = rows.long()[:, :, None, None, None] * (channels * height * width) + plane
    of_round = torch.arange(len(rows), device=pool.device)[:, None, None, None, None]
    of_round = of_round * (channels * height * width) + plane
    pixels, means = pool.view(-1), mean.reshape(-1)

    def at(down_to: Tensor, across_to: Tensor) -> Tensor:
        place = down_to * width + across_to
        # The mean moves with the image: the paper's framework centres first and shifts then.
        return pixels[image + place].float() * (1 / 255) - means[of_round + place]

    upper = at(top, left) * (1 - right) + at(top, far) * right
    lower = at(bottom, left) * (1 - right) + at(bottom, far) * right
    return (upper * (1 - below) + lower * below).flatten(0, 1)


class TokenFeed:
    """Texts, each word looked up in the vocabulary of the round that reads it."""

    def __init__(self, texts: Texts, prepare: Words) -> None:
        # Tensors alone: who compiles a step looks at everything that it leads to.
        self._tokens, self._starts = texts.tokens, texts.starts
        self._longest = texts.longest()
        self._numbers = 1 + len(texts.words) + prepare.buckets
        self._words = prepare.size + prepare.buckets
        # Many rounds times many words: no wider than the tokens need.
        kinds = (torch.int16, torch.int32, torch.int64)
        self._kind = next(kind for kind in kinds if self._words <= torch.iinfo(kind).max)

    def room(self, rounds: int, /) -> Tensor:
        shape = (rounds, self._numbers)
        return torch.zeros(shape, dtype=self._kind, device=self._tokens.device)

    def fitted(self, bound: State, /) -> Tensor:
        return bound["lookup"].to(self._kind)

    def batch(self, fitted: Tensor, rows: Tensor, draws: Tensor | None = None, /) -> Tensor:
        numbers = padded(self._tokens, self._starts, rows, self._longest)
        tables = torch.arange(len(rows), device=rows.device)[:, None, None] * fitted.shape[1]
        return fitted.view(-1)[tables + numbers].long().flatten(0, 1)

    def example(self) -> Tensor:
        real, padding = self._example_widths()
        tokens = 1 + torch.arange(2 * real).view(2, real) % (self._words - 1)
        return functional.pad(tokens, (0, padding))

    def suits(self, module: nn.Module, /) -> bool:
        """Alone, a batch is as wide as its own longest text: more padding must not matter."""
        module, tokens = module.cpu().eval(), self.example()
        real, _ = self._example_widths()
        try:
            with torch.no_grad():
                wide, narrow = module(tokens), module(tokens[:, :real])
        except Exception:  # whatever a caller's forward may want of the width
            return False
        return torch.allclose(wide, narrow, rtol=1e-4, atol=1e-6)

    def _example_widths(self) -> tuple[int, int]:
        """Tokens and padding of an example, together no wider than the longest text."""
        width = max(1, min(8, self._longest))
        return (width + 1) // 2, width // 2


class Feed(Protocol):
    """The pool on a device, and how batches of it are made within a step of fixed shapes.

    What a round's preparation has fitted is one tensor, with a place for each round.
    """

    def room(self, rounds: int, /) -> Tensor:
        """Places for what so many rounds have fitted."""
        ...

    def fitted(self, bound: State, /) -> Tensor:
        """What one round has fitted, as its place holds it."""
        ...

    def batch(self, fitted: Tensor, rows: Tensor, draws: Tensor | None = None, /) -> Tensor:
        """Inputs (rounds · batch, ...), one round behind the other, as a module takes them.

        Args:
            fitted: What each round has fitted.
            rows: Rows of the pool (rounds, batch).
            draws: Three numbers in [0, 1) for each row (rounds, batch, 3), by which inputs are
                augmented; without them they stay as they are.
        """
        ...

    def example(self) -> Tensor:
        """Two inputs on the CPU, to try a module on."""
        ...

    def suits(self, module: nn.Module, /) -> bool:
        """Whether a module is given here what it would be given alone."""
        ...


def feed_of(context: TrainingContext) -> Feed | None:
    """The feed for a context's inputs, None where there is none: the one place that decides."""
    inputs, prepare, augment = context.inputs, context.prepare, context.augment
    # Of these kinds exactly: what a caller derives from them may prepare in another way.
    if type(prepare) is Pixels and (augment is None or type(augment) is ShiftsAndFlips):
        assert isinstance(inputs, Rows)
        return ImageFeed(inputs.values, augment)
    if type(prepare) is Words and augment is None:
        assert isinstance(inputs, Texts)
        return TokenFeed(inputs, prepare)
    return None
