"""CIFAR-10 and CIFAR-100, in the official python and binary layouts, from folder or archive."""

import itertools
import pickle
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dynsnap._types import AnyArray
from dynsnap.data._archive import is_archive, read_members
from dynsnap.data._cifar_layouts import CIFAR10, CIFAR100, SITE, Cifar, CifarLayout
from dynsnap.data._dataset import DataSet, data_folder, md5, missing, numbered, read_bytes
from dynsnap.data._pickles import plain_dict
from dynsnap.data._pool import Pool
from dynsnap.errors import DataError

_PIXELS = 3 * 32 * 32
_LARGEST = 200_000_000  # no official file has more bytes; a crafted archive could claim any number


def read_cifar10(path: str | Path | None = None, *, subset: bool = False) -> DataSet:
    """CIFAR-10: 50,000 and 10,000 images of 32 x 32 pixels, ten classes.

    Args:
        path: The archive, its unpacked folder, or a folder that holds one of them, in the python
            or the binary layout; by default the folder that $DYNSNAP_DATA names, else `data`.
        subset: Accept files with other than the official number of images, for tests and trials.
    """
    return _read(CIFAR10, data_folder(path), subset)


def read_cifar100(path: str | Path | None = None, *, subset: bool = False) -> DataSet:
    """CIFAR-100: like CIFAR-10, with 100 classes; its 20 superclasses are the slice "coarse"."""
    return _read(CIFAR100, data_folder(path), subset)


@dataclass(frozen=True, eq=False)
class _Found:
    """The files of one layout, and the place they were found at."""

    layout: CifarLayout
    place: Path
    contents: dict[str, bytes]

    def check_complete(self) -> None:
        for name in self.layout.files:
            if name not in self.contents:
                known = self.layout.sums.get(name)
                raise DataError(
                    f"{self.place} is not complete: it has {', '.join(self.contents)}, but lacks "
                    f"{name}{f' (md5 {known})' if known else ''}. Get all of "
                    f"{SITE}/{self.layout.archive} (md5 {self.layout.archive_md5})."
                )

    def damaged(self, name: str, reason: str) -> DataError:
        known = self.layout.sums.get(name)
        return DataError(
            f"{self.place / name} is damaged or not what its name says: {reason}. Its md5 is "
            f"{md5(self.contents[name])}{f', that of the official file {known}' if known else ''}. "
            f"Get it again from {SITE}/{self.layout.archive}."
        )

    def notes(self) -> tuple[str, ...]:
        other = [
            name
            for name, known in self.layout.sums.items()
            if name in self.contents and md5(self.contents[name]) != known
        ]
        if not other:
            return ()
        return (
            f"{self.place}: {len(other)} files do not have the md5 sums of the official ones "
            f"({', '.join(other)}); they are whole, and were read as they are.",
        )


def _read(cifar: Cifar, path: Path, subset: bool) -> DataSet:
    found = _find(cifar, path)
    found.check_complete()  # before one of the files is read, and perhaps refused
    names = _class_names(cifar, found)
    if not subset:
        _check_names(cifar, found, names)
    pools = {
        split: _pool(cifar, found, split, files, names, subset)
        for split, files in (("train", found.layout.train), ("test", found.layout.test))
    }
    _check_superclasses(found, *pools.values())
    return DataSet(train=pools["train"], test=pools["test"], notes=found.notes())


def _find(cifar: Cifar, path: Path) -> _Found:
    if is_archive(path):
        wanted = {name for layout in cifar.layouts for name in layout.files}
        contents = read_members(path, wanted, lambda _, handle: handle.read(_LARGEST))
        for layout in cifar.layouts:
            if own := {name: contents[name] for name in layout.files if name in contents}:
                return _Found(layout, path, own)
        raise DataError(f"{path} holds none of the files of {cifar.name}.")
    for layout in cifar.layouts:
        for folder in (path, path / layout.folder):
            if any((folder / name).is_file() for name in layout.train + layout.test):
                present = [name for name in layout.files if (folder / name).is_file()]
                return _Found(layout, folder, {n: read_bytes(folder / n) for n in present})
        if (path / layout.archive).is_file():
            return _find(cifar, path / layout.archive)
    raise missing(
        cifar.name,
        path,
        get=" or ".join(
            f"{SITE}/{layout.archive} (md5 {layout.archive_md5})" for layout in cifar.layouts
        ),
        put="the archive, or what is in it,",
    )


def _class_names(cifar: Cifar, found: _Found) -> dict[str, tuple[str, ...]]:
    """The names of the classes, for each kind of label."""
    if found.layout.kind == "binary":
        return {
            kind: tuple(found.contents[name].decode("latin-1").split())
            for kind, name in zip(cifar.labels, found.layout.names, strict=True)
        }
    (name,) = found.layout.names
    try:
        meta = plain_dict(found.contents[name])
        return {kind: _words(meta[f"{kind}_names"]) for kind in cifar.labels}
    except (pickle.UnpicklingError, KeyError, TypeError, AttributeError) as error:
        raise found.damaged(name, f"no class names can be read from it: {error}") from error


