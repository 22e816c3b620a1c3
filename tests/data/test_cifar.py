import contextlib
import dataclasses
import gzip
import io
import pickle
import re
import struct
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynsnap.data import GrowthPlan, cifar10_growth, cifar100_growth, grow, load
from dynsnap.data._cifar import CIFAR100
from dynsnap.data._pickles import plain_dict
from dynsnap.errors import DataError, PlanError
from tests.data.cifar_files import (
    CIFAR10,
    COARSE,
    FINE,
    IMAGES,
    WRITERS,
    cifar10_binary,
    cifar10_python,
    cifar100,
    in_folder,
    in_tar,
    made_batch,
    python2,
    swapped,
    with_labels_swapped,
    without,
)
from tests.data.real import REAL, cifar100_labels, sizes
from tests.messages import naming


def check_cifar10(found):
    assert found.train.classes == tuple(CIFAR10)
    assert len(found.train) == 5 * IMAGES
    assert found.train.inputs.shape == (5 * IMAGES, 32, 32, 3)
    assert found.train.inputs.dtype == np.uint8
    pixels, labels = made_batch(1)
    second = found.train.inputs[IMAGES : 2 * IMAGES]
    # Official files hold all of red, then green, then blue.
    assert np.array_equal(second.transpose(0, 3, 1, 2).reshape(IMAGES, 3072), pixels)
    assert found.train.labels[IMAGES : 2 * IMAGES].tolist() == labels
    assert found.test.labels.tolist() == made_batch(5)[1]
    assert found.test.ids[0] == "test-0"


@pytest.mark.parametrize("writer", WRITERS)
def test_the_python_layout_is_read_however_it_was_pickled(writer, tmp_path):
    folder = in_folder(cifar10_python(WRITERS[writer]), tmp_path / "cifar-10-batches-py")
    for path in (folder, tmp_path):
        check_cifar10(load("cifar-10", path, subset=True))


def test_the_binary_layout_is_read(tmp_path):
    folder = in_folder(cifar10_binary(), tmp_path / "cifar-10-batches-bin")
    for path in (folder, tmp_path):
        check_cifar10(load("cifar-10", path, subset=True))


@pytest.mark.parametrize("files", [cifar10_python, cifar10_binary])
def test_an_archive_is_read_where_it_lies(files, tmp_path):
    name = "cifar-10-python.tar.gz" if files is cifar10_python else "cifar-10-binary.tar.gz"
    archive = in_tar(files(), tmp_path / name)
    for path in (archive, tmp_path):
        check_cifar10(load("cifar-10", path, subset=True))
    assert [file.name for file in tmp_path.iterdir()] == [name]  # nothing was unpacked


@pytest.mark.parametrize("layout", ["python", "binary"])
def test_cifar_100_has_fine_classes_and_coarse_slices(layout, tmp_path):
    found = load("cifar-100", in_folder(cifar100(layout), tmp_path), subset=True)
    assert found.train.classes == tuple(FINE)
    pixels, fine = made_batch(1, classes=3)
    assert found.test.labels.tolist() == fine
    expected = ["fish" if FINE[label] == "shark" else "people" for label in fine]
    assert found.test.slices["coarse"].tolist() == expected
    assert found.test.inputs[0, 0, 0].tolist() == pixels[0, [0, 1024, 2048]].tolist()


def test_the_data_folder_may_be_named_by_the_environment(tmp_path, monkeypatch):
    in_folder(cifar10_binary(), tmp_path / "cifar-10-batches-bin")
    monkeypatch.setenv("DYNSNAP_DATA", str(tmp_path))
    check_cifar10(load("cifar-10", subset=True))


def test_unknown_checksums_are_noted_and_accepted(tmp_path):
    (note,) = load("cifar-10", in_folder(cifar10_binary(), tmp_path), subset=True).notes
    assert re.search(naming("6 files", "md5", r"data_batch_1\.bin"), note)


