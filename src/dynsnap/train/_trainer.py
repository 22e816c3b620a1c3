"""A trainer for any torch module."""

import copy
import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from dynsnap import seeds
from dynsnap._types import AnyArray, Floats, MemberScores, Positions
from dynsnap.data import (
    SELECTION_SET,
    ClassWeight,
    Stream,
    check_class_weight,
    described_class_weight,
    draw_groups,
    split,
    training_weights,
)
from dynsnap.ensemble import (
    Checkpoints,
    Judge,
    Monitor,
    Round,
    RoundSpec,
    SelectionMetric,
    SoftTargets,
)
from dynsnap.errors import PlanError
from dynsnap.train._alone import Loss, row_loss
from dynsnap.train._augment import Augmentation
from dynsnap.train._context import TrainingContext
from dynsnap.train._devices import Precision, choose_device, choose_precision, describe, log
from dynsnap.train._distillation import RoundTargets
from dynsnap.train._drive import CheckpointSaver, drive, finished
from dynsnap.train._factory import Blueprint
from dynsnap.train._final_weights import FinalWeights, HeldOutRows
from dynsnap.train._identity import identity
from dynsnap.train._lockstep import Lockstep, RoundState
from dynsnap.train._optimizers import Adam, OptimizerFactory
from dynsnap.train._predict import Predictor
from dynsnap.train._preparations import preparation
from dynsnap.train._prepare import Encoded, Preparation, State
from dynsnap.train._round_groups import RoundGroup, RoundGroups
from dynsnap.train._teacher import targets_of
from dynsnap.train._text import Words
from dynsnap.train._weights import FORMAT

