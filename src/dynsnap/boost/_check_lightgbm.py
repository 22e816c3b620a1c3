"""Whether a stored LightGBM model is sound: the library follows its indices without looking.

The text is taken line by line in the one order in which LightGBM writes it, so that it has one
reading. LightGBM ends the process over a number that is none, so it gets no line that was not
looked at.
"""

import re

import numpy as np

from dynsnap._types import Flags, Positions
from dynsnap.boost._structure import invalid, reachable, shown, unchecked

_END = b"\nend of trees\n"
# What LightGBM has written after the trees is for people, and for training on.
_CLOSING = b"\npandas_categorical:null\n"
_NUMBER = rb"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_HEADER = re.compile(
    rb"tree\n"
    rb"version=v4\n"
    rb"num_class=(?P<classes>\d{1,9})\n"
    rb"num_tree_per_iteration=(?P<each>\d{1,9})\n"
    rb"label_index=0\n"
    rb"max_feature_idx=(?P<last>\d{1,9})\n"
    rb"objective=(?P<objective>[^\n]*)\n"
    rb"feature_names=(?P<names>[!-~]+(?: [!-~]+)*)\n"
    rb"(?:monotone_constraints=(?P<monotone>-?[01](?: -?[01])*)\n)?"
    rb"feature_infos=(?P<infos>[!-~]+(?: [!-~]+)*)\n"
    rb"tree_sizes=(?P<sizes>\d{1,12}(?: \d{1,12})*)\n"
    rb"\n"
)
_BINARY = re.compile(rb"binary sigmoid:" + _NUMBER)
_MULTICLASS = re.compile(rb"multiclass num_class:(\d{1,9})")

# The lines of a tree, in their order: what there is one of for each inner node, and each leaf.
_INNER = ("split_feature", "split_gain", "threshold", "decision_type", "left_child", "right_child")
_LEAVES = ("leaf_value", "leaf_weight", "leaf_count")
_VALUES = ("internal_value", "internal_weight", "internal_count")
_CATEGORIES = ("cat_boundaries", "cat_threshold")
_LINEAR = ("leaf_const", "num_features", "leaf_features", "leaf_coeff")
_PLAIN = (*_INNER, *_LEAVES, *_VALUES)
_FIRST = 3  # lines before them: the number of the tree, of its leaves, of its categories
_NUMBERS = ("threshold", "leaf_value")
# What the leaves of a tree weigh, and what its inner nodes would say, is for training on.
_FOR_TRAINING = ("split_gain", "leaf_weight", "leaf_count", *_VALUES)
_CATEGORICAL, _DECISIONS = 1, 15  # bits of `decision_type`: that of categories, and all of them


def check(payload: bytes, columns: int, *, whole: bool = False) -> tuple[bytes, int]:
    """Raise FileError unless LightGBM can safely load and use the model.

    Args:
        payload: The model, as LightGBM's text.
        columns: How many classes it must have.
        whole: Whether it will be trained on.

    Returns:
        The part of the text that predicts, or all that training on needs, and how many features
        it takes.
    """
    header = _HEADER.match(payload)
    if header is None:
        raise invalid("its first lines are not those of a LightGBM model of version 4")
    each, features = int(header["each"]), int(header["last"]) + 1
    objective = header["objective"]
    if _BINARY.fullmatch(objective):
        expected, found = 1, 2
    elif several := _MULTICLASS.fullmatch(objective):
        expected = found = int(several[1])
    else:
        raise unchecked(f"an objective of the kind {shown(objective.decode(errors='replace'))}")
    if not expected == each == int(header["classes"]) or found != columns:
        raise invalid(f"its objective has {found} classes, but {columns} are expected")
    for name in ("names", "infos", "monotone"):
        if header[name] is not None and header[name].count(b" ") + 1 != features:
            raise invalid(f"it does not describe each of its {features} features once")
    end = payload.rfind(_END, header.end() - 1)
    if end < 0:
        raise invalid("it is cut short: its trees have no end")
    sizes = _integers([header["sizes"]])
    if len(sizes) % each:
        raise invalid(f"{len(sizes)} trees are not so many for each of {each} classes")
    trees = _LightGBMTrees(payload[header.end() : end + 1], sizes)
    _check_trees(trees, features)
    if whole:
        for name in _FOR_TRAINING:
            trees.check_numbers(name, finite=False)
        return payload[: end + len(_END)] + _CLOSING, features
    parts, lengths = trees.predicting()
    start = header.start("sizes")
    text = b" ".join(b"%d" % length for length in lengths)
    return b"".join([payload[:start], text, b"\n\n", *parts, _END[1:], _CLOSING]), features


