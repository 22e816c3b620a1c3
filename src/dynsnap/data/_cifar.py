"""CIFAR-10 and CIFAR-100, in the official python and binary layouts, from folder or archive."""

import itertools
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dynsnap._types import AnyArray
from dynsnap.data._archive import is_archive, read_members
from dynsnap.data._dataset import DataSet, data_folder, md5, missing, numbered, read_bytes
from dynsnap.data._pickles import plain_dict
from dynsnap.data._pool import Pool
from dynsnap.errors import DataError

SITE = "https://www.cs.toronto.edu/~kriz"


@dataclass(frozen=True, kw_only=True)
class CifarLayout:
    """One of the ways in which the data set is published."""

    kind: str
    folder: str
    archive: str
    archive_md5: str
    train: tuple[str, ...]
    test: tuple[str, ...]
    names: tuple[str, ...]  # files with class names: one for all kinds of labels, or one for each
    sums: Mapping[str, str]

    @property
    def files(self) -> tuple[str, ...]:
        """Every file of the layout."""
        return (*self.train, *self.test, *self.names)


@dataclass(frozen=True, kw_only=True)
class Cifar:
    """One of the two data sets."""

    name: str
    rows: Mapping[str, int]  # images in a file, by the split that the file belongs to
    # Classes of each kind of label, in the order of the binary layout; the last counts.
    labels: Mapping[str, int]
    layouts: tuple[CifarLayout, ...]


CIFAR10 = Cifar(
    name="cifar-10",
    rows={"train": 10_000, "test": 10_000},
    labels={"label": 10},
    layouts=(
        CifarLayout(
            kind="python",
            folder="cifar-10-batches-py",
            archive="cifar-10-python.tar.gz",
            archive_md5="c58f30108f718f92721af3b95e74349a",
            train=tuple(f"data_batch_{number}" for number in range(1, 6)),
            test=("test_batch",),
            names=("batches.meta",),
            sums={
                "data_batch_1": "c99cafc152244af753f735de768cd75f",
                "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
                "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
                "data_batch_4": "634d18415352ddfa80567beed471001a",
                "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
                "test_batch": "40351d587109b95175f43aff81a1287e",
                "batches.meta": "5ff9c542aee3614f3951f8cda6e48888",
            },
        ),
        CifarLayout(
            kind="binary",
            folder="cifar-10-batches-bin",
            archive="cifar-10-binary.tar.gz",
            archive_md5="c32a1d4ab5d03f1284b67883e8d87530",
            train=tuple(f"data_batch_{number}.bin" for number in range(1, 6)),
            test=("test_batch.bin",),
            names=("batches.meta.txt",),
            sums={
                "data_batch_1.bin": "5dd7e06a14cb22eb9f671a540d1b7c25",
                "data_batch_2.bin": "5ea93a67294ea407fff1d09f752e9692",
                "data_batch_3.bin": "942cd6a4bcdd0dd3c604fbe906cb4421",
                "data_batch_4.bin": "ae636b3ba5c66a11e91e8cb52e771fcb",
                "data_batch_5.bin": "53f37980c15c3d472c316c40844f3f0d",
                "test_batch.bin": "803d5f7f4d78ea53de84dbe85f74fb6d",
            },
        ),
    ),
)
CIFAR100 = Cifar(
    name="cifar-100",
    rows={"train": 50_000, "test": 10_000},
    labels={"coarse_label": 20, "fine_label": 100},
    layouts=(
        CifarLayout(
            kind="python",
            folder="cifar-100-python",
            archive="cifar-100-python.tar.gz",
            archive_md5="eb9058c3a382ffc7106e4002c42a8d85",
            train=("train",),
            test=("test",),
            names=("meta",),
            sums={
                "train": "16019d7e3df5f24257cddd939b257f8d",
                "test": "f0ef6b0ae62326f3e7ffdfab6717acfc",
                "meta": "7973b15100ade9c7d40fb424638fde48",
            },
        ),
        CifarLayout(
            kind="binary",
            folder="cifar-100-binary",
            archive="cifar-100-binary.tar.gz",
            archive_md5="03b5dce01913d631647c71ecec9e9cb8",
            train=("train.bin",),
            test=("test.bin",),
            names=("coarse_label_names.txt", "fine_label_names.txt"),
            sums={
                "train.bin": "6172c7755cfe09b2fe270c85cebc1b15",
                "test.bin": "4499cfba6c016c1be1438163640a0898",
            },
        ),
    ),
)


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
            f"{self.place / name} is damaged or not what its name states: {reason}. Its md5 is "
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
