"""Stabilized labels in a server: a thread-safe memory of what was answered."""

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from dynsnap import _check
from dynsnap._types import AnyArray, Floats
from dynsnap.errors import InputError, PlanError
from dynsnap.predictions import Predictions, read, write
from dynsnap.predictions._sources import format_of
from dynsnap.predictions._text import check_class_names, check_name, on_one_line
from dynsnap.predictions._text_files import ids_become_numbers
from dynsnap.stabilizing._rules import Belief, CostRule, Rule, check_rule
from dynsnap.stabilizing._update import posterior_of_labels, spread

_ROWS = 1024  # of the first table; it doubles when it is full
_VERSION = "version"  # the column of a saved memory


class Stabilizer:
    """Answers of a server that change only where a rule has a reason.

    The first answer for an id is the model's own. A later model of another version changes it only
    as the rule decides; the same version always repeats its answer. Calls from many threads are
    safe: an id has one answer for each version, whatever the order of calls.

    Ids that were never asked before are not stabilized: nothing is deployed for them.

    Args:
        rule: Decides which labels change.
        classes: The classes of the model's scores, in their order.
        version: The name of the deployed model.
        capacity: The most ids to remember; the least recently asked are forgotten first. All are
            remembered by default.

    Example:
        >>> from dynsnap.stabilizing import MarginRule
        >>> server = Stabilizer(MarginRule(0.2), ["cat", "dog"], version="monday")
        >>> server.labels(["a"], [[0.4, 0.6]]).tolist()
        ['dog']
        >>> server.deploy("tuesday")
        >>> server.labels(["a", "b"], [[0.55, 0.45], [0.55, 0.45]]).tolist()
        ['dog', 'cat']
    """

    def __init__(
        self, rule: Rule, classes: Sequence[str], *, version: str, capacity: int | None = None
    ) -> None:
        check_rule(rule)
        if capacity is not None and (not isinstance(capacity, int) or capacity < 1):
            raise PlanError(f"`capacity` must be at least one id, but is {capacity!r}.")
        self._lock = threading.Lock()
        self._rule = rule
        self._classes = _names(classes)
        self._versions = [check_name(version, kind="version")]
        self._layouts = [self._classes]  # of each version: the columns of its scores
        self._labels_alone = False  # whether answers were loaded without scores, for another rule
        self._loaded = 0  # versions before a restart, whose order is not known
        self._known = dict(zip(self._classes, range(len(self._classes)), strict=True))
        self._capacity = capacity
        self._rows: OrderedDict[Any, int] = OrderedDict()
        self._free: list[int] = []
        self._labels = np.full(_ROWS, -1)  # places in `_known`, which only grows
        self._posterior = np.zeros((_ROWS, len(self._classes)), dtype=np.float32)
        self._version = np.full(_ROWS, -1)

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def version(self) -> str:
        """The deployed version."""
        return self._versions[-1]

    def deploy(
        self, version: str, *, rule: Rule | None = None, classes: Sequence[str] | None = None
    ) -> None:
        """Deploy the next model.

        Args:
            version: Its name; each is deployed once.
            rule: The rule from now on, if it is another.
            classes: The classes of its scores, if they are others; earlier ones may be missing.
        """
        names = None if classes is None else _names(classes)
        if rule is not None:
            check_rule(rule)
        check_name(version, kind="version")
        with self._lock:
            if version in self._versions:
                raise PlanError(
                    f"The version {version!r} is deployed already. Give each model a name of its "
                    "own; to go back to an earlier model, deploy it under a new name."
                )
            if self._labels_alone and isinstance(rule, CostRule):
                raise PlanError(
                    "A cost rule cannot go on from this memory: its answers were loaded as labels "
                    "alone, for a rule that needs no scores. `load` the file anew with the cost "
                    "rule and its `confusion`."
                )
            self._rule = self._rule if rule is None else rule
            if names is not None and names != self._classes:
                self._change_classes(names)
            self._versions.append(version)
            self._layouts.append(self._classes)

    def labels(self, ids: Any, scores: Any, *, version: str | None = None) -> AnyArray:
        """The answers for some inputs, as class names.

        Args:
            ids: The id of each input, each once. All ids of a memory are whole numbers, or all are
                text: 1 and "1" are different inputs, which no file could tell apart.
            scores: (inputs, classes), what the model scored; rows sum to one.
            version: The version of the model that scored them; the deployed one by default. Scores
                of an earlier version, which arrive late, have the columns of that version, and
                change no answer that was given.
        """
        keys = _keys(ids)
        if len({*keys}) != len(keys):
            raise InputError("`ids` must be of different inputs, but one comes twice.")
        try:
            found = np.asarray(scores, dtype=float)
        except (ValueError, TypeError) as error:
            raise InputError(
                f"`scores` must be numbers, a row of the same length for each id: {error}."
            ) from error
        if not keys and not found.size:  # a batch without inputs has no answers
            return np.empty(0, dtype=object)
        found = _check.probabilities(scores=found)[0]
        with self._lock:
            number = self._number_of(version)
            columns = len(self._layouts[number])
            if found.shape != (len(keys), columns):
                raise InputError(
                    f"`scores` must have a row for each of {len(keys)} ids and a column for each "
                    f"of {columns} classes, but the shape is {found.shape}."
                )
            self._refuse_mixed(keys)
            rows = self._places(keys)
            try:
                due = np.flatnonzero(
                    self._version[rows] < (number if number >= self._loaded else 0)
                )
                if len(due):
                    self._decide(rows[due], found[due], number)
                answers = self._labels[rows]
            finally:  # an id without an answer is not remembered
                self._forget(
                    [key for key, row in zip(keys, rows, strict=True) if self._version[row] < 0]
                )
            self._forget_some()
            named: AnyArray = np.array(list(self._known), dtype=object)[answers]
            return named

    def predictions(self) -> Predictions:
        """What is deployed: a label and a posterior for each id, and the version that decided.

        Answers that were loaded as labels alone are given as labels alone.

        Ids whose answer is a class that the deployed model lacks are left out: it has no reason to
        keep that answer.
        """
        with self._lock:
            places = np.fromiter(self._rows.values(), dtype=int, count=len(self._rows))
            labels = self._columns(self._classes)[self._labels[places]]
            rows, ids = places[labels >= 0], list(self._rows)
            if not len(rows):
                raise InputError("No input has been answered yet, of the classes of this version.")
            versions = np.array(self._versions, dtype=object)
            return Predictions(
                ids=[ids[place] for place in np.flatnonzero(labels >= 0)],
                classes=self._classes,
                labels=labels[labels >= 0],
                scores=None if self._labels_alone else self._posterior[rows],
                slices={_VERSION: versions[self._version[rows]]},
                positions=True,
            )

    def save(self, path: str | Path) -> None:
        """Write what is deployed to a prediction file, which `load` continues from.

        Raises:
            InputError: The ids are texts such as "7", which CSV and TSV give back as numbers: the
                memory would refuse every request after a restart.
        """
        held = self.predictions()
        if ids_become_numbers(format_of(Path(path)), held.id_column):
            raise InputError(
                f"Ids are text, such as {held.ids[0]!r}, and {on_one_line(Path(path))} would give "
                "them back as numbers, which are other inputs. Save to .parquet, or use int() ids."
            )
        write(held, path)

    @classmethod
    def load(
        cls,
        path: str | Path,
        rule: Rule,
        *,
        version: str,
        classes: Sequence[str] | None = None,
        capacity: int | None = None,
        confusion: Floats | None = None,
    ) -> "Stabilizer":
        """Continue from a saved memory, or from any prediction file.

        Args:
            path: A file of `save`, or deployed predictions.
            rule: Decides which labels change.
            version: The deployed version. Ids that were last decided by it keep their answers.
            classes: The classes of its scores; those of the file by default, which late scores of
                earlier versions have.
            capacity: The most ids to remember.
            confusion: For a cost rule and a file without scores: how often each label is given to
                each class, in the order of the rule's `shares`, as for `update`.
        """
        held = read(path)
        posterior = held.scores
        if posterior is None and isinstance(rule, CostRule):
            posterior = posterior_of_labels(held.classes, held.labels, rule, confusion)
        made = cls(rule, held.classes, version=version, capacity=capacity)
        made._labels_alone = posterior is None
        if posterior is None:
            posterior = np.eye(len(held.classes))[held.labels]
        saved = held.slices.get(_VERSION)
        names = [""] * len(held)
        if saved is not None:
            names = [str(saved.values[code]) for code in saved.codes]
        earlier = [name for name in dict.fromkeys(names) if name != version]
        made._versions = [*earlier, version]
        made._layouts = [made._classes] * len(made._versions)
        made._loaded = len(earlier)
        numbers = {name: number for number, name in enumerate(made._versions)}
        rows = made._places([_key(one) for one in held.ids])
        made._labels[rows] = held.labels
        made._posterior[rows] = posterior
        made._version[rows] = [numbers[name] for name in names]
        made._forget_some()
        if classes is not None and _names(classes) != made._classes:
            made._change_classes(_names(classes))
            made._layouts[-1] = made._classes
        return made

    def _number_of(self, version: str | None) -> int:
        if version is None:
            return len(self._versions) - 1
        if version not in self._versions:
            raise PlanError(
                f"The version {version!r} is not deployed; {self.version!r} is. `deploy` it first."
            )
        return self._versions.index(version)

    def _decide(self, rows: AnyArray, scores: AnyArray, number: int) -> None:
        classes = self._layouts[number]
        before = self._over(self._posterior[rows].astype(float), self._classes, classes)
        old = Belief(self._columns(classes)[self._labels[rows]], before)
        new = self._rule.decide(classes, old, scores)
        self._labels[rows] = np.array([self._known[name] for name in classes])[new.labels]
        self._posterior[rows] = self._over(new.posterior, classes, self._classes)
        self._version[rows] = number

    def _columns(self, classes: tuple[str, ...]) -> AnyArray:
        """For each place in `_known`, its column among some classes; -1 for none, and last."""
        place = {name: position for position, name in enumerate(classes)}
        return np.array([*(place.get(name, -1) for name in self._known), -1])

    def _over(
        self, posterior: AnyArray, given: tuple[str, ...], classes: tuple[str, ...]
    ) -> AnyArray:
        if given == classes:
            return posterior
        blank = np.full((len(posterior), len(classes)), 1 / len(classes))
        every = np.arange(len(posterior))
        return spread(posterior, given, classes, self._rule, into=blank, rows=every)

    def _refuse_mixed(self, keys: Sequence[Any]) -> None:
        kinds = {type(key) for key in keys} | {type(key) for key in islice(self._rows, 1)}
        if len(kinds) > 1:
            raise InputError(
                "Ids must be all whole numbers or all text, over all calls, but they are mixed. "
                "Convert them with str()."
            )

    def _places(self, keys: Sequence[Any]) -> AnyArray:
        for key in keys:
            if key in self._rows:
                self._rows.move_to_end(key)
            else:
                self._rows[key] = self._free.pop() if self._free else len(self._rows)
        if len(self._rows) > len(self._labels):
            self._grow(max(2 * len(self._labels), len(self._rows)))
        return np.array([self._rows[key] for key in keys], dtype=int)

    def _grow(self, size: int) -> None:
        more = size - len(self._labels)
        self._labels = np.append(self._labels, np.full(more, -1))
        self._version = np.append(self._version, np.full(more, -1))
        blank = np.zeros((more, len(self._classes)), dtype=np.float32)
        self._posterior = np.concatenate([self._posterior, blank])

    def _forget_some(self) -> None:
        while self._capacity is not None and len(self._rows) > self._capacity:
            self._forget([next(iter(self._rows))])

    def _forget(self, keys: Iterable[Any]) -> None:
        for key in keys:
            row = self._rows.pop(key)
            self._labels[row], self._version[row] = -1, -1
            self._free.append(row)

    def _change_classes(self, classes: tuple[str, ...]) -> None:
        made = self._over(self._posterior, self._classes, classes)
        self._posterior = made.astype(np.float32)
        for name in classes:
            self._known.setdefault(name, len(self._known))
        self._classes = classes


# What no prediction file can hold is refused at once, and not when the memory is saved.


def _names(classes: Sequence[str]) -> tuple[str, ...]:
    if isinstance(classes, str) or not isinstance(classes, Iterable):
        raise InputError(f"`classes` must be a sequence of names, but is {classes!r}.")
    found = check_class_names(str(name) for name in classes)
    if not found:
        raise InputError("`classes` must name each class once, and at least one.")
    return found


def _keys(ids: Any) -> list[Any]:
    if isinstance(ids, str) or not isinstance(ids, Iterable):
        raise InputError(
            f"`ids` must be a sequence with the id of each input, but is {ids!r}. Put a single id "
            "into a list."
        )
    return [_key(one) for one in ids]


def _key(one: Any) -> Any:
    if isinstance(one, str):
        return check_name(one, kind="id")
    if isinstance(one, (int, np.integer)) and not isinstance(one, bool):
        if -(2**63) <= one < 2**63:
            return int(one)
        raise InputError(f"An id must fit into 64 bits, but one is {one}. Convert ids with str().")
    raise InputError(f"An id must be a whole number or text, but one is {type(one).__name__}.")
