"""Drives lanes to their ends: validation, snapshots, checkpoints, and stopping when asked to."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from dynsnap.ensemble import Checkpoints, Monitor, RoundSpec
from dynsnap.errors import FileError, Interrupted, TrainingError, one_line
from dynsnap.train._devices import log
from dynsnap.train._lockstep import Lockstep, Stepper
from dynsnap.train._prepare import State
from dynsnap.train._round_state import RoundState
from dynsnap.train._weights import pack, unpack


@dataclass(eq=False, kw_only=True)
class CheckpointSaver:
    """Saves unfinished lanes at the ends of epochs, and brings them back.

    Attributes:
        checkpoints: Where to; None saves nothing.
        every: Least seconds between two checkpoints of one lane; 0 saves after every epoch.
        owner: The trainer's fingerprint and its stepper's form: a checkpoint of another trainer is
            no use, nor is one of the same that had to step in another way.
    """

    checkpoints: Checkpoints | None
    every: float
    owner: str

    def __post_init__(self) -> None:
        self._last: dict[RoundSpec, float] = {}

    def restore(self, lane: RoundState) -> State | None:
        """Set a lane to where its checkpoint has left it, and say the stepper's state there."""
        self._last[lane.spec] = time.monotonic()
        content = self.checkpoints.load(lane.spec) if self.checkpoints else None
        if content is None:
            return None
        try:
            groups, header = unpack(content, what=f"The checkpoint of {lane.spec}")
            if header["spec"] != lane.spec.canonical() or header["owner"] != self.owner:
                raise FileError(f"The checkpoint of {lane.spec} was made by another training.")
            curve, epochs, seconds = header["curve"], header["kept"], header["seconds"]
            kept = {epoch: groups[f"kept{epoch}"] for epoch in epochs}
            state = groups["state"]
        except (FileError, KeyError) as error:
            # Nothing but time is lost, so this is no reason to stop.
            reason = error if isinstance(error, FileError) else f"{lane.spec}: it lacks {error}."
            log.warning("Ignoring an unusable checkpoint. %s Starting that round over.", reason)
            return None
        lane.epoch, lane.curve, lane.kept, lane.seconds = len(curve), curve, kept, seconds
        return state

    def due(self, lane: RoundState) -> bool:
        """Whether it is time to save."""
        if self.checkpoints is None:
            return False
        return time.monotonic() - self._last[lane.spec] >= self.every

    def save(self, lane: RoundState, state: State) -> None:
        """Save a lane that stands at the end of an epoch."""
        if self.checkpoints is None:
            return
        header = {
            "spec": lane.spec.canonical(),
            "owner": self.owner,
            "curve": lane.curve,
            "kept": list(lane.kept),
            "seconds": lane.seconds,
        }
        kept = {f"kept{epoch}": weights for epoch, weights in lane.kept.items()}
        self.checkpoints.save(lane.spec, pack({"state": state, **kept}, header))
        self._last[lane.spec] = time.monotonic()

    def drop(self, spec: RoundSpec) -> None:
        """A round is safe with the caller: its checkpoint is not needed any more."""
        if self.checkpoints is not None:
            self.checkpoints.drop(spec)


def drive(
    lockstep: Lockstep, stepper: Stepper, *, saver: CheckpointSaver, monitor: Monitor | None
) -> Iterator[RoundState]:
    """Train the rounds of a lockstep and hand out each when its last epoch is done.

    Raises:
        Interrupted: The monitor asked to stop. Every unfinished round has been saved at the end of
            the epoch that it was in.
        TrainingError: A round has diverged, or the device has failed.
    """
    stopping = False
    while lockstep.waiting or lockstep.live:
        for lane in lockstep.admit():
            stepper.admit(lane, saver.restore(lane))
        lanes, steps = lockstep.stretch()
        if stopping and not lanes:
            saved = "were saved as they are" if saver.checkpoints else "are lost"
            raise Interrupted(f"Training stopped as asked: rounds that were not finished {saved}.")
        start = time.perf_counter()
        try:
            stepper.advance(lanes, steps)
            ended = lockstep.advance(lanes, steps)
            accuracies = stepper.validate(ended)
        except RuntimeError as error:  # what torch raises, also for a device that fails
            raise TrainingError(
                f"Training failed with {len(lanes)} rounds under way, the first of them "
                f"{lanes[0].spec}: {_reason(error)}."
            ) from error
        share = (time.perf_counter() - start) / max(1, len(lanes))
        for lane in lanes:
            lane.seconds += share
        for lane, accuracy in zip(ended, accuracies, strict=True):
            if lane.record(accuracy):
                lane.keep(stepper.weights(lane))
            if monitor is not None:
                monitor.epoch_done(lane.spec, lane.epoch - 1, accuracy)
                stopping = stopping or monitor.stopping()
        if stopping:
            lockstep.stop()
        for lane in ended:
            if not lane.finished and (stopping or saver.due(lane)):
                saver.save(lane, stepper.state(lane))
        leaving = [lane for lane in lockstep.live if lane.finished]
        for lane in leaving:
            stepper.release(lane)
            lockstep.leave(lane)
            yield lane
            # Not before the caller has come back for more, and so has the round in safety.
            saver.drop(lane.spec)
        if leaving and lockstep.live and not lockstep.waiting and not stopping:
            stepper.remain(lockstep.live)


def _reason(error: RuntimeError) -> str:
    """The first sentence of what torch has to say, and where memory is short, what to do."""
    said = one_line(str(error).partition("\n")[0]).rstrip(".")
    if isinstance(error, torch.OutOfMemoryError):
        return f"{said} (free its memory, or lower `batch_size`)"
    return said or type(error).__name__
