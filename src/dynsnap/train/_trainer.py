"""A trainer for any torch module."""

import copy
import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from dynsnap import seeds
from dynsnap._types import AnyArray, MemberScores
from dynsnap.data import Stream, split
from dynsnap.ensemble import Checkpoints, Lesson, Monitor, Round, RoundSpec
from dynsnap.errors import PlanError
from dynsnap.train._alone import AloneStepper, Loss
from dynsnap.train._augment import Augmentation
from dynsnap.train._bags import BagsStepper
from dynsnap.train._bags import suits as suits_bags
from dynsnap.train._chain import Chain
from dynsnap.train._devices import Precision, choose_device, choose_precision, describe, log
from dynsnap.train._drive import Saver, drive
from dynsnap.train._factory import Blueprint
from dynsnap.train._finish import finished
from dynsnap.train._identity import identity
from dynsnap.train._lane import Lane
from dynsnap.train._lockstep import Lockstep, Stepper
from dynsnap.train._optimizers import Adam, OptimizerFactory
from dynsnap.train._predict import Predictor
from dynsnap.train._preparations import preparation
from dynsnap.train._prepare import Encoded, Preparation
from dynsnap.train._stacked import StackedStepper
from dynsnap.train._teaching import Teaching
from dynsnap.train._weights import FORMAT
from dynsnap.train._workshop import Workshop
from dynsnap.train.side_by_side import groups, is_suited, side_by_side


@dataclass(frozen=True, slots=True, kw_only=True)
class _Team:
    """Rounds that may step together.

    Attributes:
        batch: Rows in a step.
        layers: The stack that they are, None for any other module.
        beside: Whether they may step side by side on a GPU.
        bags: Whether they are fastText on bags of words.
        dropout: What their modules are built with.
    """

    batch: int
    layers: Chain | None = None
    beside: bool = False
    bags: bool = False
    dropout: float = 0.0


