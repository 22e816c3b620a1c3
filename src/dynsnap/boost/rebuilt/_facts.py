"""What is known of a part of a classifier once it was checked, and how its attributes are read."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from dynsnap._types import AnyArray
from dynsnap.boost._structure import invalid, shown, unchecked

Role: TypeAlias = Literal["classifier", "regressor", "transformer", "part"]
MOST_WORK = 10**6  # learners that one prediction may ask
MOST_SHARED = 8  # times as many as the archive holds: scikit-learn itself shares none
WIDEST = 2**24  # numbers that a prediction may hold for one input


@dataclass(frozen=True, slots=True)
class Facts:
    """What a part does.

    Attributes:
        role: What it can be asked for.
        inputs: How many columns it takes; None if any number, or texts.
        outputs: How many classes, or columns, it gives; None if that follows from the inputs.
        work: How many learners it asks, with all that it holds: parts may be shared, and so few
            of them could stand for very many.
        width: How many numbers it holds for one input, beside the input, at the most; counts of
            words do not count, because most are zero and take no room.
    """

    role: Role
    inputs: int | None
    outputs: int | None
    work: int = 1
    width: int = 0

    def __post_init__(self) -> None:
        if self.width > WIDEST:
            raise invalid(f"one input would take {self.width:,} numbers in memory")
        if self.work > MOST_WORK:
            raise invalid(f"one prediction would ask more than {MOST_WORK} learners")


class Checker:
    """Checks parts, each of them once."""

    def __init__(self, checks: dict[type, Callable[[Any, "Checker"], Facts]]) -> None:
        self._checks = checks
        self._known: dict[int, Facts] = {}

    def facts(self, part: Any) -> Facts:
        """What is known of a part that the archive holds."""
        if id(part) not in self._known:
            check = self._checks.get(type(part))
            if check is None:
                raise invalid(f"a {shown(type(part).__name__)} is where a learner should be")
            self._known[id(part)] = check(part, self)
        return self._known[id(part)]

    def check_work(self, found: Facts) -> None:
        """Raise FileError where few parts, shared again and again, stand for very many."""
        if found.work > MOST_SHARED * len(self._known):
            raise invalid(
                f"one prediction would ask {found.work} learners, but it holds {len(self._known)}"
            )

    def widest(self, parts: Sequence[Any]) -> int:
        """The most numbers that one of several parts holds for an input."""
        return max(self.facts(part).width for part in parts)

    def all(self, parts: Any, role: Role, *, inputs: int | None, outputs: int | None) -> int:
        """The work of several parts, which must be alike.

        Args:
            parts: A list, not empty.
            role: What each of them must be.
            inputs: How many columns each must take; None if that was checked already.
            outputs: How many classes or columns each must give; None if any.
        """
        if not isinstance(parts, list | tuple) or not parts:
            raise invalid("it has no list of learners")
        work = 0
        for part in parts:
            facts = self.facts(part)
            name = type(part).__name__
            if facts.role != role:
                raise invalid(f"a {name} is where a {role} should be")
            if inputs is not None and facts.inputs not in (inputs, None):
                raise invalid(f"a {name} takes {facts.inputs} features instead of {inputs}")
            if outputs is not None and facts.outputs != outputs:
                raise invalid(f"a {name} gives {facts.outputs} outputs instead of {outputs}")
            work += facts.work
        return work


def attribute(part: Any, name: str) -> Any:
    """An attribute that the archive gave."""
    try:
        return vars(part)[name]
    except KeyError:
        raise invalid(f"a {type(part).__name__} lacks `{name}`") from None


def whole(part: Any, name: str, least: int = 0) -> int:
    """A whole number, not less than the least."""
    value = attribute(part, name)
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
        raise wrong(part, name)
    return int(value)


def number(part: Any, name: str) -> float:
    """A finite number."""
    value = attribute(part, name)
    real = isinstance(value, int | float | np.integer | np.floating)
    if not real or isinstance(value, bool) or not abs(value) < float("inf"):
        raise wrong(part, name)
    return float(value)


def numbers(part: Any, name: str, *shape: int | None, kinds: str = "f") -> AnyArray:
    """An array of numbers of this shape; None stands for any size."""
    return array_like(attribute(part, name), part, name, *shape, kinds=kinds)


def array_like(value: Any, part: Any, name: str, *shape: int | None, kinds: str = "f") -> AnyArray:
    """The value, if it is an array of this shape."""
    if type(value) is not np.ndarray or value.dtype.kind not in kinds or value.ndim != len(shape):
        raise wrong(part, name)
    if any(size not in (None, found) for size, found in zip(shape, value.shape, strict=True)):
        raise invalid(
            f"`{name}` of a {type(part).__name__} has the shape {value.shape} instead of "
            f"{tuple('any' if size is None else size for size in shape)}"
        )
    return value


def classes(part: Any, name: str = "classes_") -> int:
    """How many classes a part knows."""
    found = len(numbers(part, name, None, kinds="iufb"))
    if not found:
        raise wrong(part, name)
    return found


def chosen(part: Any, name: str, known: Sequence[Any]) -> Any:
    """A setting, if it is one of those that are known to be harmless."""
    value = attribute(part, name)
    if not any(value is one or (type(value) is type(one) and value == one) for one in known):
        raise unchecked(f"a {type(part).__name__} with {name}={shown(value)}")
    return value


def wrong(part: Any, name: str) -> Exception:
    """The error for an attribute that cannot be."""
    return invalid(f"`{name}` of a {type(part).__name__} is not what it should be")
