"""Drives rounds to their ends: validation, snapshots, checkpoints, and stopping when asked to."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch

from dynsnap import seeds
from dynsnap.ensemble import Checkpoints, Monitor, Round, RoundSpec, snapshot_epochs
from dynsnap.errors import FileError, Interrupted, TrainingError, one_line
from dynsnap.train._context import TrainingContext
from dynsnap.train._devices import log
from dynsnap.train._final_weights import FinalWeights, HeldOutRows
from dynsnap.train._lockstep import Lockstep, RoundState, Stepper
from dynsnap.train._predict import Scoring
from dynsnap.train._preparations import to_header
from dynsnap.train._prepare import Encoded, State
from dynsnap.train._weights import StoredLearner, pack, unpack

JudgeRound: TypeAlias = Callable[[RoundState, State], float]


def finished(
    round_: RoundState,
    context: TrainingContext,
    evaluation: Mapping[str, Encoded],
    *,
    keep_weights: bool,
    held_out: HeldOutRows | None = None,
    judge: JudgeRound | None = None,
) -> Round:
    """The finished round of a state."""
    recipe, blueprint = round_.spec.recipe, context.blueprint
    epochs = snapshot_epochs(recipe, round_.deciding)
    final = FinalWeights(round_, context, held_out)
    settled = {
        epoch: final.settle(round_.kept[epoch], round_.curve[epoch]) for epoch in epochs.tolist()
    }
    learners = [
        StoredLearner(
            weights=settled[epoch][0],
            prepared=round_.prepared,
            classes=blueprint.classes,
            offers=blueprint.offers,
            prepare=to_header(context.prepare),
            dropout=recipe.dropout,
            passes=recipe.passes,
            noise=seeds.number(round_.spec.seed, round_.spec.seed_name(), "passes", epoch),
        )
        for epoch in epochs.tolist()
    ]
    scoring = Scoring(learners, blueprint=blueprint, prepare=context.prepare, device=context.device)
    accuracy = np.array([settled[epoch][1] for epoch in epochs.tolist()])
    judged = None
    if judge is not None:
        values = [judge(round_, settled[epoch][0]) for epoch in epochs.tolist()]
        judged = np.repeat(np.array(values), recipe.passes)
    return Round(
        spec=round_.spec,
        accuracy=np.repeat(accuracy, recipe.passes),
        epochs=np.repeat(epochs, recipe.passes),
        scores={name: scoring.of(encoded) for name, encoded in evaluation.items()},
        curve=np.array(round_.curve),
        weights=tuple(one.to_bytes() for one in learners) if keep_weights else (),
        seconds=round_.seconds,
        selection=judged,
        selection_curve=np.array(round_.judged) if round_.judged else None,
    )


@dataclass(eq=False, kw_only=True)
class CheckpointSaver:
    """Saves unfinished rounds at the ends of epochs, and brings them back.

    Attributes:
        checkpoints: Where to; None saves nothing.
        every: Least seconds between two checkpoints of one round; 0 saves after every epoch.
        owner: The trainer's fingerprint and its stepper's form: a checkpoint of another trainer is
            no use, nor is one of the same that had to step in another way.
    """

    checkpoints: Checkpoints | None
    every: float
    owner: str

    def __post_init__(self) -> None:
        self._last: dict[RoundSpec, float] = {}

    def restore(self, round_: RoundState) -> State | None:
        """Set a round to where its checkpoint has left it, and return the stepper's state there."""
        self._last[round_.spec] = time.monotonic()
        content = self.checkpoints.load(round_.spec) if self.checkpoints else None
        if content is None:
            return None
        try:
            groups, header = unpack(content, what=f"The checkpoint of {round_.spec}")
            if header["spec"] != round_.spec.canonical() or header["owner"] != self.owner:
                raise FileError(f"The checkpoint of {round_.spec} was made by another training.")
            curve, epochs, seconds = header["curve"], header["kept"], header["seconds"]
            judged = header.get("judged", [])
            kept = {epoch: groups[f"kept{epoch}"] for epoch in epochs}
            state = groups["state"]
        except (FileError, KeyError) as error:
            # Nothing but time is lost, so this is no reason to stop.
            reason = error if isinstance(error, FileError) else f"{round_.spec}: it lacks {error}."
            log.warning("Ignoring an unusable checkpoint. %s Starting that round over.", reason)
            return None
        round_.epoch, round_.curve, round_.kept, round_.seconds = len(curve), curve, kept, seconds
        round_.judged = judged
        return state

    def due(self, round_: RoundState) -> bool:
        """Whether it is time to save."""
        if self.checkpoints is None:
            return False
        return time.monotonic() - self._last[round_.spec] >= self.every

    def save(self, round_: RoundState, state: State) -> None:
        """Save a round that stands at the end of an epoch."""
        if self.checkpoints is None:
            return
        header = {
            "spec": round_.spec.canonical(),
            "owner": self.owner,
            "curve": round_.curve,
            **({"judged": round_.judged} if round_.judged else {}),
            "kept": list(round_.kept),
            "seconds": round_.seconds,
        }
        kept = {f"kept{epoch}": weights for epoch, weights in round_.kept.items()}
        self.checkpoints.save(round_.spec, pack({"state": state, **kept}, header))
        self._last[round_.spec] = time.monotonic()

    def drop(self, spec: RoundSpec) -> None:
        """A round is safe with the caller: its checkpoint is not needed any more."""
        if self.checkpoints is not None:
            self.checkpoints.drop(spec)