class _LightGBMTrees:
    """The lines of all trees, by name.

    Attributes:
        leaves: How many leaves each tree has.
        categories: How many sets of categories it splits by.
        linear: Whether its leaves are linear functions.
    """

    def __init__(self, content: bytes, sizes: Positions) -> None:
        # LightGBM's lines end here, too.
        if b"\r" in content or b"\0" in content:
            raise invalid("it holds control characters")
        self._content = content
        self._bytes = np.frombuffer(content, np.uint8)
        gaps = np.flatnonzero(self._bytes <= ord(" "))
        lines = np.flatnonzero(self._bytes[gaps] == ord("\n"))
        self._ends = gaps[lines]
        self._starts = np.concatenate([[0], self._ends[:-1] + 1])
        self._spaces = np.diff(lines, prepend=-1) - 1
        self._begins = self._find(sizes)
        if (self._column("Tree", 0) != np.arange(len(sizes))).any():
            raise invalid("its trees are not in order")
        self.leaves = self._column("num_leaves", 1)
        self.categories = self._column("num_cat", 2)
        # Two lines more, where there are categories.
        after = _FIRST + len(_PLAIN) + len(_CATEGORIES) * (self.categories > 0)
        linear = self._column("is_linear", after)
        # Others are true to LightGBM, too.
        if ((linear != 0) & (linear != 1)).any() or (self.categories < 0).any():
            raise invalid("`is_linear` is neither 0 nor 1, or `num_cat` is negative")
        self.linear = linear == 1
        after = after + 1 + len(_LINEAR) * self.linear
        if not all(re.fullmatch(_NUMBER, value) for value in {*self._values("shrinkage", after)}):
            raise invalid("`shrinkage` is not a number")
        last = np.append(self._begins[1:], len(self._ends))
        if (self.leaves < 1).any() or (self._begins + after + 3 != last).any():
            raise invalid("a tree has no leaves, or lines that no tree has")
        if (self._starts[last - 1] != self._starts[last - 2] + 1).any():
            raise invalid("a tree does not end where it should")

    def _find(self, sizes: Positions) -> Positions:
        """The first lines of the trees.

        LightGBM goes by the sizes, not by the lines: both must lead to the same places.
        """
        begins = np.flatnonzero(self._bytes[self._starts] == ord("T"))
        ends = np.cumsum(sizes)
        if len(begins) != len(sizes) or ends[-1] != len(self._content):
            raise invalid(f"it has {len(begins)} trees, but states that there are {len(sizes)}")
        if (self._starts[begins] != ends - sizes).any():
            raise invalid("a tree does not have the size that is said")
        return begins

    def _begin_with(self, text: bytes, lines: Positions) -> Flags:
        """Which of the lines begin with a text."""
        places = self._starts[lines][:, None] + np.arange(len(text))
        # The last bytes of all may be too few for a text; they are a line's end, which no text has.
        found = self._bytes[np.minimum(places, len(self._bytes) - 1)]
        return np.asarray((found == np.frombuffer(text, np.uint8)).all(axis=1))

    def _lines(self, name: str, place: int | Positions) -> tuple[Positions, Positions]:
        """Where the values of this name begin and end, of each tree."""
        lines = self._begins + place
        if lines[-1] >= len(self._ends):
            raise invalid("its last tree is cut short")
        before = name.encode() + b"="
        if not self._begin_with(before, lines).all():
            raise invalid(f"a tree lacks `{name}`, or has it elsewhere")
        return self._starts[lines] + len(before), self._ends[lines]

    def _values(self, name: str, place: int | Positions) -> list[bytes]:
        begins, ends = self._lines(name, place)
        return [
            self._content[begin:end]
            for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)
        ]

    def _column(self, name: str, place: int | Positions) -> Positions:
        """A whole number of each tree."""
        found = _integers(self._values(name, place))
        if len(found) != len(self._begins):
            raise invalid(f"`{name}` is not one number")
        return found

    def check_counts(self) -> None:
        """Raise FileError unless there is a value for each node and each leaf."""
        for place, name in enumerate(_PLAIN):
            begins, ends = self._lines(name, _FIRST + place)
            found = np.where(begins == ends, 0, self._spaces[self._begins + _FIRST + place] + 1)
            wrong = found != (self.leaves if name in _LEAVES else self.leaves - 1)
            if name != "leaf_value":  # a tree that is a single leaf leaves out the others
                wrong &= (self.leaves > 1) | (found > 0)
            if wrong.any():
                raise invalid(f"`{name}` has not one value for each node or leaf")

    def integers(self, name: str) -> Positions:
        """The whole numbers of this name, of all trees."""
        return _integers(self._values(name, _FIRST + _PLAIN.index(name)))

    def check_numbers(self, name: str, *, finite: bool = True) -> None:
        """Raise FileError unless all that this name has are numbers."""
        _floats(self._values(name, _FIRST + _PLAIN.index(name)), name, finite=finite)

    def predicting(self) -> tuple[list[bytes], list[int]]:
        """The trees without what is for training on, in parts, and how long each is."""
        # All lines up to the gain, from the threshold to the leaves, and after the inner nodes.
        first, second, third = (
            _FIRST + _PLAIN.index(name) for name in ("split_gain", "leaf_weight", "internal_count")
        )
        last = np.append(self._begins[1:], len(self._ends)) - 1
        begins = np.stack(
            [
                self._starts[self._begins],
                self._starts[self._begins + first + 1],
                self._starts[self._begins + third + 1],
            ],
            axis=1,
        )
        ends = np.stack(
            [
                self._starts[self._begins + first],
                self._starts[self._begins + second],
                self._ends[last] + 1,
            ],
            axis=1,
        )
        parts = [
            self._content[begin:end]
            for begin, end in zip(begins.ravel().tolist(), ends.ravel().tolist(), strict=True)
        ]
        return parts, (ends - begins).sum(axis=1).tolist()

    def tree(self, number: int) -> dict[str, bytes]:
        """The values of one tree."""
        begin = int(self._begins[number])
        end = self._begins[number + 1] if number + 1 < len(self._begins) else len(self._ends)
        names = [
            *(_CATEGORIES if self.categories[number] else ()),
            "is_linear",
            *(_LINEAR if self.linear[number] else ()),
        ]
        lines = self._content[self._starts[begin] : self._ends[end - 1]].split(b"\n")[_FIRST:]
        found = {}
        for name, line in zip((*_PLAIN, *names), lines, strict=False):
            if not line.startswith(name.encode() + b"="):
                raise invalid(f"a tree lacks `{name}`, or has it elsewhere")
            found[name] = line[len(name) + 1 :]
        return found


