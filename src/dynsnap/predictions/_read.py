"""Read predictions from a file of any of the formats."""

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from dynsnap.predictions._classes import check_rename, renamed
from dynsnap.predictions._predictions import Predictions
from dynsnap.predictions._reading import reading
from dynsnap.predictions._schema import ColumnNames
from dynsnap.predictions._stream_file import StreamedFile
from dynsnap.predictions._tables import checked, joined
from dynsnap.predictions._text import on_one_line


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
        path: The file; or a directory, a pattern or a URI of Parquet files, see `stream`.
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
    with ExitStack() as until:
        file = StreamedFile.opened(path, columns or ColumnNames(), until)
        file.check_whole()
        with reading(file.place):
            predictions = checked(joined(file.unchecked()), file.vocabulary)
    check_rename(rename or {}, predictions.classes, where=on_one_line(file.place))
    return renamed(predictions, rename or {})
