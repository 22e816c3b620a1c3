"""What rounds side by side are fed with: rows of the pool, prepared for each as it has fitted."""

from typing import Protocol

from torch import Tensor, nn

from dynsnap.train._augment import ShiftsAndFlips
from dynsnap.train._context import TrainingContext
from dynsnap.train._prepare import Pixels, Rows, State
from dynsnap.train._text import Texts, Words
from dynsnap.train.side_by_side._images import ImageFeed
from dynsnap.train.side_by_side._tokens import TokenFeed


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
