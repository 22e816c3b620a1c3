"""Pools from folders of images, one folder per class."""

from pathlib import Path
from typing import Any

import numpy as np

from dynsnap._types import AnyArray
from dynsnap._untrusted import regular
from dynsnap.data._dataset import DataSet, class_order, needs, positions
from dynsnap.data._pool import Pool
from dynsnap.errors import DataError, PlanError, one_line

IMAGE_SUFFIXES = frozenset(
    {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm"}
)


def read_images(
    path: str | Path,
    *,
    test: str | Path | None = None,
    size: tuple[int, int] | None = None,
    grey: bool = False,
) -> DataSet:
    """A data set from a folder with one subfolder of images for each class.

    Args:
        path: That folder, or one with such folders in its subfolders `train` and `test`.
        test: The folder of the test set, where it lies elsewhere.
        size: (height, width) to bring all images to. Without it they must be of one size.
        grey: One channel instead of red, green and blue.
    """
    _check_size(size)
    folders = {"train": Path(path)}
    if test is not None:
        folders["test"] = Path(test)
    elif (Path(path) / "train").is_dir() and (Path(path) / "test").is_dir():
        folders = {split: Path(path) / split for split in ("train", "test")}
    files, notes = {}, []
    for split, folder in folders.items():
        files[split], others = image_files(folder)
        if others:
            notes.append(f"{folder}: {others} files that are no images were passed over.")
    classes = class_order(file.parent.name for found in files.values() for file in found)
    pixels = ImageReader(size, grey)
    pools = {
        split: Pool(
            name=split,
            inputs=pixels.read(found),
            labels=positions([file.parent.name for file in found], classes, what=split),
            classes=classes,
            ids=np.array([f"{split}/{file.parent.name}/{file.name}" for file in found]),
        )
        for split, found in files.items()
    }
    return DataSet(train=pools["train"], test=pools.get("test"), notes=tuple(notes))


def _check_size(size: Any) -> None:
    """Raise unless this is None or a height and a width, as a tuple or as TOML has it."""
    sound = isinstance(size, list | tuple) and len(size) == 2
    if size is not None and not (sound and all(isinstance(n, int) and n > 0 for n in size)):
        raise PlanError(f"`size` must be (height, width) in pixels, got {size!r}.")


def image_files(folder: Path) -> tuple[list[Path], int]:
    """The images of a folder's classes in a fixed order, and how many other files there are."""
    if not folder.is_dir():
        raise DataError(f"There is no folder {folder}.")
    found = [
        file
        for kind in sorted(folder.iterdir())
        if kind.is_dir() and not kind.name.startswith(".")
        for file in sorted(kind.iterdir())
        if file.is_file() and not file.name.startswith(".")
    ]
    images = [file for file in found if file.suffix.lower() in IMAGE_SUFFIXES]
    if not images:
        raise DataError(
            f"{folder} holds no images. It must have one subfolder for each class, with images "
            f"({' '.join(sorted(IMAGE_SUFFIXES))}) in it."
        )
    return images, len(found) - len(images)


class ImageReader:
    """Reads images into one array; all of one size, over several folders too."""

    def __init__(self, size: tuple[int, int] | None, grey: bool) -> None:
        self.library: Any = needs("PIL.Image", extra="torch", what="Reading images")
        self.size = None if size is None else (size[0], size[1])
        self.grey, self.asked = grey, size is not None

    def read(self, files: list[Path]) -> AnyArray:
        """Images as (rows, height, width, channels) uint8."""
        images = []
        for file in files:
            image = self.one(file)
            if self.size is None:
                self.size = image.shape[:2]
            if image.shape[:2] != self.size:
                raise DataError(
                    f"{file} has {image.shape[0]} x {image.shape[1]} pixels, the images before it "
                    f"{self.size[0]} x {self.size[1]}. Give `size` to bring all to one."
                )
            images.append(image)
        return np.stack(images)

    def one(self, file: Path) -> AnyArray:
        """One image as (height, width, channels) uint8."""
        try:
            with self.library.open(regular(file)) as image:
                plain = image.convert("L" if self.grey else "RGB")
                if self.asked and self.size is not None:
                    plain = plain.resize(self.size[::-1], self.library.Resampling.BILINEAR)
                pixels = np.asarray(plain, dtype=np.uint8)
        except (OSError, ValueError, SyntaxError, self.library.DecompressionBombError) as error:
            raise DataError(f"Cannot read the image {file}: {one_line(str(error))}.") from error
        return pixels[..., np.newaxis] if self.grey else pixels
