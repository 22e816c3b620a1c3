"""What may be chosen about a comparison."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from dynsnap.comparison._results import CONFIDENCE
from dynsnap.comparison.intervals import BayesianBootstrap
from dynsnap.errors import PlanError, did_you_mean
from dynsnap.metrics import GROUPS, Group
from dynsnap.metrics._ranking import CHEAP_SCORES

_FEW_CLASSES = 20  # up to so many, five of them are too many to say much


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What may be chosen about a comparison. A value that makes no sense is refused at once.

    Attributes:
        confidences: The levels of the intervals; there is a comparison for each.
        resamples: How many resamples the intervals come from.
        seed: Names the resamples.
        top_k: The k of top-k metrics; None for 2 and, with more than 20 classes, 5.
        minority_share: Majority classes cover this share of the inputs.
        families: For slices that are made of whole classes, the value of classes without inputs.
        twin: Whether the last generation is the first one trained again, for the noise floor.
        metrics: Which groups of metrics are measured beside "consistency", of `metrics.GROUPS`;
            None for "classification" and, where rows times classes are few, "ranking".
        known_classes: Whether all labels are known to be of the classes of the truth, as those that
            a study has predicted are. Others are refused where none of them is a true class.

    Raises:
        PlanError: A setting does not make sense.
    """

    confidences: Sequence[float] = (CONFIDENCE,)
    resamples: int = 1000
    seed: int = 0
    top_k: Sequence[int] | None = None
    minority_share: float = 0.9
    families: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    twin: bool = False
    metrics: Collection[str] | None = None
    known_classes: bool = False

    def __post_init__(self) -> None:
        if not self.levels:  # which also refuses what is no level
            raise PlanError("`confidences` must hold at least one level, such as 0.95.")
        if not 0 < self.minority_share <= 1:
            raise PlanError(
                f"`minority_share` must lie between 0 and 1, got {self.minority_share:g}."
            )
        if self.top_k is not None and any(k < 1 for k in self.top_k):
            raise PlanError(f"`top_k` must be at least 1, got {min(self.top_k)}.")
        if isinstance(self.metrics, str):
            raise PlanError(f"`metrics` must be names of groups, such as [{self.metrics!r}].")
        for name in self.metrics or ():
            if name not in GROUPS:
                hint = did_you_mean(str(name), GROUPS)
                raise PlanError(f"There is no group of metrics {name!r}. {hint}")

    def measures(self, group: Group, *, rows: int, classes: int) -> bool:
        """Whether a group of metrics is measured."""
        if self.metrics is not None:
            return group in self.metrics
        return group != "ranking" or rows * classes <= CHEAP_SCORES

    @property
    def levels(self) -> list[BayesianBootstrap]:
        """What makes the intervals of each level."""
        return [
            BayesianBootstrap(confidence=each, resamples=self.resamples, seed=self.seed)
            for each in self.confidences
        ]

    def top_k_of(self, classes: int) -> tuple[int, ...]:
        """Every k of top-k metrics, ascending, some maybe greater than the number of classes."""
        wanted = default_top_k(classes) if self.top_k is None else self.top_k
        return tuple(sorted(set(wanted)))


def default_top_k(classes: int) -> tuple[int, ...]:
    """The k of top-k metrics by default: 2 and, with more than 20 classes, 5.

    Example:
        >>> default_top_k(10), default_top_k(100)
        ((2,), (2, 5))
    """
    return (2, 5) if classes > _FEW_CLASSES else (2,)
