"""Read predictions from a file of any of the formats."""

import contextlib
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa

from dynsnap.errors import FileError, InputError
from dynsnap.predictions._classes import check_rename, renamed
from dynsnap.predictions._predictions import Predictions
from dynsnap.predictions._schema import ColumnNames, interpret
from dynsnap.predictions._sources import compression_of, format_of, opened
from dynsnap.predictions._tables import checked, joined, parts_of
from dynsnap.predictions._text import on_one_line
from dynsnap.predictions._vocabulary import vocabulary_of

# What the libraries below raise on bytes that make no sense.
_DAMAGE = (
    OSError,
    pa.ArrowException,
    ValueError,
    KeyError,
    EOFError,
    NotImplementedError,
    OverflowError,
    MemoryError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
)
_STARTS = {b"PAR1": ".parquet", b"ARROW1": ".arrow", b"PK\x03\x04": ".npz", b"\x1f\x8b": ".csv.gz"}


def read(
    path: str | Path,
    *,
    columns: ColumnNames | None = None,
    rename: Mapping[str, str] | None = None,
) -> Predictions:
    """Read predictions from Parquet, Arrow or Feather, CSV, or NPZ; the file's ending tells which.

    Columns: `id`; `label` or scores (`score:<class>` columns, or one list column `scores` with the
    class names in the file's metadata under "dynsnap.classes", as a JSON list); `truth` and
    `weight` where known. Another column with at most 50 values is a slice. Files hold class names:
    a whole number in `label` or `truth` is read as its text. The one exception is an NPZ archive
    with an array `classes`, in which they are positions. Without class names for a list of scores,
    classes are called "0", "1", and so on.

    Args:
        path: The file.
        columns: What the columns are called, where it is not as above.
        rename: New names for some classes. Two classes that get one name are added up.

    Raises:
        FileError: The file cannot be read, or does not hold predictions.
        PlanError: `rename` names a class that the file does not have.

    Example:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder, "new.csv")
        ...     _ = file.write_text("id,truth,label\\n7,cat,dog\\n8,dog,dog\\n")
        ...     print(read(file).classes)
        ('cat', 'dog')
    """
    file = Path(path)
    names = columns or ColumnNames()
    with reading(file), opened(file, names) as source:
        layout = interpret(source.schema, names)
        vocabulary = vocabulary_of(source, layout)
        predictions = checked(joined(parts_of(source, layout, vocabulary)), vocabulary)
    check_rename(rename or {}, predictions.classes, where=on_one_line(file))
    return renamed(predictions, rename or {})


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn whatever goes wrong with a file into one line that names it."""
    name = on_one_line(path)
    try:
        if path.is_dir():
            raise FileError(f"{name} is a directory. Name a file in it.")
        if not path.exists():
            raise FileError(f"{name} does not exist. Check the path.")
        yield
    except InputError as error:
        raise FileError(f"{name}: {error}") from error
    except _DAMAGE as error:
        raise FileError(f"{name} cannot be read as {_why(path, error)}") from error


def _why(path: Path, error: BaseException) -> str:
    wanted = format_of(path)
    if isinstance(error, MemoryError):
        return f"{wanted}: it is damaged, or needs more memory than there is."
    if isinstance(error, PermissionError):
        return f"{wanted}: {error.strerror}. Allow it to be read."
    with contextlib.suppress(OSError), path.open("rb") as handle:
        start = handle.read(8)
        if not start:
            return f"{wanted}: it is empty. Write it again."
        found = next((Path(end) for magic, end in _STARTS.items() if start.startswith(magic)), path)
        if (format_of(found), compression_of(found)) != (wanted, compression_of(path)):
            return f"{wanted}: it looks like a {found} file. Give it that ending."
    reason = on_one_line(" ".join(str(error).split()) or type(error).__name__, limit=160)
    return f"{wanted}: {reason.rstrip('.')}. It may be cut off or damaged; write it again."
