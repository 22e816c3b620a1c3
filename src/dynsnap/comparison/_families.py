"""Slices that are families of classes: every class lies in one of their values, as superclasses do.

With a hundred classes, what was lost is seen better between twenty families than between classes.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from dynsnap._types import AnyArray
from dynsnap.comparison._results import Flow
from dynsnap.metrics._flows import Flows
from dynsnap.predictions import Predictions

_MOST = 1 << 20  # cells (class, value) that are kept


class ClassFamilies:
    """Which classes and values of slices occur together, seen while the rows pass by."""

    def __init__(self) -> None:
        self._met: dict[str, AnyArray] = {}  # (classes, 1 + values), the first without one

    def add(self, said: Predictions) -> None:
        """Look at the next rows; those of one generation will do."""
        if said.truth is None:
            return
        classes = len(said.classes)
        known = said.truth >= 0
        for name, column in said.slices.items():
            values = len(column.values)
            if classes * values <= _MOST:
                # Inputs without a value belong to no family, and neither does their class.
                codes = said.truth.astype(np.int64) * (values + 1) + column.codes + 1
                found = np.bincount(codes[known], minlength=classes * (values + 1)) > 0
                found = found.reshape(classes, values + 1)
                self._met[name] = found | self._met[name] if name in self._met else found

    def merge(self, later: "ClassFamilies") -> None:
        """Add what another one has seen."""
        for name, found in later._met.items():
            self._met[name] = found | self._met[name] if name in self._met else found

    def families(
        self,
        classes: Sequence[str],
        slices: Mapping[str, tuple[str, ...]],
        elsewhere: Mapping[str, Mapping[str, str]],
    ) -> dict[str, dict[str, str]]:
        """For each slice that is made of whole classes, the value of every class that occurs.

        A slice with a value of its own for every class states no more than the classes.

        Args:
            classes: The names of the classes.
            slices: The values of each slice.
            elsewhere: What is known of classes that do not occur, for each slice.
        """
        found = {}
        for name, met in self._met.items():
            present = met.any(axis=1)
            whole = (met.sum(axis=1) <= 1).all() and not met[:, 0].any()
            used = int(met.any(axis=0).sum())
            if whole and 1 < used < int(present.sum()):
                places = met[:, 1:].argmax(axis=1)
                absent = {classes[place] for place in np.flatnonzero(~present).tolist()}
                found[name] = {
                    classes[place]: slices[name][places[place]]
                    for place in np.flatnonzero(present).tolist()
                } | {
                    label: value
                    for label, value in elsewhere.get(name, {}).items()
                    if label in absent and value in slices[name]
                }
        return found


def lost_between(
    flows: Flows, classes: Sequence[str], families: Mapping[str, str]
) -> Iterator[Flow]:
    """Inputs lost, by the family of their true class and that of the label they got instead.

    Labels of no known family are left out: no truth decides it.
    """
    names = sorted(set(families.values()))
    places = {name: place for place, name in enumerate(names)}
    known = np.array([places.get(families.get(name, ""), -1) for name in classes])
    found = flows.lost_between(known)
    for one, other in sorted(np.argwhere(found).tolist(), key=lambda cell: -found[tuple(cell)]):
        yield Flow(names[one], names[one], names[other], int(found[one, other]))
