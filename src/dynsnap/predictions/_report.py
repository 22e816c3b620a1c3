"""How well the ids of several predictions cover each other."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from dynsnap.predictions._digest import IN_MEMORY, Verification
from dynsnap.predictions._same import Same
from dynsnap.predictions._text import listed


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignmentReport:
    """What joining several predictions by id found.

    Attributes:
        names: What each generation is called.
        rows: Inputs of each generation.
        shared: Ids that all of them have, and that everything is compared on.
        missing: For each generation, how many ids it lacks that another one has.
        examples: For each generation, up to five of the ids that it lacks, as text.
        same_order: Whether the shared ids come in one order everywhere.
        verification: For each generation, whether it was read as it was written; empty where
            predictions were handed over in memory.
        weights_of: The generations that have weights; those of the first are used.
        truth_of: The generations that have the truth.
        slices_of: For each slice column, the generations that have it; the first one's is used.
        same: The generations that are one: the same file, or the same arrays in memory.

    Example:
        >>> report = AlignmentReport(names=("old", "new"), rows=(4, 3), shared=3, missing=(0, 1),
        ...                          examples=((), ("17",)), same_order=True)
        >>> report.missing_share
        0.25
        >>> report.sentence()
        'Compared on the 3 ids that all share, of 4 in all: new lacks 1 id ("17").'
    """

    names: tuple[str, ...]
    rows: tuple[int, ...]
    shared: int
    missing: tuple[int, ...]
    examples: tuple[tuple[str, ...], ...]
    same_order: bool
    verification: tuple[Verification, ...] = field(default=(), compare=False, repr=False)
    weights_of: tuple[str, ...] = field(default=(), repr=False)
    truth_of: tuple[str, ...] = field(default=(), repr=False)
    slices_of: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)
    same: tuple[Same, ...] = field(default=(), compare=False, repr=False)

    @property
    def total(self) -> int:
        """Ids that at least one generation has."""
        return self.rows[0] + self.missing[0]

    @property
    def partial(self) -> bool:
        """Whether some id is missing somewhere."""
        return any(self.missing)

    @property
    def missing_share(self) -> float:
        """The largest share of all ids that one generation lacks; 0 when all cover the same."""
        return max(self.missing) / self.total

    @property
    def verified(self) -> dict[str, Verification]:
        """Whether each generation was read as it was written."""
        every = self.verification or (IN_MEMORY,) * len(self.names)
        return dict(zip(self.names, every, strict=True))

    def sentence(self) -> str:
        """The finding for people."""
        if not self.partial:
            order = "in the same order" if self.same_order else "in another order"
            return f"All {self.shared:,} ids are shared, {order}."
        lacks = [
            f"{name} lacks {count:,} {'id' if count == 1 else 'ids'} ({_some(count, examples)})"
            for name, count, examples in zip(self.names, self.missing, self.examples, strict=True)
            if count
        ]
        return (
            f"Compared on the {self.shared:,} ids that all share, of {self.total:,} in all: "
            f"{'; '.join(lacks)}."
        )


def _some(count: int, examples: tuple[str, ...]) -> str:
    return listed(examples) if count <= len(examples) else f"such as {listed(examples)}"
