"""What inputs look like: small pictures and the beginnings of texts, for people to look at."""

import io
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import TypeAlias

import numpy as np

from dynsnap import _files
from dynsnap._types import AnyArray
from dynsnap.data._images import IMAGE_SUFFIXES, ImageReader
from dynsnap.data._new_inputs import read_inputs
from dynsnap.data._sources import SOURCES, load
from dynsnap.data._tables import TABLE_SUFFIXES, TableFile
from dynsnap.errors import DataError

Excerpt: TypeAlias = AnyArray | str  # a picture (height, width, 1 or 3) in uint8, or a text

SIDE = 64  # pixels of a picture's longer side
LETTERS = 400


def excerpts(inputs: AnyArray, ids: Iterable[object]) -> dict[str, Excerpt]:
    """Inputs by id, small enough to be shown beside each other; none where there is nothing to see.

    Example:
        >>> excerpts(np.array(["a " * 500, "b"], dtype=object), [1, 2])["2"]
        'b'
        >>> excerpts(np.zeros((2, 640, 480, 3), np.uint8), [1, 2])["1"].shape
        (64, 48, 3)
        >>> excerpts(np.eye(2), [1, 2])  # numbers have no excerpt
        {}
    """
    small = _excerpt_of(inputs)
    if small is None:
        return {}
    return {str(name): small(row) for name, row in zip(ids, inputs, strict=True)}


def read_excerpts(
    place: str | Path, wanted: Collection[str], *, id_column: str = "id"
) -> dict[str, Excerpt]:
    """What some inputs look like, from where they are kept.

    Args:
        place: An NPZ file with `inputs` and `ids`; a CSV or Parquet table, or JSON lines, with ids
            and texts; a folder of images whose ids are their paths in it; or the name of a source,
            with its path behind a colon where it needs one, such as `cifar-10:data`.
        wanted: The ids to look for. Those that are not there are left out.
        id_column: What the column of ids is called.

    Example:
        >>> sorted(read_excerpts("digits", ["digits-0", "digits-1", "elsewhere"]))
        ['digits-0', 'digits-1']
    """
    path = Path(place)
    source, _, behind = str(place).partition(":")
    if not path.exists() and source in SOURCES:
        found = load(source, Path(behind) if behind else None)
        pools = [pool for pool in (found.train, found.test) if pool is not None]
        known: dict[str, Excerpt] = {}
        for pool in pools:
            known |= _chosen(pool.inputs, pool.ids, wanted)
    elif path.is_dir():
        known = dict(_of_images(path, wanted))
    elif not path.is_file():
        raise DataError(f"There is no file, folder or source {str(place)!r} to read inputs from.")
    else:
        read = _read_table if path.name.endswith(TABLE_SUFFIXES) else _read_file
        known = _chosen(*read(path, id_column), wanted)
    if wanted and not known:
        raise DataError(
            f"{place} has none of the {len(wanted)} inputs that are shown, or nothing to see of "
            f"them. The first is {min(wanted)!r}: their ids must be the same."
        )
    return known


def write_excerpts(path: Path, found: Mapping[str, Excerpt]) -> None:
    """Keep excerpts in an NPZ file, which `read_excerpts` reads."""
    content = io.BytesIO()
    rows = list(found.values())
    inputs = np.stack(rows) if rows and not isinstance(rows[0], str) else np.array(rows, str)
    np.savez_compressed(content, inputs=inputs, ids=np.array(list(found), str))
    _files.write_bytes(path, content.getvalue())


def _chosen(inputs: AnyArray, ids: AnyArray, wanted: Collection[str]) -> dict[str, Excerpt]:
    names = np.asarray(ids).astype(str)
    rows = np.flatnonzero(np.isin(names, list(wanted)))
    return excerpts(inputs[rows], names[rows].tolist())


def _excerpt_of(inputs: AnyArray) -> Callable[[AnyArray], Excerpt] | None:
    """How to make a row small, or None where there is nothing to see."""
    if not isinstance(inputs, np.ndarray):
        return None
    if inputs.dtype == object:
        return _beginning
    pictures = inputs.ndim == 3 or (inputs.ndim == 4 and inputs.shape[-1] in (1, 3))
    return _shrunk if pictures and inputs.dtype == np.uint8 else None


def _beginning(text: object) -> str:
    words = " ".join(str(text)[: 4 * LETTERS].split())
    return words if len(words) <= LETTERS else words[: LETTERS - 1] + "…"


def _shrunk(image: AnyArray) -> AnyArray:
    """A picture of at most `SIDE` pixels, each the mean of those that it stands for."""
    image = image.reshape(*image.shape[:2], -1)
    step = math.ceil(max(image.shape[:2]) / SIDE)
    if step == 1:
        return image
    high, wide = (max(1, side // step) for side in image.shape[:2])
    whole = image[: high * step, : wide * step]
    blocks = whole.reshape(high, whole.shape[0] // high, wide, whole.shape[1] // wide, -1)
    return np.asarray(np.rint(blocks.mean(axis=(1, 3))), np.uint8)


def _read_file(path: Path, id_column: str) -> tuple[AnyArray, AnyArray]:
    found = read_inputs(path, id=None if path.suffix == ".npz" else id_column)
    return found.inputs, found.ids


def _read_table(path: Path, id_column: str) -> tuple[AnyArray, AnyArray]:
    columns = TableFile(path, [id_column]).columns
    others = [name for name in columns if name != id_column]
    text = "text" if "text" in others else others[0] if len(others) == 1 else None
    if text is None:
        raise DataError(
            f"{path} has no column 'text' to show inputs by, and {len(others)} others beside "
            f"{id_column!r}. Call the column of texts so."
        )
    table = TableFile(path, [id_column, text])
    return table.texts(text), table.texts(id_column)


def _of_images(folder: Path, wanted: Collection[str]) -> Iterable[tuple[str, Excerpt]]:
    pixels = ImageReader(None, grey=False)
    inside = folder.resolve()
    for name in wanted:
        # Ids of a data set start with the name of the split, which may be the folder itself.
        for place in (inside / name, inside / name.partition("/")[2]):
            try:
                file = place.resolve()
            except (OSError, ValueError, RuntimeError):  # no name of a file, or a link to itself
                continue
            within = file.is_relative_to(inside) and file.suffix.lower() in IMAGE_SUFFIXES
            if within and file.is_file():
                yield name, _shrunk(pixels.one(file))
                break
