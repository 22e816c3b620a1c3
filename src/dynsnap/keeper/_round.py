"""One round that a loop of the caller's trains: its rates, its snapshots, its checkpoints."""

import hashlib
import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dynsnap import seeds
from dynsnap.ensemble import Checkpoints, Round, RoundSpec, rate_factor, snapshot_epochs
from dynsnap.errors import FileError, PlanError, TrainingError
from dynsnap.trainers import needed

log = logging.getLogger("dynsnap")


def torch_part() -> Any:
    """`dynsnap.train`, which is imported when a round begins."""
    return needed("dynsnap.train", "torch")


class TrainingRound:
    """A round of training that a loop goes through; `SnapshotKeeper.rounds` gives them.

    Attributes:
        spec: The round: its recipe, generation and index.
        finished: Whether its last epoch is done, and the round is stored.
    """

    def __init__(
        self,
        spec: RoundSpec,
        *,
        checkpoints: Checkpoints,
        checkpoint_every: int,
        owner: str,
        warmup: int,
        finish: Callable[[Round, Mapping[int, Any]], None],
        try_scoring: Callable[[Any], None] | None = None,
        parent: bytes | None = None,
        like: Mapping[str, Any] | None = None,
    ) -> None:
        self.spec = spec
        self.finished = False
        self._checkpoints = checkpoints
        self._every = checkpoint_every
        self._owner = owner
        self._warmup = warmup
        self._finish = finish
        self._try_scoring = try_scoring
        self._parent = parent
        self._like = like
        self._parts: dict[str, Any] = {}
        self._curve: list[float] = []
        self._kept: dict[int, Any] = {}
        self._seconds = 0.0
        self._since = time.perf_counter()
        self._saved: tuple[dict[str, Any], dict[int, Any]] | None = self._load()
        if self._saved is not None:
            self._curve = list(self._saved[0]["curve"])

    def __repr__(self) -> str:
        return f"<TrainingRound {self.spec}: {self.epochs_done} epochs done>"

    @property
    def seed(self) -> int:
        """A seed for this round, as in `torch.manual_seed(training.seed)`."""
        return seeds.number(self.spec.seed, self.spec.canonical(), "own loop") % 2**32

    @property
    def epochs_done(self) -> int:
        """Epochs that are done, also before the loop was stopped."""
        return len(self._curve)

    @property
    def epochs_left(self) -> int:
        """Epochs that are still to be trained."""
        return self.spec.recipe.epochs - self.epochs_done

    @property
    def parent(self) -> Mapping[str, Any] | None:
        """The weights that the round starts from; None for a fresh start."""
        return None if self._parent is None else torch_part().weights_of(self._parent)[0]

    def rate(self, epoch: int, *, step: int = 0, steps: int = 1) -> float:
        """What to multiply the base learning rate with in an epoch, or in one of its steps."""
        return rate_factor(self.spec.recipe, epoch, step=step, steps=steps, warmup=self._warmup)

    def begin(self, model: Any, optimizer: Any = None, *others: Any) -> int:
        """Take what the loop trains with, restored to where it was stopped; the epoch to train.

        Args:
            model: A module, or anything else with `state_dict` and `load_state_dict`.
            optimizer: Its optimiser.
            others: What else the loop has a state in, such as a scaler of gradients or a generator
                of random numbers.
        """
        if self._parts:
            raise TrainingError(f"{self.spec} has begun already: begin a round once.")
        named = {"model": model, "optimizer": optimizer}
        named |= {f"part {place}": one for place, one in enumerate(others, start=3)}
        parts = {}
        for name, one in named.items():
            if one is None and name != "model":
                continue
            part = torch_part().stateful(one)
            if part is None:
                raise PlanError(
                    f"The {name} must have `state_dict` and `load_state_dict`, or be a generator "
                    f"of random numbers, got {type(one).__name__}."
                )
            parts[name] = part
        self._parts = parts
        if self._saved is not None:
            header, self._kept = self._saved
            self._seconds = float(header["seconds"])
            torch_part().restore_loop(self._parts, header)
            self._saved = None
        self._since = time.perf_counter()
        return self.epochs_done

    def epochs(self, model: Any, optimizer: Any = None, *others: Any) -> Iterator[int]:
        """The epochs to train, counted from 0: all of them, or those after the last checkpoint.

        Sets the learning rate of the optimiser before each epoch. `end_epoch` must end each.
        """
        rates = [float(group["lr"]) for group in getattr(optimizer, "param_groups", ())]
        for epoch in range(self.begin(model, optimizer, *others), self.spec.recipe.epochs):
            # Looked up again: a restored optimiser has new groups.
            set_rates(getattr(optimizer, "param_groups", ()), rates, self.rate(epoch))
            yield epoch
            if self.epochs_done != epoch + 1:
                raise TrainingError(
                    f"Epoch {epoch} of {self.spec} has no validation accuracy. Call "
                    "`end_epoch(epoch, accuracy)` at the end of each epoch."
                )

    def end_epoch(self, epoch: int, accuracy: float) -> None:
        """Note how good an epoch was, keep its weights if they are worth it, and save the loop.

        Args:
            epoch: The epoch that has just ended, counted from 0.
            accuracy: Its validation accuracy, or another score from 0 to 1 that is better if
                higher.
        """
        recipe = self.spec.recipe
        if not self._parts:
            raise TrainingError(f"{self.spec} has not begun: call `epochs` or `begin` first.")
        if epoch != self.epochs_done:
            ended = f"epoch {self.epochs_done - 1}" if self.epochs_done else "its beginning"
            after = "no epoch is left" if self.finished else f"epoch {self.epochs_done} is next"
            raise TrainingError(
                f"{self.spec} got the end of epoch {epoch} after {ended}: {after}. End each epoch "
                "once, in order, counted from 0."
            )
        value = _number(accuracy)
        if not 0 <= value <= 1:  # NaN fails this too
            hint = "training has diverged" if math.isnan(value) else "a loss or a percentage is not"
            raise TrainingError(
                f"The validation accuracy of epoch {epoch} of {self.spec} is {value:g}, and must "
                f"be from 0 to 1, higher for a better model: {hint}. Earlier epochs are kept."
            )
        curve = [*self._curve, value]
        worth = set(snapshot_epochs(recipe, curve).tolist())
        kept = {place: state for place, state in self._kept.items() if place in worth}
        if epoch in worth:
            kept[epoch] = self._snapshot(epoch)
        self._curve, self._kept = curve, kept
        now = time.perf_counter()
        self._seconds, self._since = self._seconds + now - self._since, now
        complete = len(curve) == recipe.epochs
        if complete or len(curve) % self._every == 0:
            self._save()
        if self._try_scoring is not None and epoch in kept:
            self._try_scoring(kept[epoch])
            self._try_scoring = None
        if complete:
            self._end()

    def settle(self) -> None:
        """Store a round that was stopped after its last epoch, before its snapshots were scored."""
        if self._saved is not None and not self.epochs_left:
            header, self._kept = self._saved
            self._seconds = float(header["seconds"])
            self._end()

    def _snapshot(self, epoch: int) -> Any:
        """The weights after an epoch, if they are of the shapes of those before."""
        train = torch_part()
        state = train.copied(self._parts["model"].state_dict())
        train.check_trained(state, what=f"epoch {epoch}")
        if self._kept:
            other = min(self._kept)
            train.check_same_shapes(state, self._kept[other], what=f"epoch {other}")
        elif self._like is not None:
            train.check_same_shapes(state, self._like, what="the rounds before")
        return state

    def _end(self) -> None:
        epochs = snapshot_epochs(self.spec.recipe, self._curve)
        done = Round(
            spec=self.spec,
            accuracy=np.array(self._curve)[epochs],
            epochs=epochs,
            scores={},
            curve=np.array(self._curve),
            seconds=self._seconds,
        )
        self._finish(done, self._kept)
        self.finished = True

    def _save(self) -> None:
        header = {
            "spec": self.spec.canonical(),
            "owner": self._owner,
            "curve": self._curve,
            "seconds": self._seconds,
        }
        self._checkpoints.save(self.spec, torch_part().pack_loop(self._parts, self._kept, header))

    def _load(self) -> tuple[dict[str, Any], dict[int, Any]] | None:
        content = self._checkpoints.load(self.spec)
        if content is None:
            return None
        try:
            header, kept = torch_part().unpack_loop(content, what=f"The checkpoint of {self.spec}")
            if header["spec"] != self.spec.canonical() or header["owner"] != self._owner:
                raise FileError(f"The checkpoint of {self.spec} was made by another loop.")
            worth = snapshot_epochs(self.spec.recipe, header["curve"]).tolist()
            if set(worth) != set(kept) or len(header["curve"]) > self.spec.recipe.epochs:
                raise FileError(f"The checkpoint of {self.spec} lacks snapshots.")
        except (FileError, KeyError, TypeError, ValueError) as error:
            # Nothing but time is lost, so this is no reason to stop.
            log.warning("Ignoring an unusable checkpoint. %s Starting that round over.", error)
            return None
        return header, kept