def test_a_missing_data_set_says_where_it_comes_from(tmp_path):
    with pytest.raises(DataError, match=r"not found at .*cifar-10-python\.tar\.gz \(md5 c58f30108"):
        load("cifar-10", tmp_path)
    with pytest.raises(DataError, match=r"cifar-100-binary\.tar\.gz \(md5 03b5dce0.*and put the"):
        load("cifar-100", tmp_path)
    with pytest.raises(DataError, match=r"cifar-10-python\.tar\.gz\.$"):
        load("cifar-10", tmp_path / "cifar-10-python.tar.gz")


def damaged(name, content):
    return lambda files: {**files, name: content(files[name])}


def repickled(**changes):
    def change(content):
        batch = pickle.loads(content)  # noqa: S301  the test's own bytes
        batch.update({key.encode(): value for key, value in changes.items()})
        return pickle.dumps(batch)

    return change


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (damaged("data_batch_3", lambda c: c[:-40]), "truncated"),
        (damaged("data_batch_3", lambda _: b""), naming("data_batch_3 is", "whole pickle")),
        (
            damaged("data_batch_3", lambda _: pickle.dumps([1])),
            naming("data_batch_3 is", "dictionary"),
        ),
        (damaged("data_batch_3", lambda _: pickle.dumps({b"a": 1})), r"it lacks \['data', 'lab"),
        (damaged("data_batch_3", repickled(data=b"xy")), naming("its data", "array", "3072")),
        (damaged("data_batch_3", repickled(data=np.zeros((4, 3072)))), naming("'f8'", "whole")),
        (
            damaged("data_batch_3", repickled(data=np.zeros((4, 30), "u1"))),
            naming("its data", "array", "3072"),
        ),
        (
            damaged("data_batch_3", repickled(labels=[1, 2])),
            naming("its labels", "whole number", "each image"),
        ),
        (
            damaged("data_batch_3", repickled(labels=list("abcd"))),
            naming("its labels", "whole number"),
        ),
        (damaged("data_batch_3", repickled(labels=[0, 1, 2, 10])), naming("a label", "10 classes")),
        (damaged("data_batch_3", repickled(labels=[0, 1, 2, 2**70])), "too large|too big|Overflow"),
        (
            lambda files: without(files, "data_batch_3"),
            naming("data_batch_2, data_batch_4", "lacks data_batch_3", "md5 54ebc095"),
        ),
    ],
)
def test_a_damaged_batch_is_named_with_its_official_checksum(harm, message, tmp_path):
    folder = in_folder(harm(cifar10_python()), tmp_path)
    with pytest.raises(DataError, match=message) as caught:
        load("cifar-10", folder, subset=True)
    assert "data_batch_3" in str(caught.value)
    assert "54ebc095f3ab1f0389bbae665268c751" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_damaged_class_names_are_refused(tmp_path):
    files = {**cifar10_python(), "batches.meta": pickle.dumps({b"other": 1})}
    with pytest.raises(DataError, match=naming(r"batches\.meta", "damaged", "class names")):
        load("cifar-10", in_folder(files, tmp_path), subset=True)


def test_a_cut_binary_file_is_refused_also_between_two_images(tmp_path):
    files = cifar10_binary()
    files["test_batch.bin"] = files["test_batch.bin"][:-7]
    with pytest.raises(DataError, match=naming(r"test_batch\.bin", "damaged", "images")):
        load("cifar-10", in_folder(files, tmp_path), subset=True)
    files["test_batch.bin"] = cifar10_binary()["test_batch.bin"]
    with pytest.raises(DataError, match=naming("4 images", "10,000")):
        load("cifar-10", in_folder(files, tmp_path))


SPLITS = [
    (layout, split, ending)
    for layout, ending in (("python", ""), ("binary", ".bin"))
    for split in ("train", "test")
]


@pytest.mark.parametrize(("layout", "split", "ending"), SPLITS)
@pytest.mark.parametrize("packed", [False, True], ids=["folder", "archive"])
def test_cifar_100_with_one_split_says_which_is_there_and_which_is_not(
    layout, split, ending, packed, tmp_path
):
    other = f"{'test' if split == 'train' else 'train'}{ending}"
    files = without(cifar100(layout), other)
    place = in_tar(files, tmp_path / "c.tar") if packed else in_folder(files, tmp_path / "c")
    message = naming(rf"has {split}", rf"lacks {other} \(md5 \w+\)", r"Get all of \S+100")
    with pytest.raises(DataError, match=message):
        load("cifar-100", place, subset=True)


