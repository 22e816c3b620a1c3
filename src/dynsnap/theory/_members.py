"""The scores of an ensemble's members: checked, and read from an NPZ archive of plain arrays."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dynsnap import _check
from dynsnap._types import AnyArray, Floats, MemberScores
from dynsnap._untrusted import ArrayArchive
from dynsnap.errors import ComparisonError, FileError, InputError, one_line

Truth = npt.NDArray[Any]  # (inputs,), class positions; or (inputs, classes), true vectors


def check_members(**arrays: MemberScores) -> tuple[AnyArray, ...]:
    """The arrays, if they are finite scores of the same members, inputs and classes."""
    found = {name: np.asarray(array) for name, array in arrays.items()}
    for name, array in found.items():
        if array.ndim != 3 or 0 in array.shape:
            raise InputError(
                f"`{name}` must have the shape (members, inputs, classes), none of them 0, "
                f"got {array.shape}. A single learner is one member: `scores[None]`."
            )
    counts = {name: len(array) for name, array in found.items()}
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"`{name}` has {count}" for name, count in counts.items())
        raise InputError(
            "The theorems pair each member with its next generation, so both ensembles need as "
            f"many members, but {listed}."
        )
    if len({array.shape for array in found.values()}) > 1:
        listed = ", ".join(f"`{name}` has {array.shape[1:]}" for name, array in found.items())
        raise InputError(
            f"Members must score the same inputs and classes, but of these {listed}. "
            "Line them up by input id and class name first."
        )
    _check.finite(**found)
    return tuple(found.values())


def target(truth: Truth, *, like: AnyArray) -> Floats:
    """What each member should have said: one-hot rows of class positions, or true vectors."""
    _, inputs, classes = like.shape
    found = np.asarray(truth)
    if found.ndim == 2:
        if found.shape != (inputs, classes):
            raise InputError(
                f"True vectors must have the shape ({inputs}, {classes}) of one member's scores, "
                f"got {found.shape}."
            )
        _check.finite(truth=found)
        return found.astype(np.float64)
    positions = _check.truth(found, inputs=inputs, classes=classes)
    return np.eye(classes)[positions]


def shares(weights: AnyArray | None, *, members: int) -> Floats:
    """What each member counts for; together 1."""
    if weights is None:
        return np.full(members, 1 / members)
    relative = _check.weights(weights, of="members", size=members)
    return np.asarray(relative / relative.sum())


_ARRAYS = ("scores", "truth", "ids", "classes")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MemberPredictions:
    """What the members of one ensemble said about some inputs.

    Attributes:
        scores: Of shape (members, inputs, classes).
        truth: Class positions of shape (inputs,), or true vectors of shape (inputs, classes).
        ids: The names of the inputs.
        classes: The names of the classes.
    """

    scores: AnyArray
    truth: Truth | None = None
    ids: tuple[str, ...] | None = None
    classes: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        check_members(scores=self.scores)
        _, inputs, classes = self.scores.shape
        if self.truth is not None:
            target(self.truth, like=self.scores)
        for what, names, size in (("ids", self.ids, inputs), ("classes", self.classes, classes)):
            if names is None:
                continue
            if len(names) != size:
                raise InputError(f"`{what}` must hold {size} names, got {len(names)}.")
            if len(set(names)) < size:
                twice = next(name for i, name in enumerate(names) if name in names[:i])
                raise InputError(f'`{what}` must differ, but "{one_line(twice)}" is there twice.')
            for name in names:
                if one_line(name) != name:
                    raise InputError(
                        f'`{what}` must not hold control characters, got "{one_line(name)}".'
                    )


def read_members(path: str | Path) -> MemberPredictions:
    """Read members' scores from an NPZ archive of plain arrays.

    `scores` has the shape (members, inputs, classes). Optional: `truth` (class positions; or class
    names, with `classes`; or true vectors of shape (inputs, classes); with a single output, one
    number per input), `ids` and `classes`.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     np.savez(Path(folder, "old.npz"), scores=np.ones((5, 20, 3)) / 3)
        ...     read_members(Path(folder, "old.npz")).scores.shape
        (5, 20, 3)
    """
    path = Path(path)
    with ArrayArchive(path) as archive:
        if "scores" not in archive.headers:
            found = one_line(", ".join(sorted(archive.headers))[:200]) or "nothing"
            raise FileError(
                f"{path} has no array `scores` of shape (members, inputs, classes); it holds "
                f"{found}."
            )
        arrays = {name: archive.read(name) for name in _ARRAYS if name in archive.headers}
        positions = _positions(archive, path)
    try:
        scores = arrays["scores"]
        if scores.ndim == 2:
            raise InputError(
                f"`scores` has the shape {scores.shape} of a single learner, not (members, inputs, "
                "classes). Compare single learners with `dynsnap compare`."
            )
        classes = _names(arrays, "classes")
        return MemberPredictions(
            scores=scores,
            truth=_truth(
                arrays.get("truth"),
                classes,
                columns=scores.shape[-1],
                positions=positions,
            ),
            ids=_names(arrays, "ids"),
            classes=classes,
        )
    except InputError as error:
        raise FileError(f"{path}: {error}") from error


def _positions(archive: ArrayArchive, path: Path) -> bool | None:
    try:
        return archive.positions()
    except InputError as error:
        raise FileError(f"{path}: {error}") from error


def line_up(
    old: MemberPredictions, new: MemberPredictions
) -> tuple[MemberPredictions, MemberPredictions]:
    """Both, with the new one's inputs and classes in the order of the old one's.

    Without ids or class names on either side their order is trusted. The inputs, the classes and
    the truth must be the same; truth that only one side has serves both.

    Example:
        >>> scores = np.array([[[0.9, 0.1], [0.3, 0.7]]])
        >>> old = MemberPredictions(scores=scores, ids=("a", "b"))
        >>> new = MemberPredictions(scores=scores[:, ::-1], ids=("b", "a"))
        >>> bool((line_up(old, new)[1].scores == scores).all())
        True
    """
    _same_size(old, new)
    rows = _order(old.ids, new.ids, "inputs")
    columns = _order(old.classes, new.classes, "classes")
    scores, truth = new.scores, new.truth
    if rows is not None:
        scores = scores[:, rows]
        truth = None if truth is None else truth[rows]
    if columns is not None:
        scores = scores[:, :, columns]
        if truth is not None:
            truth = truth[:, columns] if truth.ndim == 2 else np.argsort(columns)[truth]
    if old.truth is not None and truth is not None:
        same = old.truth.shape == truth.shape and bool((old.truth == truth).all())
        if not same:
            raise ComparisonError(
                "The two files give different truths for the same inputs. Write the same labels "
                "into both, or into one of them only."
            )
    known = truth if old.truth is None else old.truth
    ids, classes = old.ids or new.ids, old.classes or new.classes
    return (
        MemberPredictions(scores=old.scores, truth=known, ids=ids, classes=classes),
        MemberPredictions(scores=scores, truth=known, ids=ids, classes=classes),
    )


def _same_size(old: MemberPredictions, new: MemberPredictions) -> None:
    try:
        check_members(old=old.scores, new=new.scores)
    except InputError as error:
        raise ComparisonError(str(error)) from error


def _order(old: tuple[str, ...] | None, new: tuple[str, ...] | None, of: str) -> AnyArray | None:
    """Where in `new` each name of `old` stands; None when nothing has to move."""
    if old is None or new is None or old == new:
        return None
    places = {name: i for i, name in enumerate(new)}
    missing = [name for name in old if name not in places]
    if missing:
        raise ComparisonError(
            f'The two files are about different {of}: "{missing[0]}" is in the old one only '
            f"({len(missing)} such). Score the same {of} with both."
        )
    return np.array([places[name] for name in old], dtype=np.intp)


def _names(arrays: dict[str, AnyArray], what: str) -> tuple[str, ...] | None:
    if what not in arrays:
        return None
    array = arrays[what]
    if array.ndim != 1 or array.dtype.kind not in "USiu":
        raise InputError(
            f"`{what}` must be a list of names, but is an array of {array.dtype} of shape "
            f"{array.shape}."
        )
    try:
        if array.dtype.kind == "S":
            array = np.char.decode(array, "utf-8")
        return tuple(str(name) for name in array)
    except ValueError:  # a UnicodeDecodeError among them
        raise InputError(f"`{what}` holds text that is not valid.") from None


def _truth(
    array: AnyArray | None,
    classes: tuple[str, ...] | None,
    *,
    columns: int,
    positions: bool | None,
) -> Truth | None:
    if array is not None and array.dtype.kind in "iu" and array.ndim == 1 and positions is False:
        array = array.astype(str)
    if array is None or array.dtype.kind not in "US":
        numbered = array is not None and array.ndim == 1 and columns > 1
        if numbered and classes is not None and not positions:
            _check.unambiguous(classes, what="truth")
        # With a single output, one number per input is what it should have been.
        single = array is not None and columns == 1 and array.ndim == 1
        return array[:, None] if array is not None and single else array
    names = _names({"truth": array}, "truth") or ()
    if classes is None:
        raise InputError("`truth` holds class names, so an array `classes` must name the columns.")
    places = {name: i for i, name in enumerate(classes)}
    unknown = [name for name in names if name not in places]
    if unknown:
        raise InputError(f'`truth` holds "{one_line(unknown[0])}", which is not in `classes`.')
    return np.array([places[name] for name in names], dtype=np.intp)