class TorchTrainer:
    """Trains rounds of a torch module.

    Same spec, same machine, CPU: the same round, bit by bit, whatever else is trained with it.
    Small dense models train side by side as stacks of matrices; which do follows from the model.

    Args:
        stream: The growing data.
        model: Builds a fresh module whenever it is called, with those of the keywords `classes`,
            `dropout`, and `inputs` (the shape of one input) or `words` (the size of the
            vocabulary) that it accepts. The module gives logits (inputs, classes).
        optimizer: Called with parameters and a learning rate, as torch's optimisers are; `Adam`
            unless said otherwise. Its rates are multiplied by the schedule in every epoch.
        loss: Called with logits and labels, gives the mean loss; cross-entropy unless said
            otherwise. A class is called without arguments first.
        augment: Called with a prepared batch and a generator, in training only.
        prepare: "features", "standardised", "pixels", "words", an object of `Preparation`, or
            "auto" for the one that suits the inputs. It is fitted on a round's training rows only.
        batch_size: Rows in a step.
        learning_rate: The rate that schedules multiply.
        device: "cpu", "cuda", "mps", or "auto" for the best there is.
        precision: "float32", "bfloat16" (mixed), or "auto" for what suits the device.
        name: Anything that tells this model from others where its code does not: a version.
        monitor: Is told about every epoch, and may stop the training.
        checkpoints: Keeps unfinished rounds.
        checkpoint_every: Least seconds between two checkpoints of a round.
        keep_weights: Whether rounds carry their learners, or scores only.
        parents: Finds the stored learner that a round starts from, by its key.

    Example:
        >>> from dynsnap.data import Pool
        >>> from dynsnap.ensemble import Recipe, Schedule
        >>> from dynsnap.train.models import mlp
        >>> x, y = np.linspace(-1, 1, 40)[:, None], np.repeat([0, 1], 20)
        >>> pool = Pool(name="toy", inputs=x, labels=y, classes=("low", "high"), ids=np.arange(40))
        >>> stream = Stream(pool=pool, generations=(np.arange(40),),
        ...                 validation=(np.array([4, 4]),), evaluation={"test": pool})
        >>> trainer = TorchTrainer(stream, model=mlp, device="cpu")
        >>> recipe = Recipe(schedule=Schedule("constant"), epochs=3, snapshots=2)
        >>> (done,) = trainer.train([RoundSpec(recipe=recipe, generation=1)])
        >>> done.scores["test"].shape
        (2, 40, 2)
    """

    def __init__(
        self,
        stream: Stream,
        *,
        model: Callable[..., nn.Module],
        optimizer: OptimizerFactory | None = None,
        loss: Loss | type[nn.Module] | None = None,
        augment: Augmentation | None = None,
        prepare: str | Preparation = "auto",
        batch_size: int = 128,
        learning_rate: float = 1e-3,
        device: str = "auto",
        precision: Precision = "auto",
        name: str = "",
        monitor: Monitor | None = None,
        checkpoints: Checkpoints | None = None,
        checkpoint_every: float = 60.0,
        keep_weights: bool = True,
        parents: Callable[[str], bytes] | None = None,
    ) -> None:
        if batch_size < 1:
            raise PlanError(f"`batch_size` must be at least 1, got {batch_size}.")
        if not 0 < learning_rate < float("inf"):
            raise PlanError(f"`learning_rate` must be positive, got {learning_rate}.")
        for setting, value in (("optimizer", optimizer), ("loss", loss), ("augment", augment)):
            if value is not None and not callable(value):
                raise PlanError(f"`{setting}` must be callable, got {type(value).__name__}.")
        if checkpoint_every < 0:
            raise PlanError(f"`checkpoint_every` must not be negative, got {checkpoint_every}.")
        pool = stream.pool
        self._stream = stream
        self._batch_size = batch_size
        self._loss = loss
        self._name = name
        self._monitor = monitor
        self._checkpoints = checkpoints
        self._checkpoint_every = checkpoint_every
        self._keep_weights = keep_weights
        self._lesson: Lesson | None = None
        self.device = choose_device(device)
        chosen_precision = choose_precision(precision, self.device)
        prepared = preparation(prepare, pool.inputs)
        encoded = prepared.encode(pool.inputs)
        blueprint = Blueprint(
            factory=model, classes=len(pool.classes), offers=prepared.offers(encoded)
        )
        some = np.arange(min(2, len(pool)))
        state = prepared.bind(prepared.fit(encoded, some), encoded)
        blueprint.check(prepared.apply(encoded.take(torch.from_numpy(some)), state))
        self._shop = Workshop(
            device=self.device,
            precision=chosen_precision,
            blueprint=blueprint,
            prepare=prepared,
            inputs=encoded.to(self.device),
            labels=torch.from_numpy(pool.labels.astype(np.int64)).to(self.device),
            optimizer=optimizer or Adam(),
            learning_rate=learning_rate,
            augment=augment,
            parents=parents,
        )
        self.hardware = describe(self.device, chosen_precision)
        log.info("Training on %s.", self.hardware)

    @cached_property
    def fingerprint(self) -> str:
        """Text that changes whenever the data, the model or a setting would change a round."""
        shop = self._shop
        parts = [
            f"torch/{FORMAT}",
            self._stream.fingerprint,
            self._name,
            shop.blueprint.text,
            identity(shop.prepare),
            identity(shop.optimizer),
            identity(self._loss),
            identity(shop.augment),
            self._batch_size,
            shop.learning_rate,
            shop.device.type,
            str(shop.precision),
            *(["bags"] if self._bags else []),
            *([f"lesson {self._lesson.fingerprint}"] if self._lesson else []),
        ]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def train(self, specs: Sequence[RoundSpec], /) -> Iterator[Round]:
        """The rounds as they finish."""
        teams: dict[_Team, list[RoundSpec]] = {}
        for spec in specs:
            teams.setdefault(self._team(spec), []).append(spec)
        return self._train(teams)

    def taught(self, lesson: Lesson, *, checkpoints: Checkpoints | None = None) -> "TorchTrainer":
        """The same trainer for students: its rounds learn from a lesson beside the labels.

        Rounds under another lesson have another key. They step as all others do.

        Args:
            lesson: Scores for the rows of the pool, at least for those that are trained on.
            checkpoints: Keeps unfinished rounds of students, under keys of their own.
        """
        assert self._evaluation is not None  # encoded once, for all students
        student = copy.copy(self)
        vars(student).pop("fingerprint", None)  # it was found for a trainer without a lesson
        student._lesson = lesson
        student._checkpoints = checkpoints
        student._shop = dataclasses.replace(
            self._shop, teaching=Teaching.of(lesson, self._stream.pool, self.device)
        )
        return student

    def score(self, weights: Sequence[bytes], inputs: AnyArray, /) -> MemberScores:
        """Scores of stored learners; `Predictor` keeps them ready for more than one call."""
        return self.predictor(weights)(inputs)

    def predictor(self, weights: Sequence[bytes]) -> Predictor:
        """Stored learners, ready to score inputs."""
        return Predictor(
            weights,
            model=self._shop.blueprint.factory,
            prepare=self._shop.prepare,
            device=str(self.device),
        )

    def _train(self, teams: dict[_Team, list[RoundSpec]]) -> Iterator[Round]:
        saver = Saver(
            checkpoints=self._checkpoints, every=self._checkpoint_every, owner=self.fingerprint
        )
        for team, specs in teams.items():
            stepper = self._stepper(team, specs)
            lockstep = Lockstep(specs, self._open, width=stepper.width)
            for lane in drive(lockstep, stepper, saver=saver, monitor=self._monitor):
                yield finished(lane, self._shop, self._evaluation, keep_weights=self._keep_weights)

    @cached_property
    def _evaluation(self) -> dict[str, Encoded]:
        """The evaluation sets, encoded once for all rounds."""
        return {
            name: self._shop.prepare.encode(pool.inputs).to(self.device)
            for name, pool in self._stream.evaluation.items()
        }

    def _team(self, spec: RoundSpec) -> "_Team":
        """Rounds with which a round may step, and how.

        Follows from the spec alone, and finds what is wrong with it before anything is trained.
        """
        shop, stream = self._shop, self._stream
        if not 1 <= spec.generation <= len(stream.generations):
            raise PlanError(
                f"{spec} asks for a generation that the stream does not have: it has "
                f"{len(stream.generations)}."
            )
        if spec.parent is not None and shop.parents is None:
            raise PlanError(f"{spec} starts from a stored learner: hand in `parents` to find it.")
        spec.recipe.schedule.multipliers(spec.recipe.epochs, window=spec.recipe.window)
        if self._lesson is not None:
            untaught = ~self._lesson.taught[stream.generations[spec.generation - 1]]
            if untaught.any():
                raise PlanError(f"{spec} trains on {untaught.sum()} rows that no teacher scored.")
        held_out = int(np.sum(stream.validation[spec.generation - 1]))
        rows = len(stream.generations[spec.generation - 1]) - held_out
        layers = shop.blueprint.layers(spec.recipe.dropout)
        batch = min(self._batch_size, rows)
        if self._bags:
            return _Team(batch=batch, bags=True)
        plain = isinstance(shop.optimizer, Adam) and self._loss is None
        if plain and is_suited(shop):
            dropout = 0.0 if self._grouped else spec.recipe.dropout
            return _Team(batch=batch, beside=True, dropout=dropout)
        stackable = (
            plain
            and shop.prepare.elementwise
            and shop.device.type == "cpu"
            and shop.precision == torch.float32
        )
        return _Team(batch=batch, layers=layers if stackable else None)

    @cached_property
    def _bags(self) -> bool:
        """Whether rounds are fastText that can be trained on bags of words."""
        return self._loss is None and suits_bags(self._shop)

    @cached_property
    def _grouped(self) -> bool:
        """Whether rounds side by side on a GPU can be one network."""
        return groups(self._shop, self._shop.blueprint.build())

    def _stepper(self, team: "_Team", specs: list[RoundSpec]) -> Stepper:
        if team.layers is not None:
            return StackedStepper(self._shop, layers=team.layers)
        if team.bags:
            return BagsStepper(self._shop)
        if team.beside:
            longest = max(len(rows) for rows in self._stream.generations)
            # A long round that starts last would be alone in the end.
            specs.sort(key=lambda spec: -spec.recipe.epochs * self._size(spec))
            stepper = side_by_side(
                self._shop,
                lambda: self._shop.blueprint.build(dropout=team.dropout),
                batch_size=team.batch,
                rows=longest + team.batch,
                wanted=len(specs),
                grouped=self._grouped,
            )
            if stepper is not None:
                return stepper
        loss = self._loss() if isinstance(self._loss, type) else self._loss
        return AloneStepper(self._shop, loss=loss or functional.cross_entropy)

    def _size(self, spec: RoundSpec) -> int:
        return len(self._stream.generations[spec.generation - 1])

    def _open(self, spec: RoundSpec) -> Lane:
        """A round at its start: its own rows, and what it learns from them before training."""
        rng = seeds.generator(spec.seed, spec.canonical(), "split")
        train, validation = split(self._stream, spec.generation, rng)
        shop = self._shop
        if spec.parent is None:
            prepared = shop.prepare.fit(shop.inputs, train)
        else:
            prepared = shop.parent(spec).prepared
        return Lane(
            spec=spec,
            train=train,
            validation=validation,
            batch=min(self._batch_size, len(train)),
            prepared=prepared,
        )
