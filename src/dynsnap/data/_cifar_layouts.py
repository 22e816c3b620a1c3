"""How CIFAR-10 and CIFAR-100 are published: file names, md5 sums, kinds of labels."""

from collections.abc import Mapping
from dataclasses import dataclass

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
