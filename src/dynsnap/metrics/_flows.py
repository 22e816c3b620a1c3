"""Which labels changed into which: counted for every true class, in little memory."""

import numpy as np

from dynsnap._types import AnyArray

_DENSE = 1 << 16  # cells (true class, old, new) up to which a plain table is kept
_MOST = 1 << 22  # distinct flows that are kept; beyond, the rarest are given up
_BATCH = 1 << 18  # how many moves are gathered before they are sorted


class Flows:
    """Counts of packed (true class, old label, new label), of inputs whose label changed.

    Example:
        >>> flows = Flows(classes=3)
        >>> flows.add(np.array([1, 5, 1]))
        >>> flows.most(1)
        [((0, 0, 1), 2)]
    """

    def __init__(self, *, classes: int) -> None:
        self.classes = classes
        self.complete = True  # False once rare flows had to be given up
        self._table = np.zeros(classes**3, np.int64) if classes**3 <= _DENSE else None
        self._keys = np.empty(0, np.int64)
        self._counts = np.empty(0, np.int64)
        self._waiting: list[AnyArray] = []

    def add(self, keys: AnyArray) -> None:
        """Count some moves."""
        if self._table is not None:
            self._table += np.bincount(keys, minlength=len(self._table))
            return
        self._waiting.append(keys)
        if sum(map(len, self._waiting)) > _BATCH:
            self._settle()

    def merge(self, other: "Flows") -> None:
        """Count what another one counted as well."""
        if self._table is not None and other._table is not None:
            self._table += other._table
            return
        self._settle()
        other._settle()
        self._join(other._keys, other._counts)
        self.complete &= other.complete

    def most(self, count: int) -> list[tuple[tuple[int, int, int], int]]:
        """The largest flows, as ((true class, old, new), inputs); equal ones by class."""
        return self._largest(*self._counted(), count)

    def most_lost(self, count: int) -> list[tuple[tuple[int, int, int], int]]:
        """The same of those whose old label was right; without truth they mean nothing."""
        keys, counts = self._counted()
        true, old, _ = np.unravel_index(keys, (self.classes,) * 3)
        lost = true == old
        return self._largest(keys[lost], counts[lost], count)

    def lost_between(self, families: AnyArray) -> AnyArray:
        """Of those, how many went from which family of classes to which: (families, families).

        Args:
            families: The family of every class, below 0 where it has none.

        Example:
            >>> flows = Flows(classes=3)
            >>> flows.add(np.array([1, 1, 14]))  # twice class 0 became 1, and class 1 became 2
            >>> flows.lost_between(np.array([0, 0, 1])).tolist()
            [[2, 1], [0, 0]]
        """
        keys, counts = self._counted()
        true, old, new = np.unravel_index(keys, (self.classes,) * 3)
        one, other = families[true], families[new]
        lost = (true == old) & (one >= 0) & (other >= 0)
        found = np.zeros((families.max(initial=-1) + 1,) * 2, np.int64)
        np.add.at(found, (one[lost], other[lost]), counts[lost])
        return found

    def _counted(self) -> tuple[AnyArray, AnyArray]:
        self._settle()
        if self._table is None:
            return self._keys, self._counts
        keys = np.flatnonzero(self._table)
        return keys, self._table[keys]

    def _largest(
        self, keys: AnyArray, counts: AnyArray, count: int
    ) -> list[tuple[tuple[int, int, int], int]]:
        order = np.lexsort((keys, -counts))[:count]
        unpacked = np.unravel_index(keys[order], (self.classes,) * 3)
        found = zip(*(axis.tolist() for axis in unpacked), strict=True)
        return list(zip(found, counts[order].tolist(), strict=True))

    def _settle(self) -> None:
        if self._waiting:
            keys, counts = np.unique(np.concatenate(self._waiting), return_counts=True)
            self._waiting = []
            self._join(keys, counts)

    def _join(self, keys: AnyArray, counts: AnyArray) -> None:
        known, place = np.unique(np.concatenate([self._keys, keys]), return_inverse=True)
        total = np.zeros(len(known), np.int64)
        np.add.at(total, place, np.concatenate([self._counts, counts]))
        if len(known) > _MOST:
            # Only so can memory stay bounded with very many classes; the largest remain.
            kept = np.sort(np.argpartition(-total, _MOST // 2)[: _MOST // 2])
            known, total = known[kept], total[kept]
            self.complete = False
        self._keys, self._counts = known, total
