"""What a comparison found: plain values, from which every table, file and page is made."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

from dynsnap._registry import Displayed
from dynsnap._renamed import RenamedWarning, now_called
from dynsnap._types import Floats
from dynsnap.comparison import _display
from dynsnap.predictions import AlignmentReport

GroupKind: TypeAlias = Literal["class", "slice", "frequency"]
GroupKey: TypeAlias = tuple[GroupKind, str, str]  # kind, column, name

CONFIDENCE = 0.95  # of intervals, unless another level is asked for


@dataclass(frozen=True, slots=True)
class Estimate:
    """A measured value with its interval (None where no interval exists).

    `dynsnap.comparison.intervals` states how intervals are made. There is none where the value is
    undefined, or where there are too few resamples for the level; `reason` states which.
    """

    value: float
    low: float | None = None
    high: float | None = None
    reason: str = ""


Estimates: TypeAlias = Mapping[str, Estimate]  # by metric name, in the catalogue's order


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class GenerationResult:
    """One generation on its own: accuracy, calibration and the like."""

    name: str
    metrics: Estimates

    def __repr__(self) -> str:
        return _display.generation_text(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledInputs:
    """The inputs that have a true class, where others have none: metrics of the truth are on them.

    Attributes:
        inputs: How many there are.
        weight: Their total weight.
        counting: How many have a weight above 0; None when nothing is weighted.
        effective: Kish's effective number of them; None when nothing is weighted.
        churn: Of all of them, the share on which the first two generations differ.
    """

    inputs: int
    weight: float
    counting: int | None = None
    effective: float | None = None
    churn: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class GroupResult:
    """A pair of generations on a part of the inputs.

    Attributes:
        kind: "class" (by true class), "slice" (by a column's value), or "frequency"
            (majority and minority classes).
        column: The slice's column; "truth" for classes, "frequency" for the last kind.
        name: The class or the column's value; "majority" or "minority".
        inputs: How many inputs fall into it.
        weight: Their total weight; equal to `inputs` when nothing is weighted.
        counting: How many of them have a weight above 0; None when nothing is weighted.
        effective: Kish's effective number of them, (Σw)²/Σw²; None when nothing is weighted.
        metrics: Those of the pair, and the accuracy of the newer generation; of a class also its
            precision, recall and F1 in the newer generation, and how they changed.
        old_metrics: Of a class, its precision, recall and F1 in the older generation.
        changed: The p-value of McNemar's exact test within the group, None without truth.
        corrected: The same by Holm's method, for the number of all groups of the pair.
        classes: The classes that make up the group, for majority and minority.
        transitions: Counts of the four cases within the group, None without truth.
        whole: Whether it holds every input, as the one value of a constant column does. Rules may
            name it; reports leave it out, and p-values are not corrected for it.
        noise_floor: Flip metrics of the group between OLD and its twin, values alone; None
            without a twin, and of more than two generations.
        multiples: Flip metrics of the group in multiples of those; see `PairResult.multiples`.
        labelled: Those that have a true class; None where all have one, or none has.
    """

    kind: GroupKind
    column: str
    name: str
    inputs: int
    weight: float
    metrics: Estimates
    changed: float | None = None
    corrected: float | None = None
    classes: tuple[str, ...] = ()
    transitions: "TransitionCounts | None" = None
    counting: int | None = None
    effective: float | None = None
    whole: bool = False
    noise_floor: Estimates | None = None
    multiples: Estimates | None = None
    labelled: LabelledInputs | None = None
    old_metrics: Estimates = field(default_factory=dict)

    @property
    def key(self) -> GroupKey:
        """What distinguishes the group from all others of its pair.

        The kind is part of it: a slice may well come from a column that is called "truth".
        """
        return self.kind, self.column, self.name

    def __repr__(self) -> str:
        return _display.group_text(self)


@dataclass(frozen=True, slots=True)
class Flow:
    """Inputs of one true class that moved from one label to another (or kept it)."""

    truth: str | None
    old: str
    new: str
    inputs: int


@dataclass(frozen=True, slots=True)
class TransitionCounts:
    """How many inputs fall into each of the four cases; None without truth."""

    kept: int
    gained: int
    lost: int
    never: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownLabels:
    """Labels of one generation that are no true class of any input compared.

    Attributes:
        name: The generation; the twin is called "noise floor".
        share: The share of the inputs that have such a label, by weight where there are weights.
        labels: The labels, most frequent first.
        alike: Those that differ from a true class only in how it is written (case, spaces,
            underscores, "1" and "1.0"), each with that class. Without truth: from a label of the
            first generation.
    """

    name: str
    share: float
    labels: tuple[str, ...]
    alike: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class ClassChange:
    """A class that not all generations know: they have no score above 0 for it, or no such label.

    Attributes:
        name: The class.
        generation: Of a new class, the first generation that knows it; of a dropped one, the last.
    """

    name: str
    generation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FlippedInput:
    """An input that a retrain lost; without truth, one whose label changed.

    Attributes:
        old_confidence: The old score of the old label, None without scores.
        new_confidence: The new score of the new label, None without scores.
        slices: Its value in each slice, in the order of `Comparison.slices`.
    """

    id: str
    truth: str | None
    old_label: str
    new_label: str
    old_confidence: float | None = None
    new_confidence: float | None = None
    slices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UnstableInput:
    """An input whose label changed at least twice: its label in every generation."""

    id: str
    truth: str | None
    labels: tuple[str, ...]
    changes: int


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PairResult:
    """An older and a newer generation side by side.

    Attributes:
        transitions: Counts of the four cases, None without truth.
        mcnemar: p-value of McNemar's exact test that lost and gained are equally likely.
        flows: The changed labels, most frequent first, at most a few hundred, and as many of
            those that were right before.
        lost_between: For each slice that is a family of classes, the inputs lost by the family of
            their true class and that of their new label, most frequent first.
        groups: Classes, slices, majority and minority classes.
        noise_floor: The flip metrics between OLD and its twin, trained again on the same data.
        multiples: Of two generations with a twin, flip metrics in multiples of the noise floor: 1
            where NEW differs from OLD as much as the twin does. Where the floor is 0 the value is
            undefined or infinite, and the interval states what these inputs leave open.
        flipped: Of a generation and the next, some of the inputs lost (without truth, changed):
            at most a few hundred, those that the newer one is surest of. `flips` lists all.
    """

    old: str
    new: str
    metrics: Estimates
    transitions: TransitionCounts | None = None
    mcnemar: float | None = None
    flows: tuple[Flow, ...] = ()
    lost_between: Mapping[str, tuple[Flow, ...]] = field(default_factory=dict)
    groups: tuple[GroupResult, ...] = ()
    noise_floor: Estimates | None = None
    multiples: Estimates | None = None
    flipped: tuple[FlippedInput, ...] = ()

    def __repr__(self) -> str:
        return _display.pair_text(self)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Comparison(Displayed):
    """Generations of a classifier side by side: the one object behind every output.

    A console shows it in at most 20 lines; a notebook shows tiles, the flow and the worst classes.

    Attributes:
        inputs: Inputs that all generations share, and that everything here is computed on.
        counting: How many of them have a weight above 0; None when nothing is weighted.
        effective: Kish's effective number of inputs, (Σw)²/Σw²: how many that weigh the same would
            be as much evidence; None when nothing is weighted.
        averages: The paper's reported numbers: generation metrics averaged over generations, pair
            metrics over all pairs.
        agreement: Metrics of all generations at once (Fleiss' kappa, ambiguity, ...).
        notes: What was left out and why, and what the reader should know, one sentence each.
        confidence: The level of every interval.
        families: For each slice that is made of whole classes, such as superclasses, the value of
            every class that occurs.
        unknown_labels: For each generation that has any, the labels that are no true class.
        new_classes: Classes that the first generation does not know and a later one does.
        dropped_classes: Classes that the last generation does not know and an earlier one does.
        unstable: The inputs whose label changed most often, at least twice; at most a few hundred.
        task: What answers are: "classification", or one of `dynsnap.predictions.tasks`.
        labelled: The inputs that have a true class; None where all have one, or none has.
        ambiguity_so_far: For every generation, the share of inputs that it or one between it and
            the first labelled unlike the first.
    """

    inputs: int
    classes: tuple[str, ...]
    generations: tuple[GenerationResult, ...]
    pairs: tuple[PairResult, ...]
    averages: Estimates
    agreement: Estimates
    alignment: AlignmentReport
    notes: tuple[str, ...] = ()
    confidence: float = CONFIDENCE
    resamples: int = 1000
    weighted: bool = False
    has_truth: bool = True
    has_scores: bool = True
    slices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    families: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    unknown_labels: tuple[UnknownLabels, ...] = ()
    unstable: tuple[UnstableInput, ...] = ()
    ambiguity_so_far: tuple[float, ...] = ()
    counting: int | None = None
    effective: float | None = None
    task: str = "classification"
    new_classes: tuple[ClassChange, ...] = ()
    dropped_classes: tuple[ClassChange, ...] = ()
    labelled: LabelledInputs | None = None

    @property
    def unlabelled(self) -> int:
        """Inputs without a true class, beside others that have one."""
        return 0 if self.labelled is None else self.inputs - self.labelled.inputs

    def __repr__(self) -> str:
        return _display.comparison_text(self)

    def to_frame(self, of: str = "metrics", *, library: str | None = None) -> Any:
        """A data frame of pandas or polars, whichever is there.

        Args:
            of: "metrics", a row for each metric of each generation and pair; "groups", a row for
                each class and slice of each pair; "flows", a row for each change of a label.
            library: "pandas" or "polars", where both are there.
        """
        return _display.comparison_frame(self, of, library)

    @property
    def restless(self) -> tuple[UnstableInput, ...]:
        """The old name of `unstable`."""
        said = f"{now_called('Comparison.restless', 'Comparison.unstable')}."
        warnings.warn(said, RenamedWarning, stacklevel=2)
        return self.unstable

    def matrix(self, metric: str) -> Floats:
        """A pair metric for every two generations, as a symmetric N×N table.

        Its diagonal holds what a generation has with itself: 1 for consistency, its accuracy for
        correct-consistency, NaN for metrics with no such reading.
        """
        names = [generation.name for generation in self.generations]
        table = np.full((len(names), len(names)), np.nan)
        for pair in self.pairs:
            i, j = names.index(pair.old), names.index(pair.new)
            table[i, j] = table[j, i] = pair.metrics[metric].value
        for i, generation in enumerate(self.generations):
            if metric == "consistency":
                table[i, i] = 1.0
            elif metric == "correct_consistency":
                table[i, i] = generation.metrics["accuracy"].value
        return table
