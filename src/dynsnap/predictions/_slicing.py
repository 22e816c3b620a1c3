"""Slices that a reader chooses: a column as it is, in bins, by day, week or month, or two crossed.

`region` is a column, `age:10` its ten quantile bins, `day:week` the weeks of a time, and
`region*age:4` every combination of two. The first generation that has a column sets its bins, with
order statistics of all its rows. They are found by counting digits, so the result is exact, needs
little memory, and is the same for a file that is streamed and for one that is read.
"""

import contextlib
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dynsnap._types import AnyArray, Floats, Labels
from dynsnap.errors import InputError, PlanError, did_you_mean
from dynsnap.predictions._arrow import bare, is_number, is_text, unpacked
from dynsnap.predictions._labels import MISSING, Slice, as_coded_slice, encoded, slice_values
from dynsnap.predictions._predictions import Predictions, changed
from dynsnap.predictions._text import check_name, listed, on_one_line, shown

Period: TypeAlias = Literal["day", "week", "month"]
Columns: TypeAlias = Callable[[], Iterator[pa.Array]]  # one column, a batch at a time, again

PERIODS: dict[str, str] = {"day": "%Y-%m-%d", "week": "%G-W%V", "month": "%Y-%m"}
MOST_VALUES = 1_000  # of a slice that was asked for by name
MOST_BINS = 100
_CROSS = " × "
_DIGITS = 16  # bits that are counted in one look at a column
_BINNED = re.compile(r"(?P<column>.+):(?P<bins>[^:*]+)")


class UnknownSliceError(InputError):
    """No generation has the columns of a slice that was asked for.

    Attributes:
        asked: The slice.
    """

    def __init__(self, message: str, *, asked: str = "") -> None:  # pickle gives one argument
        super().__init__(message)
        self.asked = asked


@dataclass(frozen=True, slots=True)
class SlicePart:
    """A column of a slice: as it is, in so many quantile bins, or by a period of time."""

    column: str
    bins: int | Period | None = None


@dataclass(frozen=True, slots=True)
class SliceSpec:
    """A slice that was asked for.

    Attributes:
        name: What it is called in results and rules: the text that asked for it.
        parts: Its column, or the two that are crossed.
    """

    name: str
    parts: tuple[SlicePart, ...]

    @staticmethod
    def parse(text: str) -> "SliceSpec":
        """The slice that a text asks for.

        Example:
            >>> SliceSpec.parse("region*age:4").parts
            (SlicePart(column='region', bins=None), SlicePart(column='age', bins=4))
        """
        if not isinstance(text, str) or not text.strip():
            raise PlanError(f"A slice must name a column, such as region or age:10, got {text!r}.")
        pieces = [piece.strip() for piece in text.split("*")]
        if len(pieces) > 2 or not all(pieces):
            raise PlanError(
                f"A slice is a column or two crossed, such as region*age:4, got {text!r}."
            )
        parts = tuple(_part(piece, text) for piece in pieces)
        if len({part.column for part in parts}) < len(parts):
            raise PlanError(f"The slice {text!r} crosses a column with itself. Name two columns.")
        return SliceSpec("*".join(pieces), parts)


def parse_slices(texts: Iterable[str]) -> tuple[SliceSpec, ...]:
    """The slices that some texts ask for, each once.

    Example:
        >>> [spec.name for spec in parse_slices(["region", "age:10", "region"])]
        ['region', 'age:10']
    """
    if isinstance(texts, str):
        raise PlanError(f'`slices` must be a list of texts, such as ["{texts}"], got a text.')
    return tuple(dict.fromkeys(SliceSpec.parse(text) for text in texts))


def _part(piece: str, text: str) -> SlicePart:
    found = _BINNED.fullmatch(piece)
    if found is None:
        return SlicePart(piece)
    column, bins = found["column"].strip(), found["bins"].strip()
    if bins in PERIODS:
        return SlicePart(column, bins)  # type: ignore[arg-type]
    if bins.isascii() and bins.isdigit():
        if not 2 <= int(bins) <= MOST_BINS:
            raise PlanError(
                f"The slice {text!r} asks for {bins} bins; it takes from 2 to {MOST_BINS}."
            )
        return SlicePart(column, int(bins))
    return SlicePart(piece)  # a colon that belongs to the name of the column