def with_names_swapped(files):
    meta = pickle.loads(files["meta"])  # noqa: S301  the test's own bytes
    return {
        **files,
        "meta": pickle.dumps(swapped(meta, b"fine_label_names", b"coarse_label_names")),
    }


@pytest.mark.parametrize("mix", [with_labels_swapped, with_names_swapped])
def test_fine_and_coarse_labels_mixed_up_are_told(mix, tmp_path):
    folder = in_folder(mix(cifar100("python")), tmp_path)
    message = naming("train is damaged", "coarse labels", "mixed up", "Get it")
    with pytest.raises(DataError, match=message):
        load("cifar-100", folder, subset=True)


def test_fine_and_coarse_columns_mixed_up_in_the_binary_layout_are_told(tmp_path):
    files = cifar100("binary")
    for name in ("train.bin", "test.bin"):
        rows = np.frombuffer(files[name], np.uint8).reshape(IMAGES, -1).copy()
        rows[:, [0, 1]] = rows[:, [1, 0]]
        files[name] = rows.tobytes()
    with pytest.raises(DataError, match=naming(r"train\.bin", "damaged", "coarse")):
        load("cifar-100", in_folder(files, tmp_path), subset=True)


def test_a_class_in_two_superclasses_is_told(tmp_path):
    files = cifar100("python")
    batch = pickle.loads(files["test"])  # noqa: S301  the test's own bytes
    batch[b"coarse_labels"] = [1 - label for label in batch[b"coarse_labels"]]
    files["test"] = pickle.dumps(batch)
    message = naming(r"class '\w+'", r"superclass '\w+' \(cifar-100 train\)", r"test\)")
    with pytest.raises(DataError, match=message):
        load("cifar-100", in_folder(files, tmp_path), subset=True)


@pytest.fixture
def small(monkeypatch):
    """CIFAR-100 as if its official files were as small as those made here."""
    rows = {"train": IMAGES, "test": IMAGES}
    labels = {"coarse_label": len(COARSE), "fine_label": len(FINE)}
    made = dataclasses.replace(CIFAR100, rows=rows, labels=labels)
    monkeypatch.setattr("dynsnap.data._cifar.CIFAR100", made)


@pytest.mark.parametrize("layout", ["python", "binary"])
def test_names_of_fine_and_coarse_labels_that_are_swapped_are_told_of_their_file(
    layout, tmp_path, small
):
    files = cifar100(layout)
    if layout == "python":
        files["meta"] = pickle.dumps({b"fine_label_names": COARSE, b"coarse_label_names": FINE})
    else:
        fine, coarse = "fine_label_names.txt", "coarse_label_names.txt"
        files[fine], files[coarse] = files[coarse], files[fine]
    message = naming(r"(meta|coarse_label_names\.txt) is", "3 names", "2 coarse labels")
    with pytest.raises(DataError, match=message):
        load("cifar-100", in_folder(files, tmp_path))


def test_a_missing_split_is_told_before_another_file_is_refused(tmp_path):
    files = cifar100("python")
    files["train"] = b"no pickle"
    del files["test"]
    with pytest.raises(DataError, match=naming("has train, meta", "lacks test")):
        load("cifar-100", in_folder(files, tmp_path), subset=True)


def test_bytes_are_made_of_nothing_but_nothing():
    """A number would be taken for their length, and any memory with it."""
    with pytest.raises(pickle.UnpicklingError, match="something odd"):
        plain_dict(b"c__builtin__\nbytes\n(I9\ntR.")


@pytest.mark.parametrize("protocol", [0, 1, 2])
def test_pickles_that_python_3_wrote_in_an_old_protocol_are_read(protocol, tmp_path):
    files = cifar100("python")
    for name, content in files.items():
        known = pickle.loads(content)  # noqa: S301  the test's own bytes
        files[name] = pickle.dumps({**known, b"batch_label": b""}, protocol=protocol)
    assert len(load("cifar-100", in_folder(files, tmp_path), subset=True).train) == IMAGES


