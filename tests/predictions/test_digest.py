"""Files carry a digest of themselves: a flipped bit is noticed, and said with the exit code 3."""

import json
import re
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv, fs

from dynsnap.comparison import compare
from dynsnap.errors import FileError
from dynsnap.gate import Rule, judge
from dynsnap.predictions import Predictions, _locate, read, stream, write
from tests.cli.helpers import EXAMPLES, dynsnap, refused
from tests.messages import naming

SEALED = ["parquet", "arrow", "npz"]
BLANK = b"dynsnap1:" + b"0" * 32 + b":" + b"0" * 16 + b":" + b"0" * 8
DIGEST = re.compile(rb"dynsnap1:[0-9a-f]{32}:[0-9a-f]{16}:[0-9a-f]{8}")
FAILING = ("--at-most", "lost=0.1")  # a third of the inputs is lost


def without_digest(content):
    """The same bytes with the digest blanked, as a program leaves it that writes a file again."""
    return DIGEST.sub(BLANK, content)


def flipped(content, place, bit=0):
    changed = bytearray(content)
    changed[place] ^= 1 << bit
    return bytes(changed)


def labelled(truth, labels):
    return Predictions(
        ids=range(len(truth)), classes=["cat", "dog", "cow"], labels=labels, truth=truth
    )


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """OLD and NEW in every format; NEW has lost every cat."""
    folder = tmp_path_factory.mktemp("pairs")
    truth = ["cat", "dog", "cow"] * 30
    for suffix in SEALED:
        write(labelled(truth, truth), folder / f"old.{suffix}")
        write(labelled(truth, ["dog", "dog", "cow"] * 30), folder / f"new.{suffix}")
    return folder


def same(one, other):
    arrays = ("ids", "labels", "scores", "truth", "weights")
    slices = [
        {name: (column.values, column.codes.tolist()) for name, column in each.slices.items()}
        for each in (one, other)
    ]
    return (
        one.classes == other.classes
        and slices[0] == slices[1]
        and all(np.array_equal(getattr(one, name), getattr(other, name)) for name in arrays)
    )


def flip_all(file, *, step):
    """Read a file with a bit flipped in every so many bytes; how many were refused."""
    content, sound = file.read_bytes(), read(file)
    refused = 0
    for place in range(0, len(content), step):
        # A new name each time: Arrow files are mapped, and must not change under a mapping.
        broken = file.with_name(f"{place}{file.suffix}")
        broken.write_bytes(flipped(content, place, place % 8))
        try:
            assert same(read(broken), sound), place
        except FileError:
            refused += 1
        broken.unlink()
    return refused, len(range(0, len(content), step))


@pytest.fixture
def rich():
    return Predictions(
        ids=["x1", "y2", "z3"],
        classes=["cat", "dog"],
        scores=[[0.25, 0.75], [0.5, 0.5], [1, 0]],
        truth=["cat", "dog", "cat"],
        weights=[1, 2, 0.5],
        slices={"hour": ["am", "pm", None]},
    )


@pytest.mark.parametrize("suffix", SEALED)
def test_a_flipped_bit_is_refused_or_changes_nothing(rich, tmp_path, suffix):
    write(rich, tmp_path / f"made.{suffix}")
    refused, tried = flip_all(tmp_path / f"made.{suffix}", step=13)
    assert refused >= tried - 1  # a bit of the word that marks the digest hides it, no more


@pytest.mark.slow
@pytest.mark.parametrize("suffix", SEALED)
def test_whichever_bit_is_flipped_is_refused_or_changes_nothing(rich, tmp_path, suffix):
    write(rich, tmp_path / f"made.{suffix}")
    refused, tried = flip_all(tmp_path / f"made.{suffix}", step=1)
    assert refused >= tried - len("dynsnap1:")


@pytest.mark.parametrize("suffix", SEALED)
def test_a_flipped_bit_in_a_class_name_never_changes_the_verdict(pairs, tmp_path, suffix):
    new = pairs / f"new.{suffix}"
    content = (pairs / f"old.{suffix}").read_bytes()
    # NPZ holds text in four bytes for each character.
    name = "cat".encode("utf-32-le") if suffix == "npz" else b"cat"
    places = [one.start() for one in re.finditer(re.escape(name), content)]
    assert places
    assert dynsnap("gate", pairs / f"old.{suffix}", new, *FAILING).exit_code == 1
    for place in places:
        broken = tmp_path / f"{place}.{suffix}"
        broken.write_bytes(flipped(content, place))
        assert broken.name in refused("gate", broken, new, *FAILING, code=3)