@dataclass(frozen=True, slots=True, eq=False)
class PartCut:
    """How the values of one column become the groups of a slice.

    Attributes:
        values: The names of the groups in one generation.
        edges: The upper ends of all bins but the last; None for a column that is not binned.
    """

    part: SlicePart
    values: tuple[str, ...]
    edges: Floats | None = None

    def coded(self, column: pa.Array) -> Slice:
        """The groups of some rows."""
        return as_coded_slice(*_groups(self.part, self.edges, column), self.values,
                              name=self.part.column)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class SliceCut:
    """How the columns of one generation become a slice that was asked for."""

    parts: tuple[PartCut, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it is made of."""
        return tuple(cut.part.column for cut in self.parts)

    @property
    def values(self) -> tuple[str, ...]:
        """The names of all groups."""
        return _crossed([cut.values for cut in self.parts])

    def coded(self, columns: Mapping[str, pa.Array]) -> Slice:
        """The groups of some rows."""
        return _combined([cut.coded(columns[cut.part.column]) for cut in self.parts])


@dataclass(slots=True, eq=False)
class Slicing:
    """The slices of one comparison: generations are looked at in their order.

    Attributes:
        specs: What was asked for.
        edges: The bins of each column that is binned, once a generation had it.
        met: The slices that some generation had the columns of.
        known: All columns that were met, for a message.
    """

    specs: Sequence[SliceSpec]
    edges: dict[SlicePart, Floats] = field(default_factory=dict)
    met: set[str] = field(default_factory=set)
    known: dict[str, None] = field(default_factory=dict)

    @staticmethod
    def of(slices: "Slicing | Iterable[str] | None") -> "Slicing | None":
        """What a caller asked for; None for all columns that may be slices."""
        if slices is None or isinstance(slices, Slicing):
            return slices
        return Slicing(parse_slices(slices))

    def cuts(self, columns: Iterable[str], look: Callable[[str], Columns]) -> dict[str, SliceCut]:
        """The slices that a generation with these columns has.

        Args:
            columns: The columns that may be slices.
            look: Reads one of them.
        """
        own = dict.fromkeys(columns)
        self.known |= own
        found = {}
        for spec in self.specs:
            # A column may itself be called "a:10" or "a*b".
            parts = (SlicePart(spec.name),) if spec.name in own else spec.parts
            if not all(part.column in own for part in parts):
                continue
            check_name(spec.name, kind="slice name")
            cut = SliceCut(tuple(self._cut(part, look(part.column)) for part in parts))
            values = cut.values
            if len(values) > MOST_VALUES:
                raise InputError(
                    f"The slice {shown(spec.name)} has {len(values):,} groups; {MOST_VALUES:,} are "
                    "the most. Cross columns with fewer values, or ask for fewer bins."
                )
            found[spec.name] = cut
            self.met.add(spec.name)
        return found

    def refuse_unmet(self) -> None:
        """Raise if no generation has the columns of a slice."""
        for spec in self.specs:
            if spec.name in self.met:
                continue
            missing = [part.column for part in spec.parts if part.column not in self.known]
            wanted = missing[0] if missing else spec.parts[0].column
            near = on_one_line(did_you_mean(wanted, self.known)) if self.known else ""
            what = (
                f"no generation has a column {shown(wanted)} that can be a slice"
                if missing
                else "no generation has both columns"
            )
            raise UnknownSliceError(
                f"There is no slice {shown(spec.name)}: {what}. {near}".rstrip(), asked=spec.name
            )

    def applied(self, said: Predictions) -> Predictions:
        """Predictions in memory with the slices that were asked for, and no others."""

        def look(name: str) -> Columns:
            column = said.slices[name]
            texts = pa.array([None if each == MISSING else each for each in column.values])
            whole = pa.DictionaryArray.from_arrays(pa.array(column.codes), texts)
            return lambda: iter([whole])

        cuts = self.cuts(said.slices, look)
        slices = {
            name: cut.coded({column: next(look(column)()) for column in cut.columns})
            for name, cut in cuts.items()
        }
        return changed(said, slices=slices)

    def _cut(self, part: SlicePart, batches: Columns) -> PartCut:
        edges = None
        if isinstance(part.bins, int):
            if part not in self.edges:
                self.edges[part] = quantiles(lambda: _numbers(part, batches()), part.bins)
            edges = self.edges[part]
        values: dict[str, None] = {} if edges is None else dict.fromkeys(_names_of(edges))
        gaps = False
        for column in batches():
            names, codes = _groups(part, edges, column)
            values |= dict.fromkeys(names)
            gaps = gaps or bool((codes < 0).any())
            if len(values) > MOST_VALUES:
                number = is_number(bare(column.type))
                way = f"Put it in bins: {part.column}:10." if number else "Choose another."
                raise InputError(
                    f"The column {shown(part.column)} has more than {MOST_VALUES:,} values, too "
                    f"many for a slice. {way}"
                )
        if edges is not None:  # in the order of the bins, which is not that of their names
            return PartCut(part, (*values, MISSING) if gaps else tuple(values), edges)
        return PartCut(part, slice_values(values, gaps=gaps))


def quantiles(batches: Callable[[], Iterable[Floats]], bins: int) -> Floats:
    """The upper ends of all quantile bins but the last: values that occur, each once, ascending.

    Bin i ends with the value of rank ⌈i·n/bins⌉. Values are looked at several times, sixteen bits
    at a time: exact, in memory that does not grow with them.

    Example:
        >>> quantiles(lambda: [np.array([5.0, 1.0, 4.0]), np.array([2.0, 3.0, np.nan])], 2)
        array([3.])
        >>> quantiles(lambda: [np.array([1.0, 1.0, 1.0, 7.0])], 4)
        array([1.])
    """
    ranks: AnyArray = np.zeros(0, np.int64)  # of each bin's end, within the values of its prefix
    found: AnyArray = np.zeros(1, np.uint64)  # the leading digits of each bin's end
    most = -np.inf
    for place, shift in enumerate(range(64 - _DIGITS, -1, -_DIGITS)):
        prefixes = np.unique(found)
        counts = np.zeros((len(prefixes), 1 << _DIGITS), np.int64)
        for batch in batches():
            known = batch[~np.isnan(batch)] + 0.0  # no negative zero
            if not len(known):
                continue
            most = max(most, float(known.max()))
            keys = _ordered(known)
            digits = (keys >> np.uint64(shift)) & np.uint64((1 << _DIGITS) - 1)
            if place:
                heads = keys >> np.uint64(shift + _DIGITS)
                at = np.minimum(np.searchsorted(prefixes, heads), len(prefixes) - 1)
                inside = prefixes[at] == heads
                at, digits = at[inside], digits[inside]
            else:
                at = np.zeros(len(digits), np.int64)
            flat = (at << _DIGITS) + digits.astype(np.int64)
            counts += np.bincount(flat, minlength=counts.size).reshape(counts.shape)
        if not place:
            total = int(counts.sum())
            if not total:
                return np.zeros(0)
            ranks = np.array([-(-i * total // bins) for i in range(1, bins)], np.int64)
            found = np.zeros(len(ranks), np.uint64)
        sums = counts.cumsum(axis=1)
        rows = np.searchsorted(prefixes, found)
        chosen = [
            int(np.searchsorted(sums[row], rank)) for row, rank in zip(rows, ranks, strict=True)
        ]
        before = [
            sums[row, digit - 1] if digit else 0 for row, digit in zip(rows, chosen, strict=True)
        ]
        ranks = ranks - np.array(before, np.int64)
        found = (found << np.uint64(_DIGITS)) | np.array(chosen, np.uint64)
    ends = np.unique(_values(found))
    return np.asarray(ends[ends < most], np.float64)  # nothing lies above the largest value


def _ordered(values: Floats) -> AnyArray:
    """Whole numbers in the order of the values."""
    bits = np.ascontiguousarray(values, np.float64).view(np.uint64)
    sign = np.uint64(1 << 63)
    return np.asarray(np.where(bits & sign, ~bits, bits | sign))


def _values(ordered: AnyArray) -> Floats:
    sign = np.uint64(1 << 63)
    bits = np.where(ordered & sign, ordered ^ sign, ~ordered)
    return np.asarray(np.ascontiguousarray(bits, np.uint64).view(np.float64))


def _names_of(edges: Floats) -> list[str]:
    """The names of bins.

    Example:
        >>> _names_of(np.array([23.0, 31.5])), _names_of(np.array([]))
        (['≤ 23', '(23, 31.5]', '> 31.5'], ['all'])
    """
    texts = [_text(edge) for edge in edges.tolist()]
    if len(set(texts)) < len(texts):
        texts = [repr(edge) for edge in edges.tolist()]
    if not texts:
        return ["all"]
    between = [f"({low}, {high}]" for low, high in itertools.pairwise(texts)]
    return [f"≤ {texts[0]}", *between, f"> {texts[-1]}"]


def _text(edge: float) -> str:
    return str(int(edge)) if abs(edge) < 1e15 and edge == round(edge) else f"{edge:.6g}"


def _groups(part: SlicePart, edges: Floats | None, column: pa.Array) -> tuple[list[str], Labels]:
    """The names of groups, and for each row the place of its own there (-1: missing)."""
    if edges is not None:
        numbers = _number(part, column)
        codes = np.searchsorted(edges, numbers, side="left").astype(np.int32)
        codes[np.isnan(numbers)] = -1
        return _names_of(edges), codes
    if part.bins is not None:
        return encoded(_periods(part, column))
    return encoded(column)


def _numbers(part: SlicePart, columns: Iterable[pa.Array]) -> Iterator[Floats]:
    for column in columns:
        yield _number(part, column)


def _number(part: SlicePart, column: pa.Array) -> Floats:
    """A column as numbers; missing ones are NaN."""
    column = unpacked(column)
    packed = pa.types.is_dictionary(column.type)
    values = column.dictionary if packed else column
    if not (is_number(values.type) or is_text(values.type)):
        way = (
            f"It holds times: {part.column}:day, :week or :month puts them in bins."
            if pa.types.is_temporal(values.type)
            else f"Choose it as it is: {part.column}."
        )
        raise InputError(f"The column {shown(part.column)} holds no numbers. {way}")
    try:
        if is_text(values.type):
            values = _written(values)
        numbers = np.asarray(values.cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        some = listed(values.drop_null().unique()[:2].to_pylist())
        raise InputError(
            f"The column {shown(part.column)} holds values that are no numbers, such as {some}. "
            f"Choose it as it is: {part.column}."
        ) from error
    if not packed:
        return numbers
    places = np.asarray(column.indices.cast(pa.int64()).fill_null(len(numbers)))
    found: Floats = np.append(numbers, np.nan)[places]
    return found


def _written(texts: pa.Array) -> pa.Array:
    """Texts without spaces around them; an empty one is a missing value, as CSV files write it."""
    trimmed = pc.utf8_trim_whitespace(texts.cast(pa.large_string()))
    return pc.if_else(pc.equal(trimmed, ""), None, trimmed)


def _periods(part: SlicePart, column: pa.Array) -> pa.Array:
    """A column of times as the names of days, weeks or months, by UTC where it knows a zone."""
    column = unpacked(column)
    packed = pa.types.is_dictionary(column.type)
    values = column.dictionary if packed else column
    named = pc.strftime(_times(part, values), format=PERIODS[str(part.bins)])
    return pa.DictionaryArray.from_arrays(column.indices, named) if packed else named


def _times(part: SlicePart, values: pa.Array) -> pa.Array:
    kind = values.type
    if pa.types.is_date(kind):
        return values.cast(pa.timestamp("s"))
    if pa.types.is_timestamp(kind):
        return values.cast(pa.timestamp(kind.unit))  # which is UTC
    if is_text(kind):
        texts = _written(values)
        for wanted in (pa.timestamp("us"), pa.timestamp("us", "UTC")):
            try:
                return texts.cast(wanted).cast(pa.timestamp("us"))
            except pa.ArrowInvalid:
                continue
    some = listed(_no_times(values), most=2)
    raise InputError(
        f"The column {shown(part.column)} holds values that are no times, such as {some}. Write "
        "them as 2026-01-31 or 2026-01-31 12:00:00."
    )


def _no_times(values: pa.Array) -> list[str]:
    """Some values that are no times; the first ones where each is a time of another kind."""
    known = (_written(values) if is_text(values.type) else values).drop_null()
    odd = (one for one in known if not (is_text(values.type) and _is_time(one)))
    return [str(one) for one in (*itertools.islice(odd, 2), *known[:2])][:2]


def _is_time(text: pa.Scalar) -> bool:
    for wanted in (pa.timestamp("us"), pa.timestamp("us", "UTC")):
        with contextlib.suppress(pa.ArrowInvalid):
            text.cast(wanted)
            return True
    return False


def _crossed(values: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    if len(values) == 1:
        return values[0]
    first, second = values
    if len(first) * len(second) > MOST_VALUES:
        raise InputError(
            f"Crossed, {len(first):,} and {len(second):,} values make "
            f"{len(first) * len(second):,} groups; {MOST_VALUES:,} are the most. Ask for fewer "
            "bins, or cross other columns."
        )
    made = tuple(f"{one}{_CROSS}{other}" for one in first for other in second)
    if len(set(made)) < len(made):
        raise InputError(
            f"Two combinations are both called {listed(made, most=1)}. Rename a value."
        )
    return made


def _combined(slices: Sequence[Slice]) -> Slice:
    if len(slices) == 1:
        return slices[0]
    first, second = slices
    codes = first.codes * np.int32(len(second.values)) + second.codes
    return Slice(_crossed([first.values, second.values]), codes.astype(np.int32))
