"""Whether generations and truth speak of the same classes at all."""

import re
import shlex
import unicodedata
from collections.abc import Iterator, Sequence

import numpy as np

from dynsnap._types import Flags, Floats
from dynsnap.comparison._count import AlignedBlocks, Counted
from dynsnap.comparison._results import UnknownLabels
from dynsnap.errors import ComparisonError
from dynsnap.predictions._text import listed, shown

_FEW = 20  # so few inputs may be labelled wrongly, or otherwise, by chance
# Spaces, underscores, and hyphens beside a letter: those of numbers (-1, 10-19) mean something.
_GAPS = re.compile(
    r"[\s_]+|(?<=[^\W\d_])[-\u2010-\u2015]+(?=\w)|(?<=\w)[-\u2010-\u2015]+(?=[^\W\d_])"
)
_MARKS = re.compile(r"[\u0300-\u036f]+")  # accents of Latin, Greek and Cyrillic letters
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?")


def refuse_strange_labels(counted: Counted, blocks: AlignedBlocks) -> None:
    """Raise where a generation never names a class of the truth, or of the first generation.

    Fine labels beside a coarse truth, or predictions of another data set whose ids look alike,
    would give numbers: nothing was right before, so nothing is lost, and a gate would pass. Sets
    with one class only are let through: a model may not know the one class that is looked at. (A
    gate is stricter: see `unknown_labels`.)

    Args:
        counted: What was counted.
        blocks: The same generations, for a second look at the scores.
    """
    named = [each > 0 for each in _named(counted)]
    true = _true(counted)
    other = named[0] if true is None else true
    rows = counted.tally.rows
    if rows < _FEW or other.sum() < 2 or all((each & other).any() for each in named):
        return
    # Classes that are never the likeliest are known all the same.
    known = [one | scored for one, scored in zip(named, _scored(blocks, named), strict=True)]
    whose = f"labels of {shown(counted.report.names[0])}" if true is None else "true classes"
    for name, own in zip(counted.report.names, known, strict=True):
        if own.sum() > 1 and not (own & other).any():
            raise ComparisonError(
                f"No label of {shown(name)} is among the {whose}: it has "
                f"{_some(counted.classes, own)}, they are {_some(counted.classes, other)}. "
                f"{_advice(counted.classes, own, other)}"
            )


def _advice(classes: Sequence[str], own: Flags, other: Flags) -> str:
    alike = [(classes[one], classes[same]) for one, same in _alike(classes, own, other)]
    if not alike:
        return (
            "Compare predictions over the same classes (is one fine and the other coarse, or of "
            "another data set?), or rename some with --rename OLD=NEW."
        )
    options = " ".join(rename_option(*each) for each in alike[:_FEW])
    return f"They differ by case, spaces or the like alone: read them with {options}."


def rename_option(label: str, other: str) -> str:
    """The option that reads a class under another name, as a shell takes it."""
    return f"--rename {shlex.quote(f'{label}={other}')}"


def unknown_labels(counted: Counted, blocks: AlignedBlocks) -> tuple[UnknownLabels, ...]:
    """The labels that are no true class, of each generation that has any.

    A model may know more classes than the inputs have, so some of these are in order. Many are
    not: a service that answers "error", or "CAT" where the truth is "cat", was never right, and
    has nothing to lose.

    Args:
        counted: What was counted.
        blocks: The same generations, for a second look at the scores.
    """
    named, true = _named(counted), _true(counted)
    own = [each > 0 for each in named]
    if true is None:
        others = [own[0] & ~each for each in own]
        strange = [each & ~own[0] for each in own]
    else:
        others = [true] * len(own)
        strange = [each & ~true for each in own]
    alike = [
        list(_alike(counted.classes, some, other))
        for some, other in zip(strange, others, strict=True)
    ]
    if any(alike):  # a model that scores both classes distinguishes them
        scored = _scored(blocks, own)
        alike = [
            [(one, other) for one, other in some if not (known[one] and known[other])]
            for some, known in zip(alike, scored, strict=True)
        ]
    classes = counted.classes
    return tuple(
        UnknownLabels(
            name=name,
            share=0.0 if true is None else float(weights[some].sum() / weights.sum()),
            labels=tuple(classes[place] for place in _heaviest(np.where(some, weights, 0))),
            alike=tuple((classes[one], classes[other]) for one, other in pairs),
        )
        for name, weights, some, pairs in zip(
            counted.report.names, named, strange, alike, strict=True
        )
        if pairs or (true is not None and some.any())
    )


def plain(name: str) -> str:
    """A name without what people write one way here and another way there.

    Example:
        >>> plain(" Polar_Bear") == plain("polar bear"), plain("1.0") == plain("01"), plain("-1")
        (True, True, '-1')
        >>> plain("caf\\u00e9") == plain("cafe"), plain("\\ufeffcat\\u200b") == plain("cat")
        (True, True)
        >>> plain("polar-bear") == plain("polar bear"), plain("10-19") == plain("1019")
        (True, False)
    """
    decomposed = unicodedata.normalize("NFKD", name)
    seen = _MARKS.sub("", "".join(c for c in decomposed if unicodedata.category(c) != "Cf"))
    text = _GAPS.sub("", unicodedata.normalize("NFKC", seen)).casefold()
    if not _NUMBER.fullmatch(text):
        return text
    whole, _, rest = text.lstrip("+-").partition(".")
    digits = f"{whole.lstrip('0') or '0'}.{rest}".rstrip("0" if rest else "").rstrip(".")
    return "-" + digits if text.startswith("-") else digits


def _alike(classes: Sequence[str], some: Flags, others: Flags) -> Iterator[tuple[int, int]]:
    """The classes that are written like one of the others, and which."""
    if not some.any():
        return
    written = {plain(classes[place]): place for place in np.flatnonzero(others).tolist()}
    for place in np.flatnonzero(some).tolist():
        if (other := written.get(plain(classes[place]))) is not None:
            yield place, other


def _named(counted: Counted) -> list[Floats]:
    """How much weight each generation gave to each label, the twin among them."""
    return [each.labels.sum(axis=0) for each in counted.tally.generations]


def _heaviest(weights: Floats) -> list[int]:
    """The places that have any weight, those with most of it first."""
    order = np.argsort(-weights, kind="stable")
    return [int(place) for place in order[: np.count_nonzero(weights)]]


def _true(counted: Counted) -> Flags | None:
    """Which classes are the true class of any input; None without truth."""
    tally = counted.tally
    if not tally.layout.truth:
        return None
    grouping = next(each for each in tally.layout.groupings if each.name == "truth")
    return np.asarray(tally.case_counts(0, grouping).sum(axis=1) > 0)


def _scored(blocks: AlignedBlocks, like: Sequence[Flags]) -> list[Flags]:
    """The classes to which each generation ever gave a score above zero; none without scores."""
    found = [np.zeros_like(each) for each in like]
    for block in blocks:
        for known, each in zip(found, block, strict=True):
            if each.scores is not None:
                known |= (each.scores > 0).any(axis=0)
    return found


def _some(classes: Sequence[str], chosen: Flags) -> str:
    return listed((classes[place] for place in np.flatnonzero(chosen).tolist()), most=3)