_ASIDE = 0.1  # of the rows of a new class, where nothing else shows whether it is forgotten


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
        prepare: "features", "standardised", "pixels", "images", "words", an object of
            `Preparation`, or "auto" for the one that suits the inputs. It is fitted on a round's
            training rows only.
        batch_size: Rows in a step.
        learning_rate: The rate that schedules multiply.
        device: "cpu", "cuda", "mps", or "auto" for the best there is.
        precision: "float32", "bfloat16" (mixed), or "auto" for what suits the device.
        name: Anything that distinguishes this model from others where its code does not: a version.
        monitor: Receives every epoch, and may stop the training.
        checkpoints: Keeps unfinished rounds.
        checkpoint_every: Least seconds between two checkpoints of a round.
        keep_weights: Whether rounds carry their learners, or scores only.
        parents: Finds the stored learner that a round starts from, by its key.
        warmup: Epochs at the beginning of a round in which the learning rate grows linearly to
            what the schedule says.
        class_weight: How much the rows of each class count: "balanced", or weights by class name.
            The weights of the pool's rows are multiplied by it. A round's weights are scaled to 1
            on average, and multiply the losses of rows.
        selection_metric: What snapshots are chosen and pruned by: see `dynsnap.ensemble.Judge`.
            Weights of rows count in it.

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
        warmup: int = 0,
        class_weight: ClassWeight = None,
        selection_metric: str | SelectionMetric = "accuracy",
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
        if not isinstance(warmup, int) or isinstance(warmup, bool) or warmup < 0:
            raise PlanError(f"`warmup` must be a number of epochs, 0 or more, got {warmup!r}.")
        pool = stream.pool
        check_class_weight(class_weight, pool.classes)
        weighted = bool(class_weight) or pool.weights is not None
        if weighted and loss is not None:
            row_loss(loss() if isinstance(loss, type) else loss)
        self._stream = stream
        self._class_weight = class_weight
        self._warmup = warmup
        self._judge = Judge(selection_metric, weighted=pool.weights is not None)
        self._batch_size = batch_size
        self._loss = loss
        self._name = name
        self._monitor = monitor
        self._checkpoints = checkpoints
        self._checkpoint_every = checkpoint_every
        self._keep_weights = keep_weights
        self._targets: SoftTargets | None = None
        self._given: RoundTargets | None = None
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
        self._context = TrainingContext(
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
        self._round_groups = RoundGroups(
            context=self._context,
            stream=stream,
            batch_size=batch_size,
            loss=loss,
            weighted=weighted,
        )
        self.hardware = describe(self.device, chosen_precision)
        log.info("Training on %s.", self.hardware)

    @cached_property
    def fingerprint(self) -> str:
        """Text that changes whenever the data, the model or a setting would change a round."""
        context = self._context
        parts = [
            f"torch/{FORMAT}",
            self._stream.fingerprint,
            self._name,
            context.blueprint.text,
            identity(context.prepare),
            identity(context.optimizer),
            identity(self._loss),
            identity(context.augment),
            self._batch_size,
            context.learning_rate,
            context.device.type,
            str(context.precision),
            *(["bags"] if self._round_groups.bags else []),
            *(["new words"] if isinstance(context.prepare, Words) else []),
            *([f"lesson {self._targets.fingerprint}"] if self._targets else []),
            *([f"warmup {self._warmup}"] if self._warmup else []),
            *(
                [f"class weight {described_class_weight(self._class_weight)}"]
                if self._class_weight
                else []
            ),
            *([f"selected by {judged}"] if (judged := self._judge.fingerprint) else []),
        ]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def train(self, specs: Sequence[RoundSpec], /) -> Iterator[Round]:
        """The rounds as they finish."""
        for spec in specs:  # before anything is trained
            self._check(spec)
        return self._train(self._round_groups.formed(specs))

    def taught(
        self, targets: SoftTargets, *, checkpoints: Checkpoints | None = None
    ) -> "TorchTrainer":
        """The same trainer for students: its rounds learn from soft targets beside the labels.

        Rounds with other targets have another key. They step as all others do.

        Args:
            targets: Scores for the rows of the pool, at least for those that are trained on.
            checkpoints: Keeps unfinished rounds of students, under keys of their own.
        """
        assert self._evaluation is not None  # encoded once, for all students
        student = copy.copy(self)
        vars(student).pop("fingerprint", None)  # it was found for a trainer without them
        student._targets = targets
        student._checkpoints = checkpoints
        student._given = RoundTargets.of(targets, self._stream.pool, self.device)
        student._round_groups = dataclasses.replace(self._round_groups, taught=True)
        return student

    def score(self, weights: Sequence[bytes], inputs: AnyArray, /) -> MemberScores:
        """Scores of stored learners; `Predictor` keeps them ready for more than one call."""
        return self.predictor(weights)(inputs)

    def predictor(self, weights: Sequence[bytes]) -> Predictor:
        """Stored learners, ready to score inputs."""
        return Predictor(
            weights,
            model=self._context.blueprint.factory,
            prepare=self._context.prepare,
            device=str(self.device),
        )

    def _train(self, groups: dict[RoundGroup, list[RoundSpec]]) -> Iterator[Round]:
        for group, specs in groups.items():
            stepper = self._round_groups.stepper(group, specs)
            saver = CheckpointSaver(
                checkpoints=self._checkpoints,
                every=self._checkpoint_every,
                owner=f"{self.fingerprint} {stepper.form}",
            )
            lockstep = Lockstep(specs, self._open, width=stepper.width)
            judge = None if self._judge.plain else self._judged
            for round_ in drive(lockstep, stepper, saver=saver, monitor=self._monitor, judge=judge):
                yield finished(
                    round_,
                    self._context,
                    self._evaluation,
                    keep_weights=self._keep_weights,
                    held_out=self._held_out(round_.spec) if round_.spec.interpolate else None,
                    judge=judge,
                )

    def _judged(self, round_: RoundState, weights: State) -> float:
        """The selection metric of a round with certain weights, on its validation rows."""
        pool, rows = self._stream.pool, round_.validation
        return self._judge(
            pool.labels[rows],
            FinalWeights(round_, self._context).validation_scores(weights),
            weights=None if pool.weights is None else pool.weights[rows],
            inputs=pool.inputs[rows],
        )

    def _row_weights(self, train: Positions) -> Tensor | None:
        """How much each row of the pool counts in the loss: 1 on average over these."""
        own = training_weights(self._stream.pool, train, self._class_weight)
        if own is None:
            return None
        found = np.zeros(len(self._stream.pool), np.float32)
        found[train] = own / own.mean()
        return torch.from_numpy(found).to(self.device)

    def _often(self, spec: RoundSpec, train: Positions) -> Floats | None:
        """How often a round draws each of its rows, for once that those of known classes are."""
        if spec.new_class_weight == 1:
            return None
        new = self._stream.new_classes(spec.generation)[self._stream.pool.labels[train]]
        return np.where(new, spec.new_class_weight, 1.0) if new.any() else None

    @cached_property
    def _evaluation(self) -> dict[str, Encoded]:
        """The evaluation sets, encoded once for all rounds."""
        return {
            name: self._context.prepare.encode(pool.inputs).to(self.device)
            for name, pool in self._stream.evaluation.items()
        }

    def _held_out(self, spec: RoundSpec) -> HeldOutRows:
        """The rows that no network of any generation trains on, as far as they have arrived."""
        rows = self._stream.selection_holdout[spec.generation - 1]
        held = self._stream.evaluation[SELECTION_SET]
        return HeldOutRows(
            inputs=self._evaluation[SELECTION_SET],
            rows=rows,
            labels=held.labels[rows],
            new=self._stream.new_classes(spec.generation),
            weights=None if held.weights is None else held.weights[rows],
            pool_weights=self._stream.pool.weights,
        )

    def _set_aside(self, spec: RoundSpec, train: Positions) -> Positions:
        """A tenth of the training rows of each new class that the held-out rows lack."""
        held_out, labels = self._held_out(spec), self._stream.pool.labels[train]
        lacking = [
            np.flatnonzero(labels == place)
            for place in np.flatnonzero(held_out.new)
            if place not in held_out.labels
        ]
        rng = seeds.generator(spec.seed, spec.seed_name(), "aside")
        if (groups := self._stream.pool.groups) is not None:
            wanted = np.zeros(len(self._stream.pool.classes), np.intp)
            for rows in lacking:
                if len(rows) > 1:
                    wanted[labels[rows[0]]] = max(1, round(_ASIDE * len(rows)))
            if not wanted.any():
                return np.empty(0, np.intp)
            return train[draw_groups(labels, groups[train], wanted, rng)]
        drawn = [
            train[rng.permutation(rows)[: max(1, round(_ASIDE * len(rows)))]]
            for rows in lacking
            if len(rows) > 1
        ]
        return np.sort(np.concatenate(drawn)) if drawn else np.empty(0, np.intp)

    def _check(self, spec: RoundSpec) -> None:
        """Raise for a round that cannot be trained here."""
        stream = self._stream
        if not 1 <= spec.generation <= len(stream.generations):
            raise PlanError(
                f"{spec} asks for a generation that the stream does not have: it has "
                f"{len(stream.generations)}."
            )
        recipe, how = spec.recipe, spec.distillation
        if (spec.parent is not None or how is not None) and self._context.parents is None:
            raise PlanError(f"{spec} needs a stored learner: hand in `parents` to find it.")
        assert len(recipe.multipliers) == recipe.epochs  # raises for a schedule of other epochs
        if recipe.smoothing and self._loss not in (None, functional.cross_entropy):
            raise PlanError(
                f"{spec} smooths labels, which cross-entropy knows how to use and a `loss` of "
                "your own may not. Leave `smoothing` out, or smooth them in your loss."
            )
        if recipe.average and recipe.epochs * self._round_groups.steps(spec) < 2:
            raise PlanError(
                f"{spec} averages weights over its steps, and takes only one. Leave `average` out, "
                "train for more epochs, or lower `batch_size`."
            )
        if (how is not None or spec.interpolate) and spec.generation == 1:
            raise PlanError(f"{spec} has a teacher, but no generation comes before the first.")
        if spec.interpolate and not stream.selection_holdout:
            raise PlanError(
                f"{spec} is moved toward the deployed weights as far as rows allow that no network "
                "was trained on, and this data has no such rows: set `selection_holdout`."
            )
        if recipe.codistill and self._round_groups.weighted:
            raise PlanError(
                f"{spec} is co-distilled, and its two networks take no weights of rows or classes. "
                "Leave `sample_weight` and `class_weight` out, or `codistill`."
            )
        if recipe.codistill and self._targets is not None:
            raise PlanError(f"{spec} is co-distilled, and this trainer has soft targets.")
        if how is not None and self._targets is not None:
            raise PlanError(f"{spec} has a teacher of its own, and this trainer has soft targets.")
        if self._targets is not None:
            untaught = ~self._targets.taught[stream.generations[spec.generation - 1]]
            if untaught.any():
                raise PlanError(f"{spec} trains on {untaught.sum()} rows that no teacher scored.")

    def _open(self, spec: RoundSpec) -> RoundState:
        """A round at its start: its own rows, and what it learns from them before training."""
        rng = seeds.generator(spec.seed, spec.seed_name(), "split")
        train, validation = split(self._stream, spec.generation, rng)
        context = self._context
        aside = self._set_aside(spec, train) if spec.interpolate else np.empty(0, np.intp)
        batch = min(self._batch_size, len(train))
        train = np.setdiff1d(train, aside) if len(aside) else train
        targets = self._given
        if spec.distillation is not None:
            known = self._stream.learned(spec.generation - 1)
            targets = targets_of(spec, train, known, context)
        return RoundState(
            spec=spec,
            train=train,
            validation=validation,
            batch=batch,
            prepared=context.prepared(spec, train),
            targets=targets,
            weights=self._row_weights(train),
            often=self._often(spec, train),
            warmup=self._warmup,
            aside=aside,
        )