def _check_names(cifar: Cifar, found: _Found, names: dict[str, tuple[str, ...]]) -> None:
    """Raise if there are more or fewer names than classes: fine and coarse may be swapped."""
    files = itertools.cycle(found.layout.names)  # one for all kinds of labels, or one for each
    for file, (kind, classes) in zip(files, cifar.labels.items(), strict=False):
        if len(names[kind]) != classes:
            said = kind.replace("_", " ")
            raise found.damaged(file, f"it has {len(names[kind])} names for the {classes} {said}s")


def _words(names: list[bytes | str]) -> tuple[str, ...]:
    return tuple(n.decode("latin-1") if isinstance(n, bytes) else n.strip() for n in names)


def _pool(
    cifar: Cifar,
    found: _Found,
    split: str,
    files: tuple[str, ...],
    names: dict[str, tuple[str, ...]],
    subset: bool,
) -> Pool:
    parts, kinds = [], tuple(cifar.labels)
    for name in files:
        content = found.contents[name]
        read = _binary_part if found.layout.kind == "binary" else _python_part
        try:
            pixels, labels = read(content, kinds)
        except (pickle.UnpicklingError, KeyError, TypeError, ValueError, OverflowError) as error:
            raise found.damaged(name, str(error) or type(error).__name__) from error
        if len(pixels) != cifar.rows[split] and not subset:
            raise found.damaged(
                name, f"it holds {len(pixels):,} images instead of {cifar.rows[split]:,}"
            )
        if wrong := _wrong_labels(labels, [names[kind] for kind in kinds], subset):
            raise found.damaged(name, wrong)
        parts.append((pixels, labels))
    images = np.concatenate([pixels for pixels, _ in parts])
    labels = np.concatenate([labels for _, labels in parts]).astype(np.int64)
    return Pool(
        name=f"{cifar.name} {split}",
        inputs=np.ascontiguousarray(images.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)),
        labels=labels[:, -1],
        classes=names[kinds[-1]],
        ids=numbered(split, len(labels)),
        slices={
            kind.removesuffix("_label"): np.array(names[kind])[column]
            for kind, column in zip(kinds[:-1], labels.T, strict=False)
        },
    )


def _wrong_labels(labels: AnyArray, names: list[tuple[str, ...]], subset: bool) -> str:
    """What is wrong with labels (images, kinds), or nothing."""
    if not len(labels):
        return ""
    sizes, most = [len(each) for each in names], labels.max(axis=0).tolist()
    if labels.min() < 0 or any(top >= size for top, size in zip(most, sizes, strict=True)):
        if len(sizes) == 1:
            return f"a label is not one of the {sizes[0]} classes"
        return (
            f"its coarse labels run to {most[0]} and its fine ones to {most[1]}, but there are "
            f"names for {sizes[0]} coarse and {sizes[1]} fine ones. Fine and coarse seem mixed up"
        )
    found = len(np.unique(labels[:, -1]))
    if len(sizes) > 1 and found < sizes[-1] and not subset:
        return (
            f"its fine labels are of {found} classes instead of {sizes[-1]}. Fine and coarse seem "
            "mixed up"
        )
    return ""


def _check_superclasses(found: _Found, *pools: Pool) -> None:
    """Raise if the images of a class are in two superclasses, within a split or between them."""
    for column in pools[0].slices:
        home: dict[str, tuple[str, str]] = {}
        for pool in pools:
            values = pool.slices[column]
            pairs = np.unique(np.stack([np.array(pool.classes)[pool.labels], values]), axis=1)
            for name, value in pairs.T.tolist():
                before, where = home.setdefault(name, (value, pool.name))
                if before != value:
                    raise DataError(
                        f"{found.place}: images of the class {name!r} are in the superclass "
                        f"{before!r} ({where}) and in {value!r} ({pool.name}), so fine and "
                        f"{column} labels do not belong together. Get the files again from {SITE}."
                    )


def _python_part(content: bytes, kinds: tuple[str, ...]) -> tuple[AnyArray, AnyArray]:
    """Pixels (images, 3072), and labels (images, kinds)."""
    batch = plain_dict(content)
    if lacking := {"data", *(f"{kind}s" for kind in kinds)} - batch.keys():
        raise ValueError(f"it lacks {sorted(lacking)}")
    pixels, labels = batch["data"], [batch[f"{kind}s"] for kind in kinds]
    if not (
        isinstance(pixels, np.ndarray)
        and pixels.dtype == np.uint8
        and pixels.ndim == 2
        and pixels.shape[1] == _PIXELS
    ):
        raise ValueError(f"its data is not an array of {_PIXELS} bytes for each image")
    for values in labels:
        whole = isinstance(values, list) and all(isinstance(value, int) for value in values)
        if not whole or len(values) != len(pixels):
            raise ValueError("its labels are not one whole number for each image")
    return pixels, np.array(labels, dtype=np.int64).T


def _binary_part(content: bytes, kinds: tuple[str, ...]) -> tuple[AnyArray, AnyArray]:
    """Pixels (images, 3072), and labels (images, kinds)."""
    record = len(kinds) + _PIXELS
    if not content or len(content) % record:
        raise ValueError(f"its {len(content):,} bytes are not whole images of {record} bytes each")
    rows = np.frombuffer(content, dtype=np.uint8).reshape(-1, record)
    return rows[:, len(kinds) :], rows[:, : len(kinds)]
