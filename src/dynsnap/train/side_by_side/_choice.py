"""Whether rounds can be trained side by side on a GPU, in which way, and how many."""

from collections.abc import Callable

import torch
from torch import nn

from dynsnap.errors import TrainingError
from dynsnap.train._context import TrainingContext
from dynsnap.train._devices import log
from dynsnap.train._optimizers import Adam
from dynsnap.train.side_by_side._feed import feed_of
from dynsnap.train.side_by_side._group import can_be_grouped
from dynsnap.train.side_by_side._network import NO_OTHERS, Losses, NetworkSettings
from dynsnap.train.side_by_side._stepper import SideBySideStepper

MOST_GROUPED = 48
MOST_STREAMS = 16


def is_suited(context: TrainingContext) -> bool:
    """Whether the data and settings are ones that steps side by side know."""
    return (
        context.device.type == "cuda"
        and isinstance(context.optimizer, Adam)
        and feed_of(context) is not None
    )


def groups(context: TrainingContext, module: nn.Module) -> bool:
    """Whether rounds of this module can be one network."""
    feed = feed_of(context)
    return feed is not None and can_be_grouped(module, feed.example())


def side_by_side(
    context: TrainingContext,
    module: Callable[[], nn.Module],
    *,
    batch_size: int,
    rows: int,
    wanted: int,
    grouped: bool,
    losses: Losses = NO_OTHERS,
) -> SideBySideStepper | None:
    """A stepper for as many of the wanted rounds as the device holds.

    None where the module's steps cannot be captured in a graph, or would not be what they are
    alone; that is said, and so is a device that holds fewer.
    """
    feed = feed_of(context)
    assert isinstance(context.optimizer, Adam)
    assert feed is not None
    if not feed.suits(module()):
        log.warning(
            "What this model predicts for a text depends on how long other texts are: its rounds "
            "are trained one after another, which is slower. Let it pass over token 0, the padding."
        )
        return None
    settings = NetworkSettings(
        batch_size=batch_size,
        optimizer=context.optimizer,
        feed=feed,
        precision=context.precision,
        compiled=context.device.type == "cuda",
        classes=context.blueprint.classes,
        losses=losses,
    )
    hoped = width = min(wanted, MOST_GROUPED if grouped else MOST_STREAMS)
    while True:
        try:
            stepper = SideBySideStepper(
                context, module(), settings, width=width, rows=rows, grouped=grouped
            )
        except torch.OutOfMemoryError as error:
            if width == 1:
                raise TrainingError(
                    "The GPU has no room for a single round of this model. Free its memory, lower "
                    '`batch_size`, or train with `device = "cpu"`.'
                ) from error
            width = (width + 1) // 2
            torch.cuda.empty_cache()
        except Exception as error:  # of torch, of its compiler, of Triton, of the module itself
            reason = str(error).partition("\n")[0]
            log.warning(
                "Steps of this model cannot be captured (%s): its rounds are trained one after "
                "another, which is slower.",
                reason,
            )
            return None
        else:
            if width < hoped:
                log.warning(
                    "The GPU has no room for %d rounds at once: %d are trained side by side, the "
                    "others after them.",
                    hoped,
                    width,
                )
            how = "as one grouped network" if grouped else "on streams of their own"
            log.info("Training %d rounds side by side, %s.", width, how)
            return stepper
