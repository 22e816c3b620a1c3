"""Scikit-learn classifiers built again from what skops stored, without skops.

Skops states which types an archive names, but not whether their content is sound: scikit-learn's
compiled code follows the indices in it without looking. Here each part is made by a list of known
classes, from attributes that are known, too, and checked before anything is predicted.
"""

from collections.abc import Callable
from typing import Any

from dynsnap.boost._structure import invalid
from dynsnap.boost.rebuilt._facts import Checker, Facts
from dynsnap.boost.rebuilt._kinds import checks, functions, makers
from dynsnap.boost.rebuilt._reader import Reader, SkopsArchive, array

__all__ = ["Facts", "array", "rebuilt"]


def rebuilt(content: bytes, refused: Callable[[str], Exception]) -> tuple[Any, Facts]:
    """The classifier that an archive holds, and what is known of it.

    Args:
        content: The archive.
        refused: The error for a type that is not known here.
    """
    reader = Reader(SkopsArchive(content), makers(), functions(), refused)
    found = reader.root()
    checker = Checker(checks())
    facts = checker.facts(found)
    checker.check_work(facts)
    if facts.role != "classifier":
        raise invalid(f"a {type(found).__name__} is no classifier")
    return found, facts
