"""What generations know of the same inputs together: truth, weights and slices."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa

from dynsnap._types import AnyArray
from dynsnap.errors import ComparisonError
from dynsnap.predictions._labels import Slice
from dynsnap.predictions._predictions import Predictions, changed
from dynsnap.predictions._text import shown

_Fact: TypeAlias = Literal["truth", "weights"]


@dataclass(slots=True)
class _Contradiction:
    """Inputs of which two generations say different things, with the first as an example."""

    inputs: int
    one: object
    other: object
    id: object


@dataclass(slots=True)
class Common:
    """Gives every generation the truth, weights and slices that any has, rows by rows.

    Contradictions are counted on the way, and refused at the end.
    """

    names: Sequence[str]
    inputs: int = 0
    contradictions: dict[tuple[_Fact, int, int], _Contradiction] = field(default_factory=dict)

    def add(
        self, generations: Sequence[Predictions], *, id_column: pa.Array
    ) -> tuple[Predictions, ...]:
        """Some rows of all generations, lined up; truth and weights from the first that has them.

        Args:
            generations: The same inputs, in the same order, over the same classes.
            id_column: Their ids.
        """
        slices: dict[str, Slice] = {}
        for each in generations:
            for name, column in each.slices.items():
                slices[name] = slices[name].beside(column) if name in slices else column
        facts = {
            "id_column": id_column,
            "truth": self._common("truth", generations, id_column),
            "weights": self._common("weights", generations, id_column),
            "slices": slices,
        }
        self.inputs += len(id_column)
        return tuple(changed(each, **facts) for each in generations)

    def merge(self, later: "Common") -> None:
        """Add what was found in rows that come later."""
        self.inputs += later.inputs
        for key, more in later.contradictions.items():
            found = self.contradictions.setdefault(key, replace(more, inputs=0))
            found.inputs += more.inputs

    def refuse_contradictions(self) -> None:
        """Raise if two generations contradict each other in any row."""
        if not self.contradictions:
            return
        # "truth" comes before "weights", and earlier generations before later ones.
        (fact, first, second), found = min(self.contradictions.items())
        what = "truths" if fact == "truth" else "weights"
        advice = f"Correct one of them, or leave its {fact} out."
        if fact == "truth" and found.inputs == self.inputs > 1:
            advice = (
                "Not one is the same: they seem to be of different data sets, or one has fine and "
                "the other coarse classes. Compare predictions of the same inputs and classes."
            )
        raise ComparisonError(
            f"{shown(self.names[first])} and {shown(self.names[second])} give different {what} for "
            f"{found.inputs:,} of {self.inputs:,} shared ids, such as {shown(found.one)} and "
            f"{shown(found.other)} for the id {shown(found.id)}. {advice}"
        )

    def _common(
        self, fact: _Fact, generations: Sequence[Predictions], id_column: pa.Array
    ) -> AnyArray | None:
        """The truth or the weights of the first generation that has any."""
        holders = [
            (number, values)
            for number, each in enumerate(generations)
            if (values := getattr(each, fact)) is not None
        ]
        if not holders:
            return None
        first, common = holders[0]
        for number, values in holders[1:]:
            if fact == "truth":
                differs = common != values
            else:  # one file may have stored fewer digits than the other
                differs = ~np.isclose(common, values, rtol=1e-6, atol=0)
            if not differs.any():
                continue
            row = int(np.argmax(differs))
            classes = generations[0].classes
            one, other = (
                classes[value] if fact == "truth" else value for value in (common[row], values[row])
            )
            example = _Contradiction(0, one, other, id_column[row].as_py())
            found = self.contradictions.setdefault((fact, first, number), example)
            found.inputs += int(differs.sum())
        shared: AnyArray = common
        return shared