def test_one_damaged_file_of_many_is_refused_and_named(tmp_path):
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        for part in range(3):
            ids = range(20 * part, 20 * part + 20)
            made = Predictions(ids=ids, classes=["a"], labels=["a"] * 20, truth=["a"] * 20)
            write(made, tmp_path / name / f"{part}.parquet")
    files = (tmp_path / "old", tmp_path / "new")
    found = json.loads(dynsnap("gate", *files, *FAILING, "--json", "-").stdout)["verification"]
    assert [each["verified"] for each in found] == [True, True]
    foreign = pa.table({"id": range(60, 70), "label": ["a"] * 10, "truth": ["a"] * 10})
    for name in files:
        pq.write_table(foreign.replace_schema_metadata({"dynsnap.classes": '["a"]'}), name / "9.pq")
    found = json.loads(dynsnap("gate", *files, *FAILING, "--json", "-").stdout)["verification"]
    assert all(re.search(naming("no digest", "1 of 4"), each["detail"]) for each in found)
    broken = tmp_path / "new" / "1.parquet"
    broken.write_bytes(flipped(broken.read_bytes(), 40))
    assert "1.parquet" in refused("gate", *files, *FAILING, code=3)
    assert "1.parquet" in refused("compare", *files, code=3)


def test_pages_of_a_store_are_checked_as_they_are_read(pairs, monkeypatch):
    there = fs._MockFileSystem()
    monkeypatch.setattr(_locate, "filesystem_of", lambda uri: (there, uri.removeprefix("mock://")))
    content = (pairs / "old.parquet").read_bytes()
    there.create_dir("bucket")
    for name, stored in {
        "sound": content,
        "broken": flipped(content, content.index(b"cat")),
    }.items():
        with there.open_output_stream(f"bucket/{name}.parquet") as file:
            file.write(stored)
    assert same(read("mock://bucket/sound.parquet"), read(pairs / "old.parquet"))
    with pytest.raises(FileError, match=r"broken\.parquet"):
        read("mock://bucket/broken.parquet")
    with stream(["mock://bucket/sound.parquet"] * 2) as blocks:
        assert not any(each.verified for each in blocks.report.verification)


def test_every_output_of_a_gate_says_whether_its_inputs_were_verified(pairs, tmp_path):
    plain = tmp_path / "plain.csv"
    csv.write_csv(
        pq.read_table(pairs / "new.parquet", columns=["id", "truth", "label"]).cast(
            pa.schema({"id": pa.int64(), "truth": pa.string(), "label": pa.string()})
        ),
        plain,
    )
    twin = shutil.copy(pairs / "old.arrow", tmp_path / "twin.arrow")
    run = ("gate", pairs / "old.parquet", plain, *FAILING, "--noise-floor", twin)
    for option in ("--markdown", "--html"):
        told = dynsnap(*run, option, "-").stdout
        assert re.search(r"old, noise floor verified.*plain not verified.*no digest", told)
    assert re.search(r"plain\s+not\s+verified.*no\s+digest", dynsnap(*run).stdout)
    assert re.search(
        'name="verification of plain" value="not verified.*no digest',
        dynsnap(*run, "--junit", "-").stdout,
    )
    found = json.loads(dynsnap(*run, "--json", "-").stdout)["verification"]
    assert [(each["name"], each["verified"]) for each in found] == [
        ("old", True),
        ("plain", False),
        ("noise floor", True),
    ]


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_a_file_that_another_program_wrote_again_is_read_and_not_called_verified(
    pairs, tmp_path, suffix
):
    if suffix == "parquet":
        table = pq.read_table(pairs / "old.parquet")
    else:
        table = pa.ipc.open_file(pairs / "old.arrow").read_all()
    again, other = tmp_path / f"again.{suffix}", tmp_path / "other.parquet"
    table = table.append_column("region", pa.array(["north"] * len(table)))
    if suffix == "parquet":
        pq.write_table(table, again)
    else:
        with pa.ipc.new_file(again, table.schema) as writer:
            writer.write_table(table)
    pq.write_table(table, other)
    for file in (again, other):
        run = ("gate", file, pairs / "new.parquet", *FAILING, "--json", "-")
        found = json.loads(dynsnap(*run).stdout)["verification"]
        assert [each["verified"] for each in found] == [False, True]
        assert "another program" in found[0]["detail"]


def test_class_names_that_look_like_a_digest_cost_the_digest_and_nothing_else(tmp_path):
    blank = BLANK.decode()
    made = Predictions(ids=[1, 2], classes=[blank, "b"], labels=[0, 1], slices={blank: ["x", "y"]})
    for suffix in SEALED:
        write(made, tmp_path / f"made.{suffix}")
        assert same(read(tmp_path / f"made.{suffix}"), made)


def test_the_same_predictions_are_written_to_the_same_bytes(rich, tmp_path):
    for suffix in ("parquet", "arrow"):
        for name in ("one", "two"):
            write(rich, tmp_path / f"{name}.{suffix}")
        one, two = (tmp_path / f"{name}.{suffix}" for name in ("one", "two"))
        assert one.read_bytes() == two.read_bytes()


def test_the_examples_carry_their_digest():
    files = [EXAMPLES / f"{name}.parquet" for name in ("old", "new", "twin")]
    with stream(files) as blocks:
        assert all(each.verified for each in blocks.report.verification)


def test_predictions_in_memory_are_not_called_verified(rich):
    again = Predictions(
        ids=rich.ids, classes=rich.classes, scores=rich.scores.copy(), truth=["cat", "dog", "cat"]
    )
    verdict = judge(
        compare(rich, again, resamples=1), [Rule(metric="churn", at_most=0.5, min_count=2)]
    )
    assert not any(each.verified for each in verdict.verification.values())
