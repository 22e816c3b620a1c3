"""Scikit-learn classifiers as bytes, in the format of skops: nothing in them is executed."""

import contextlib
import io
import json
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np

from dynsnap._untrusted import HEADER, array_header
from dynsnap.boost._structure import shown, unchecked
from dynsnap.boost.rebuilt import Facts, rebuilt
from dynsnap.errors import FileError, PlanError

_Read = TypeVar("_Read")

# On Python 3.11, threads that parse Python at the same time, as numpy does for skops with the
# headers of arrays, disturb each other. Ours take turns; others may parse whenever they like.
_ONE_AT_A_TIME = threading.RLock()
_DISTURBED = "AST constructor recursion depth mismatch"
_TRIES = 20

# Parts of scikit-learn's classifiers that are not estimators themselves, and plain functions that
# they call.
_PARTS = frozenset(
    {
        "numpy.dtype",  # of the values that an imputer fills in
        "sklearn.calibration._CalibratedClassifier",
        "sklearn.calibration._SigmoidCalibration",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.feature_selection._univariate_selection.chi2",
        "sklearn.feature_selection._univariate_selection.f_classif",
        "sklearn.neighbors._ball_tree.BallTree",
        "sklearn.neighbors._kd_tree.KDTree",
        "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
        "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
        "sklearn.tree._tree.Tree",
        "sklearn.utils._bunch.Bunch",
    }
)


def dump(model: Any) -> bytes:
    """A fitted classifier as bytes, the same for the same classifier."""
    import skops.io

    with _chosen_columns(model):
        content = _canonical(skops.io.dumps(model))
    parts = skops.io.get_untrusted_types(data=content)
    if strangers := [name for name in parts if not _trusted(name)]:
        raise PlanError(
            f"{type(model).__name__} cannot be stored safely: it holds {', '.join(strangers)}, "
            "which would not be trusted on loading. Use scikit-learn's own parts; put a "
            "pipeline around the ensemble, not into it."
        )
    return content


@contextlib.contextmanager
def _chosen_columns(model: Any) -> Iterator[None]:
    """Have each ColumnTransformer name the columns that it chose, not the rule that chose them.

    `make_column_selector` is code to scikit-learn, and after fitting nothing asks it again.
    """
    parts = [model, *model.get_params(deep=True).values()] if hasattr(model, "get_params") else []
    found = {
        id(part): part
        for part in parts
        if type(part).__name__ == "ColumnTransformer" and hasattr(part, "_columns")
    }
    before = {place: part.transformers for place, part in found.items()}
    for part in found.values():
        given = zip(part.transformers, part._columns, strict=True)
        part.transformers = [(name, step, columns) for (name, step, _), columns in given]
    try:
        yield
    finally:
        for place, part in found.items():
            part.transformers = before[place]


def load(content: bytes) -> Any:
    """A classifier from bytes that are trusted, but for types that are no part of a classifier."""
    return _reading(_load_by_skops, content)


def load_checked(content: bytes) -> tuple[Any, Facts]:
    """A classifier from bytes that anybody may have written, and what is known of it."""
    return _reading(lambda given: rebuilt(given, _refused), content)


def _reading(read: Callable[[bytes], _Read], content: bytes) -> _Read:
    try:
        return read(content)
    except FileError:
        raise
    except Exception as error:  # a damaged file can fail anywhere in zip, json, numpy or skops
        raise FileError(
            f"A stored classifier cannot be read ({type(error).__name__}: {shown(str(error))}). "
            "The file may be damaged, or come from another version of scikit-learn."
        ) from error


def _load_by_skops(content: bytes) -> Any:
    import skops.io

    parts = skops.io.get_untrusted_types(data=content)  # by skops, that is
    if strangers := [name for name in parts if not _trusted(name)]:
        raise _not_trusted(strangers)
    with _ONE_AT_A_TIME:
        return _undisturbed(lambda: skops.io.loads(content, trusted=parts))