def test_coarse_labels_in_the_place_of_fine_ones_are_told_in_official_files(tmp_path, small):
    files = cifar100("python")
    batch = pickle.loads(files["train"])  # noqa: S301  the test's own bytes
    files["train"] = pickle.dumps({**batch, b"fine_labels": batch[b"coarse_labels"]})
    with pytest.raises(DataError, match=naming("fine labels", "2 classes", "3", "coarse")):
        load("cifar-100", in_folder(files, tmp_path))


def test_a_growth_plan_that_names_a_superclass_is_told_its_classes(tmp_path):
    found = load("cifar-100", in_folder(cifar100("python"), tmp_path), subset=True)
    message = naming("'people'", "slice 'coarse'", "baby|boy")
    with pytest.raises(PlanError, match=message):
        grow(found.train, GrowthPlan(late={"people": 2}), test=found.test)


class Evil:
    def __init__(self, call, *arguments):
        self.call, self.arguments = call, arguments

    def __reduce__(self):
        return self.call, self.arguments


@pytest.mark.parametrize("where", ["data_batch_1", "batches.meta"])
def test_a_pickle_that_would_run_code_is_refused_and_does_not(where, tmp_path):
    marker = tmp_path / "ran"
    for call, argument in ((Path.touch, marker), (eval, f"open({str(marker)!r}, 'w')")):
        files = {**cifar10_python(), where: pickle.dumps({b"data": Evil(call, argument)})}
        with pytest.raises(DataError, match=naming("touch|eval", "numpy arrays")):
            load("cifar-10", in_folder(files, tmp_path / "set"), subset=True)
    assert not marker.exists()


@pytest.mark.parametrize(
    "content",
    [
        b"cposix\nsystem\n(S'true'\ntR.",
        b"cnumpy\nfromfile\n(S'/etc/hostname'\ntR.",
        b"cnumpy\nload\n(S'/etc/hostname'\ntR.",
        b"cbuiltins\ngetattr\n.",
        b"cnumpy.core.multiarray\nscalar\n.",
        b"cnumpy.core.multiarray._reconstruct\n__globals__\n.",
        b"cnumpy\nndarray\n}S'_make'\ncnumpy\ndtype\nsb.",  # sets a field of what it may call
        b"cnumpy\nndarray\nN}S'_make'\ncnumpy\ndtype\ns\x86b.",
        b"\x80\x02cnumpy\nndarray\n)\x81.",
        b"c_codecs\nencode\n(S'x'\nS'rot13'\ntR.",
        b"\x80\x04\x8c\x02os\x8c\x06system\x93.",
        b"\x80\x02\x82\x01.",  # an extension code
        b"Pname\n.",  # a persistent id
        b"(" * 100_000,
    ],
)
def test_whatever_else_a_pickle_asks_for_is_refused(content):
    with pytest.raises(pickle.UnpicklingError):
        plain_dict(content)


def test_an_array_that_claims_more_than_it_brings_is_refused():
    content = python2({b"data": np.zeros((2, 3), np.uint8)})
    huge = content.replace(struct.pack("<i", 3) + b"t", struct.pack("<i", 2**30) + b"t", 1)
    assert huge != content
    with pytest.raises(pickle.UnpicklingError, match=naming("array", "bytes")):
        plain_dict(huge)


@settings(max_examples=3 * settings.default.max_examples)
@given(st.data())
def test_a_pickle_with_flipped_bytes_is_read_or_refused_and_nothing_else(data):
    content = bytearray(python2({b"data": np.zeros((2, 3), np.uint8), b"labels": [1, 2]}))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(pickle.UnpicklingError):
        assert isinstance(plain_dict(bytes(content)), dict)


@pytest.mark.parametrize("prefix", ["../", "/", "cifar/../../"])
def test_an_archive_with_names_that_lead_outside_is_refused(prefix, tmp_path):
    archive = in_tar(cifar10_python(), tmp_path / "cifar.tar.gz", prefix)
    with pytest.raises(DataError, match=naming(rf"'{re.escape(prefix)}batches\.meta'", "out of")):
        load("cifar-10", archive, subset=True)
    assert [file.name for file in tmp_path.iterdir()] == ["cifar.tar.gz"]