def drive(
    lockstep: Lockstep,
    stepper: Stepper,
    *,
    saver: CheckpointSaver,
    monitor: Monitor | None,
    judge: JudgeRound | None = None,
) -> Iterator[RoundState]:
    """Train the rounds of a lockstep and hand out each when its last epoch is done.

    Args:
        lockstep: The rounds.
        stepper: Executes their steps.
        saver: Saves them at the ends of epochs.
        monitor: Receives their progress, and may stop them.
        judge: The selection metric of a round with certain weights; None for the accuracy.

    Raises:
        Interrupted: The monitor asked to stop. Every unfinished round has been saved at the end of
            the epoch that it was in.
        TrainingError: A round has diverged, or the device has failed.
    """
    stopping = False
    while lockstep.waiting or lockstep.live:
        for round_ in lockstep.admit():
            stepper.admit(round_, saver.restore(round_))
        rounds, steps = lockstep.stretch()
        if stopping and not rounds:
            saved = "were saved as they are" if saver.checkpoints else "are lost"
            raise Interrupted(f"Training stopped as asked: rounds that were not finished {saved}.")
        start = time.perf_counter()
        try:
            stepper.advance(rounds, steps)
            ended = lockstep.advance(rounds, steps)
            accuracies = stepper.validate(ended)
        except RuntimeError as error:  # what torch raises, also for a device that fails
            raise TrainingError(
                f"Training failed with {len(rounds)} rounds under way, the first of them "
                f"{rounds[0].spec}: {_reason(error)}."
            ) from error
        share = (time.perf_counter() - start) / max(1, len(rounds))
        for round_ in rounds:
            round_.seconds += share
        for round_, accuracy in zip(ended, accuracies, strict=True):
            sound = judge is not None and np.isfinite(accuracy)
            judged = judge(round_, stepper.weights(round_)) if judge and sound else None
            if round_.record(accuracy, judged):
                round_.keep(stepper.weights(round_))
            if monitor is not None:
                monitor.epoch_done(round_.spec, round_.epoch - 1, accuracy)
                stopping = stopping or monitor.stopping()
        if stopping:
            lockstep.stop()
        for round_ in ended:
            if not round_.finished and (stopping or saver.due(round_)):
                saver.save(round_, stepper.state(round_))
        leaving = [round_ for round_ in lockstep.live if round_.finished]
        for round_ in leaving:
            stepper.release(round_)
            lockstep.leave(round_)
            yield round_
            # Not before the caller has come back for more, and so has the round in safety.
            saver.drop(round_.spec)
        if leaving and lockstep.live and not lockstep.waiting and not stopping:
            stepper.remain(lockstep.live)


def _reason(error: RuntimeError) -> str:
    """The first sentence of what torch has to say, and where memory is short, what to do."""
    said = one_line(str(error).partition("\n")[0]).rstrip(".")
    if isinstance(error, torch.OutOfMemoryError):
        return f"{said} (free its memory, or lower `batch_size`)"
    return said or type(error).__name__