def _undisturbed(read: Callable[[], _Read]) -> _Read:
    """Read again where a thread that is not ours was parsing, too."""
    for _ in range(_TRIES - 1):
        try:
            return read()
        except SystemError as error:
            if not str(error).startswith(_DISTURBED):
                raise
    return read()


def _refused(name: str) -> FileError:
    """The error for a type that cannot be checked, or that is never loaded."""
    return unchecked(f"a {shown(name)}") if _trusted(name) else _not_trusted([name])


def _not_trusted(names: list[str]) -> FileError:
    return FileError(
        f"A stored classifier holds types that are not trusted: {shown(names)}. It was not loaded. "
        "Train it again with scikit-learn's own parts."
    )


def _trusted(name: str) -> bool:
    # Only classes that scikit-learn itself defines: a function, or what one of its modules merely
    # imports from elsewhere, could be made to do something on loading.
    if name in _PARTS:
        return True
    module, _, attribute = name.rpartition(".")
    if module.partition(".")[0] != "sklearn":
        return False
    import skops.io  # noqa: F401 (it loads all modules of scikit-learn that have estimators)
    from sklearn.base import BaseEstimator
    from sklearn.gaussian_process.kernels import Kernel
    from sklearn.metrics import DistanceMetric

    # A file may not choose what is imported, so a module that is not imported yet is refused.
    found = getattr(sys.modules.get(module), attribute, None)
    return (
        isinstance(found, type)
        and issubclass(found, BaseEstimator | DistanceMetric | Kernel)
        and found.__module__ == module
    )


def _canonical(content: bytes) -> bytes:
    """The same archive without what differs between runs.

    That is memory addresses, the time of day, and whatever was in memory between the fields of
    the nodes of a tree.
    """
    numbers: dict[str, int] = {}

    def renumbered(node: Any) -> Any:
        if isinstance(node, list):
            return [renumbered(item) for item in node]
        if not isinstance(node, dict):
            return node
        if "__id__" not in node:
            return {key: renumbered(value) for key, value in node.items()}
        # Whether two equal numbers or words are one object in memory is a matter of chance.
        plain = node.get("__loader__") == "JsonNode"
        own = f"json {node['content']}" if plain else str(node["__id__"])
        number = numbers.setdefault(own, len(numbers))
        fresh = {key: renumbered(value) for key, value in node.items()} | {"__id__": number}
        if isinstance(file := node.get("file"), str):
            fresh["file"] = renamed(file)
        return fresh

    def renamed(file: str) -> str:
        stem, dot, suffix = file.partition(".")
        return f"{numbers.setdefault(stem, len(numbers))}{dot}{suffix}"

    with zipfile.ZipFile(io.BytesIO(content)) as old:
        schema = renumbered(json.loads(old.read("schema.json")))
        files = {
            renamed(name): _without_padding(old.read(name))
            for name in old.namelist()
            if name != "schema.json"
        }
    files["schema.json"] = json.dumps(schema, separators=(",", ":")).encode()
    fresh = io.BytesIO()
    with zipfile.ZipFile(fresh, "w", zipfile.ZIP_DEFLATED) as new:
        for name in sorted(files):
            new.writestr(zipfile.ZipInfo(name), files[name], zipfile.ZIP_DEFLATED)
    return fresh.getvalue()


def _without_padding(file: bytes) -> bytes:
    """An array's file with zeros between the fields of its rows; any other file as it is."""
    if not file.startswith(b"\x93NUMPY"):
        return file
    header = array_header(file[:HEADER], len(file))
    if header.dtype.fields is None or not header.count:
        return file
    rows = np.frombuffer(file[-header.nbytes :], np.uint8).reshape(header.count, -1).copy()
    used = np.zeros(rows.shape[1], dtype=bool)
    for kind, offset in (field[:2] for field in header.dtype.fields.values()):
        used[offset : offset + kind.itemsize] = True
    rows[:, ~used] = 0
    return file[: -header.nbytes] + rows.tobytes()