def test_a_link_in_an_archive_is_not_followed(tmp_path):
    secret = tmp_path / "secret"
    secret.write_bytes(cifar10_binary()["data_batch_1.bin"])
    files = cifar10_binary()
    del files["data_batch_1.bin"]
    archive = in_tar(files, tmp_path / "cifar.tar")
    with tarfile.open(archive, "w") as made:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            made.addfile(member, io.BytesIO(content))
        link = tarfile.TarInfo("data_batch_1.bin")
        link.type, link.linkname = tarfile.SYMTYPE, str(secret)
        made.addfile(link)
    with pytest.raises(DataError, match=naming("complete", r"data_batch_1\.bin")):
        load("cifar-10", archive, subset=True)


@pytest.mark.parametrize("content", [b"", b"no archive at all", None])
def test_a_damaged_archive_is_refused(content, tmp_path):
    archive = in_tar(cifar10_python(), tmp_path / "cifar.tar.gz")
    archive.write_bytes(archive.read_bytes()[:-2000] if content is None else content)
    with pytest.raises(DataError, match=naming(r"cifar\.tar\.gz", "or damaged", "again")):
        load("cifar-10", archive, subset=True)


def test_an_archive_of_something_else_is_refused(tmp_path):
    archive = in_tar({"readme.txt": b"hello"}, tmp_path / "other.tar.gz")
    with pytest.raises(DataError, match=naming(r"other\.tar\.gz", "cifar-10")):
        load("cifar-10", archive)
    archive.write_bytes(gzip.compress(b"x" * 2000))
    with pytest.raises(DataError, match=naming(r"other\.tar\.gz", "tar archive")):
        load("cifar-10", archive)


@pytest.fixture(scope="module")
def real_cifar10(tmp_path_factory):
    if not (REAL / "cifar-10").is_dir():
        pytest.skip("the real CIFAR-10 is not beside the project")
    folder = tmp_path_factory.mktemp("cifar-10")
    subprocess.run([sys.executable, REAL / "unpack", "cifar-10", folder], check=True)
    return load("cifar-10", folder)


@pytest.mark.slow
def test_real_cifar_10_grows_to_the_papers_sizes(real_cifar10):
    assert real_cifar10.train.counts.tolist() == [5_000] * 10
    assert real_cifar10.test.counts.tolist() == [1_000] * 10
    stream = grow(real_cifar10.train, cifar10_growth(), test=real_cifar10.test)
    assert sizes(stream) == [24_400, 30_500, 32_500]
    assert {name: len(held) for name, held in stream.evaluation.items()} == {
        "test": 4_500,
        "late": 1_000,
    }
    assert len(real_cifar10.notes) == 1  # equal arrays in other pickles


@pytest.mark.slow
def test_real_cifar_10_in_binary_has_the_official_checksums(real_cifar10, tmp_path):
    files = {"batches.meta.txt": "\n".join(CIFAR10).encode()}
    for split, pool in (("data_batch", real_cifar10.train), ("test_batch", real_cifar10.test)):
        pixels = pool.inputs.transpose(0, 3, 1, 2).reshape(len(pool), 3072)
        rows = np.column_stack([pool.labels.astype(np.uint8), pixels])
        for number in range(len(rows) // 10_000):
            name = f"{split}_{number + 1}.bin" if split == "data_batch" else f"{split}.bin"
            files[name] = rows[number * 10_000 : (number + 1) * 10_000].tobytes()
    found = load("cifar-10", in_folder(files, tmp_path))
    assert found.notes == ()
    assert found.train.fingerprint == real_cifar10.train.fingerprint
    for file in tmp_path.iterdir():
        file.unlink()  # 180 MB that pytest would keep


def test_the_real_labels_of_cifar_100_grow_to_the_papers_sizes():
    train, test = cifar100_labels()
    stream = grow(train, cifar100_growth(), test=test)
    assert stream.pool.classes.index("bowl") == 10
    assert sizes(stream) == [37_500, 46_875, 47_375]
    assert [len(held) for held in stream.evaluation.values()] == [4_950, 100]