def _check_trees(trees: _LightGBMTrees, features: int) -> None:
    trees.check_counts()
    for name in _NUMBERS:
        trees.check_numbers(name)
    inner = trees.leaves - 1
    split, decision = trees.integers("split_feature"), trees.integers("decision_type")
    if ((split < 0) | (split >= features)).any():
        raise invalid(f"a node splits a feature that is not one of {features}")
    categorical = np.repeat(trees.categories > 0, inner)
    if ((decision < 0) | (decision > _DECISIONS)).any():
        raise invalid("a node decides in an unknown way")
    if ((decision & _CATEGORICAL > 0) & ~categorical).any():
        raise invalid("a node splits by categories that are not there")
    # Children are inner nodes from 0 on, and leaves from -1 down.
    starts = np.cumsum(inner) - inner
    sizes, begin = np.repeat(inner, inner), np.repeat(starts, inner)
    left, right = trees.integers("left_child"), trees.integers("right_child")
    for child in (left, right):
        if ((child >= sizes) | (child < -sizes - 1)).any():
            raise invalid("a child lies outside its tree")
    total = int(inner.sum())
    leaves = begin + np.repeat(np.arange(len(inner)), inner) + total
    left, right = (
        np.where(child < 0, leaves - 1 - child, begin + child) for child in (left, right)
    )
    none = np.full(total + len(inner), -1)
    used = reachable(np.append(left, none), np.append(right, none), starts[inner > 0])
    single = np.cumsum(inner + 1)[inner == 0] - 1 + total  # trees of one leaf have no node
    used[single] = True
    if not used.all():
        raise invalid("a node or a leaf is not in its tree")
    for number in np.flatnonzero((trees.categories > 0) | trees.linear).tolist():
        lines = trees.tree(number)
        if trees.categories[number]:
            _check_categories(lines, trees.categories[number])
        if trees.linear[number]:
            _check_linear(lines, trees.leaves[number], features)