def check_epochs(training: TrainingRound, asked: float, setting: str) -> None:
    """Raise PlanError unless a trainer is set to the epochs that are left of a round."""
    if asked != training.epochs_left:
        raise PlanError(
            f"{training.spec} has {training.epochs_left} epochs left, but the trainer is set to "
            f"{asked:g}. Set `{setting}=training.epochs_left`."
        )


def metric_of(metrics: Mapping[str, Any], name: str, *, epoch: int, hint: str) -> Any:
    """The validation score of an epoch among what a trainer has logged.

    Args:
        metrics: What it has logged.
        name: The metric to look for.
        epoch: The epoch that has just ended.
        hint: What to do where validation never ran.

    Raises:
        TrainingError: There is no such metric.
        PlanError: It is a loss.
    """
    if "loss" in name.lower():
        raise PlanError(f"{name!r} is better if lower. Name a score that is better if higher.")
    if name not in metrics:
        logged = ", ".join(sorted(map(str, metrics))) or "nothing"
        raise TrainingError(
            f"Epoch {epoch} ended without {name!r}: validation did not run, or does not log it. "
            f"Logged: {logged}. {hint}"
        )
    return metrics[name]


def set_rates(groups: Sequence[dict[str, Any]], rates: Sequence[float], factor: float) -> None:
    """Set the learning rate of every group of an optimiser."""
    if len(groups) != len(rates):
        raise PlanError(
            f"The optimiser began the round with {len(rates)} groups of parameters, and has "
            f"{len(groups)} now. Add all groups before the round begins; freeze parameters by "
            "`requires_grad`."
        )
    for group, rate in zip(groups, rates, strict=True):
        group["lr"] = rate * factor


def _number(accuracy: Any) -> float:
    """A validation accuracy of any kind of number."""
    try:
        if isinstance(accuracy, float | int | np.number) or getattr(accuracy, "shape", None) == ():
            return float(accuracy)
    except (TypeError, ValueError):
        pass
    shape = getattr(accuracy, "shape", None)
    found = type(accuracy).__name__ + (f" of the shape {tuple(shape)}" if shape else "")
    raise TrainingError(f"`accuracy` must be one number, got {found}.")


def owner_of(*facts: object) -> str:
    """A short text for all that a stored round and its checkpoint depend on."""
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:32]