def _check_categories(lines: dict[str, bytes], count: int) -> None:
    bounds, sets = _integers([lines["cat_boundaries"]]), _integers([lines["cat_threshold"]])
    if len(bounds) != count + 1 or bounds[0] != 0 or bounds[-1] != len(sets):
        raise invalid("the categories are not as many as it states")
    # One by one before they are subtracted: large ones could overflow to a step upwards.
    if ((bounds < 0) | (bounds > len(sets))).any() or (np.diff(bounds) < 1).any():
        raise invalid("the categories of a node are not where it states")
    if ((sets < 0) | (sets >= 2**32)).any():
        raise invalid("the categories of a node are not where it states")
    decision = _integers([lines["decision_type"]])
    places = np.array(_floats([lines["threshold"]], "threshold"))
    if not np.isin(places[decision & _CATEGORICAL > 0], np.arange(count)).all():
        raise invalid("a node has categories that are not there")


def _check_linear(lines: dict[str, bytes], leaves: int, features: int) -> None:
    counts = _integers([lines["num_features"]])
    # A list for each leaf, with more spaces between them.
    chosen = _integers([b" ".join(lines["leaf_features"].split())])
    constants = _floats([lines["leaf_const"]], "leaf_const")
    weights = _floats([b" ".join(lines["leaf_coeff"].split())], "leaf_coeff")
    if not len(counts) == len(constants) == leaves or (counts < 0).any():
        raise invalid("a leaf has no number of features, or no constant")
    # One by one before they are added up: large ones could overflow to the right sum.
    if (counts > len(chosen)).any() or not counts.sum() == len(chosen) == len(weights):
        raise invalid("the features of leaves are not as many as it states")
    if ((chosen < 0) | (chosen >= features)).any():
        raise invalid(f"a leaf takes a feature that is not one of {features}")


def _integers(lines: list[bytes]) -> Positions:
    """Whole numbers, each with a space between; a line may be empty."""
    joined = b" ".join(filter(None, lines))
    if not joined:
        return np.zeros(0, np.int64)
    signs = np.frombuffer(b" " + joined + b" ", np.uint8)
    digit, space = signs >= ord("0"), signs == ord(" ")
    # A number begins after a space, with a digit or with a minus before one.
    minus = signs[1:-1] == ord("-")
    if (
        joined.translate(None, b"0123456789- ")
        or (minus & ~(space[:-2] & digit[2:])).any()
        or (space[1:] & space[:-1]).any()
    ):
        raise invalid("a number is not a whole one")
    return np.fromstring(joined, dtype=np.int64, sep=" ")


def _floats(lines: list[bytes], name: str, *, finite: bool = True) -> list[float]:
    """Numbers, each with a space between; a line may be empty."""
    joined = b" ".join(filter(None, lines))
    # Python reads more as numbers than LightGBM does.
    signs = b"0123456789.+-e " if finite else b"0123456789.+-e infa"
    if joined.translate(None, signs) or b"  " in joined:
        raise invalid(f"`{name}` holds what is not a number")
    try:
        return list(map(float, joined.split()))
    except ValueError as error:
        raise invalid(f"`{name}` holds what is not a number") from error
