"""A stream of files gives what reading and aligning them in memory gives."""

import contextlib
import gc
import os
import re
import stat
import subprocess
import sys
import tempfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from benchmarks import memory
from hypothesis import given, settings
from hypothesis import strategies as st

from dynsnap.errors import ComparisonError, DynSnapError, FileError, InputError, PlanError
from dynsnap.predictions import (
    ColumnNames,
    Predictions,
    _join_disk,
    _sources,
    _spill,
    _stream,
    _stream_file,
    align,
    read,
    stream,
    write,
)
from dynsnap.predictions import _write as writing
from tests.messages import naming
from tests.predictions import test_damage
from tests.strategies import score_rows

sound_files = test_damage.sound_files  # a fixture

CLASSES = ["cat", "dog", "eel", "fox"]
POOLS = [
    list(range(12)),
    [-(2**62), 5, 2**62, 0, 17, 1],
    [f"id {n}" for n in range(9)],
    ["7", "ä", "07", "𝄞", "x" * 40],
]


@contextlib.contextmanager
def tiny_steps():
    """Everything that is done in large steps is done in tiny ones, so that few rows are many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writing, "_ROWS", 3)
        patch.setattr(_sources, "_BATCH_ROWS", 2)
        patch.setattr(_stream_file, "_ID_ROWS", 3)
        patch.setattr(_join_disk, "_PART_ROWS", 2)
        patch.setattr(_join_disk, "_BUCKET_ROWS", 3)
        patch.setattr(_join_disk, "_BUCKET_BYTES", 100)
        yield


@st.composite
def generations(draw):
    """Two or three predictions of inputs from one pool, which mostly do not contradict."""
    pool = draw(st.sampled_from(POOLS))
    true = {each: draw(st.sampled_from(CLASSES[:3])) for each in pool}
    weight = {each: draw(st.integers(0, 3)) for each in pool}
    weight[pool[0]] = 1
    everything = draw(st.booleans())
    columns = st.sets(st.sampled_from("st"))

    def one():
        order = draw(st.permutations(pool)) if draw(st.booleans()) else pool
        ids = order if everything else order[: draw(st.integers(1, len(order)))]
        classes = draw(st.permutations(CLASSES))[: draw(st.integers(3, 4))]
        classes = list(dict.fromkeys([*classes, *(true[each] for each in ids)]))
        scores = None
        if draw(st.booleans()):
            kind = draw(st.sampled_from([np.float32, np.float64]))
            scores = draw(score_rows(inputs=len(ids), classes=len(classes))).astype(kind)
        labels = None
        if scores is None or draw(st.booleans()):
            labels = [draw(st.sampled_from(classes)) for _ in ids]
        truth = [true[each] for each in ids]
        if draw(st.integers(0, 7)) == 0:
            truth[-1] = classes[0]
        weights = [weight[each] for each in ids]
        text = draw(st.booleans())
        return Predictions(
            ids=[str(each) if text else each for each in ids],
            classes=classes,
            scores=scores,
            labels=labels,
            truth=truth if draw(st.booleans()) else None,
            weights=weights if any(weights) and draw(st.booleans()) else None,
            slices={name: [str(each)[-1] for each in ids] for name in draw(columns)},
        )

    return [one() for _ in range(draw(st.integers(2, 3)))]


def outcome(find):
    """What comes out, or the error: its kind and what it says."""
    try:
        return find()
    except DynSnapError as error:
        return type(error), str(error)


def in_memory(files, **options):
    aligned = align(*(read(file) for file in files), **options)
    return aligned.classes, aligned.report, [[each] for each in aligned.generations]


def streamed(files, *, rows_at_once, **options):
    with stream(files, rows_at_once=rows_at_once, **options) as made:
        blocks = list(made)
        sizes = [len(each) for block in blocks for each in block[:1]]
        assert sum(sizes) == made.rows
        assert set(sizes[:-1]) <= {rows_at_once}
        again = [each.labels.tolist() for block in made for each in block]
        assert again == [each.labels.tolist() for block in blocks for each in block]
        for block in blocks:
            assert {name: column.values for name, column in block[0].slices.items()} == made.slices
    return made.classes, made.report, list(zip(*blocks, strict=True))


def content(pieces):
    """Everything that predictions hold, however they are cut."""
    first = pieces[0]
    arrays = {
        "labels": [each.labels for each in pieces],
        "truth": [each.truth for each in pieces],
        "scores": [each.scores for each in pieces],
        "weights": [each.weights for each in pieces],
    }
    for name in first.slices:
        arrays[f"slice {name}"] = [each.slices[name].codes for each in pieces]
    found = {
        "ids": [name for each in pieces for name in each.id_column.to_pylist()],
        "classes": first.classes,
        "notes": first.notes,
        "values": {name: column.values for name, column in first.slices.items()},
    }
    for name, every in arrays.items():
        if every[0] is not None:
            whole = np.concatenate(every)
            found[name] = (whole.dtype, whole.tolist())
    return found


@given(
    generations(),
    st.lists(st.sampled_from(["parquet", "arrow", "npz", "csv"]), min_size=3, max_size=3),
    st.sampled_from([None, {"cat": "dog"}, {"cat": "dog", "dog": "cat"}, {"eel": "conger"}]),
    st.integers(1, 5),
)
def test_a_stream_gives_what_reading_and_aligning_gives(made, suffixes, rename, rows_at_once):
    with tempfile.TemporaryDirectory() as folder, tiny_steps():
        files = [f"{folder}/{place}.{suffixes[place]}" for place in range(len(made))]
        for each, file in zip(made, files, strict=True):
            write(each, file)
        options = {"rename": rename, "names": "abc"[: len(made)]}
        expected = outcome(lambda: in_memory(files, **options))
        found = outcome(lambda: streamed(files, rows_at_once=rows_at_once, **options))
    if isinstance(expected[0], type):
        assert found == expected
        return
    assert found[:2] == expected[:2]
    for pieces, whole in zip(found[2], expected[2], strict=True):
        assert content(pieces) == content(whole)


def file_of(folder, name="old", suffix="parquet", **columns):
    file = folder / f"{name}.{suffix}"
    pq.write_table(pa.table(columns), file, row_group_size=2)
    return file


def only(file, **options):
    """Iterate over a stream of one file."""
    with stream([file], **options) as made:
        return list(made)


BAD = {
    "a score that is no number": {"score:b": [0.5, 0.5, 0.5, float("nan"), 0.5]},
    "a missing score": {"score:b": [0.5, 0.5, 0.5, 0.5, None]},
    "a negative score": {"score:a": [0.5] * 4 + [1.5], "score:b": [0.5] * 4 + [-0.5]},
    "a sum that is not one": {"score:a": [0.5, 0.5, 0.5, 0.5, 0.75]},
    "an unknown label": {"label": ["a", "a", "a", "a", "c"]},
    "a missing label": {"label": ["a", "a", None, "a", ""]},
    "a control character in a class": {"truth": ["a", "a", "a", "a", "\x1b"]},
    "a control character in an id": {"id": ["a", "b", "c", "d", "\x07"]},
    "an empty id": {"id": ["a", "b", "c", "", "e"]},
    "a negative weight": {"weight": [1.0, 1.0, 1.0, 1.0, -1.0]},
    "no weight above zero": {"weight": [0.0] * 5},
    "an id twice in order": {"id": [1, 2, 2, 4, 4]},
    "an id twice out of order": {"id": [3, 9, 4, 3, 9]},
    "a text twice": {"id": ["b", "a", "d", "b", "c"]},
    "no rows": {"id": pa.array([], pa.int64()), "score:a": pa.array([], pa.float32()),
                "score:b": pa.array([], pa.float32())},
    "no id column": {"id": None, "name": [1, 2, 3, 4, 5]},
}  # fmt: skip


@pytest.mark.parametrize("columns", BAD.values(), ids=BAD)
def test_a_stream_says_what_reading_says_of_a_bad_file(columns, tmp_path, monkeypatch):
    monkeypatch.setattr(_sources, "_BATCH_ROWS", 2)
    good = {"id": [1, 2, 3, 4, 5], "score:a": [0.5] * 5, "score:b": [0.5] * 5}
    columns = {name: column for name, column in (good | columns).items() if column is not None}
    file = file_of(tmp_path, **columns)
    with pytest.raises(FileError) as expected:
        read(file)
    with pytest.raises(FileError) as found:
        only(file)
    assert str(found.value) == str(expected.value)
    assert str(file) in str(found.value)


@pytest.mark.parametrize("other", [[3, 1, 2, 4], [1, 3], [9, 2, 3]])
def test_rows_that_are_not_shared_are_checked_too(other, tmp_path):
    old = file_of(tmp_path, "old", id=[1, 2, 3, 4], label=["a", "b", "a", "b"])
    new = file_of(
        tmp_path,
        "new",
        id=[*other, 77],
        **{"score:a": [0.5] * len(other) + [7.0], "score:b": [0.5] * (len(other) + 1)},
    )
    with pytest.raises(FileError, match=rf"new\.parquet: .* row {len(other)} .*sum to 7.5"):
        stream_all([old, new])
    with pytest.raises(FileError, match=r"new\.parquet"):
        stream_all([new, old])


def stream_all(files, **options):
    with stream(files, **options) as made:
        return made.report, list(made)


def test_repeated_ids_are_named_with_their_file_in_a_join_too(tmp_path):
    old = file_of(tmp_path, "old", id=[1, 2, 3, 4], label=["a"] * 4)
    new = file_of(tmp_path, "new", id=[4, 3, 4, 3, 3], label=["a"] * 5)
    with (
        tiny_steps(),
        pytest.raises(FileError, match=naming(r"new\.parquet", "repeat", "3", "5", '"4"', '"3"')),
    ):
        stream([old, new])


def test_unsigned_ids_beyond_what_a_number_holds_are_text_everywhere(tmp_path, monkeypatch):
    monkeypatch.setattr(_sources, "_BATCH_ROWS", 2)
    ids = pa.array([1, 2, 3, 4, 2**64 - 1], pa.uint64())
    old = file_of(tmp_path, "old", id=ids, label=["a"] * 5)
    new = file_of(tmp_path, "new", id=ids[::-1], label=["b"] * 5)
    for files in ([old, old], [old, new], [new, old]):
        aligned = align(*map(read, files))
        report, blocks = stream_all(files, rows_at_once=2)
        assert report == aligned.report
        for block in blocks:
            assert block[0].id_column.type == pa.large_string()
        streamed_ids = [name for block in blocks for name in block[0].ids]
        assert streamed_ids == aligned.generations[0].ids.tolist()


def test_contradictions_are_counted_over_all_blocks(tmp_path):
    old = file_of(tmp_path, "old", id=range(6), label=["a"] * 6, truth=["a"] * 6)
    new = file_of(tmp_path, "new", id=range(6), label=["b"] * 6, truth=list("abaaba"))
    with pytest.raises(
        ComparisonError, match=naming("truths", '"old"', "2", "6", '"a"', '"b"', '"1"')
    ):
        stream_all([old, new], rows_at_once=2, names=["old", "new"])


def test_files_without_a_shared_id_are_refused(tmp_path):
    old = file_of(tmp_path, "old", id=[1, 2], label=["a"] * 2)
    new = file_of(tmp_path, "new", id=["x", "y"], label=["a"] * 2)
    with pytest.raises(ComparisonError, match=naming('"old"', '"new"', '"1"', '"2"')):
        stream([old, new], names=["old", "new"])


def test_other_columns_names_and_classes_are_understood(tmp_path):
    old = file_of(tmp_path, "old", image=[1, 2], said=["a", "b"])
    made = only(old, columns=ColumnNames(id="image", label="said"), rename={"a": "c"})
    assert made[0][0].classes == ("c", "b")
    with pytest.raises(PlanError, match=naming('"x"', "rename")):
        only(old, columns=ColumnNames(id="image", label="said"), rename={"x": "c"})


def test_wide_scores_come_in_smaller_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(_stream, "_BLOCK_SCORES", 10)
    columns = {f"score:{name}": [1 / 3] * 8 for name in "abc"}
    file = file_of(tmp_path, id=range(8), **columns)
    assert [len(block[0]) for block in only(file)] == [3, 3, 2]
    columns = {f"score:{place}": [1 / 11] * 2 for place in range(11)}
    file = file_of(tmp_path, id=range(2), **columns)
    assert [len(block[0]) for block in only(file)] == [1, 1]


@pytest.mark.parametrize("rows", [0, -1])
def test_settings_that_make_no_sense_are_refused(rows, tmp_path):
    old = file_of(tmp_path, "old", id=[1, 2], label=["a"] * 2)
    with pytest.raises(PlanError, match=naming("`rows_at_once`", "1")):
        stream([old], rows_at_once=rows)
    with pytest.raises(InputError, match="nothing to align"):
        stream([])
    with pytest.raises(InputError, match="1 predictions, but 2 names"):
        stream([old], names=["a", "b"])


@pytest.mark.parametrize("step", ["_own_folder", "Buckets", "_read"])
def test_a_full_disk_is_said_in_one_line(step, tmp_path, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_spill, step, full)
    old = file_of(tmp_path, "old", id=[1, 2], label=["a"] * 2)
    new = file_of(tmp_path, "new", id=[2, 1], label=["a"] * 2)
    with pytest.raises(FileError, match=naming("No space left", "TMPDIR")) as error:
        stream([old, new])
    assert "\n" not in str(error.value)


def test_nothing_is_left_on_disk(tmp_path, monkeypatch):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    old = file_of(tmp_path, "old", id=[1, 2, 3], label=["a"] * 3)
    new = file_of(tmp_path, "new", id=[3, 1, 2], label=["a"] * 3)
    with stream([old, new]) as made:
        assert len(list(made)) == 1
        (folder,) = scratch.iterdir()
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert not list(scratch.iterdir())
    with pytest.raises(Exception, match="closed"):
        list(made)


def test_a_join_that_fails_or_is_forgotten_leaves_nothing_on_disk(tmp_path, monkeypatch):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    old = file_of(tmp_path, "old", id=[1, 2, 3], label=["a"] * 3)
    new = file_of(tmp_path, "new", id=[3, 1, 2], label=["a"] * 3)
    twice = file_of(tmp_path, "twice", id=[3, 1, 3], label=["a"] * 3)
    with pytest.raises(FileError, match="repeat an id"):
        stream([old, twice])
    with pytest.raises(FileError, match="repeat an id"):
        stream([twice, twice])
    made = stream([old, new])
    assert list(scratch.iterdir())
    del made
    gc.collect()
    assert not list(scratch.iterdir())


# Joins two files, says so when rows are on disk, and waits there for ever.
JOINING = """
import sys, time
from dynsnap.predictions import stream
with stream(sys.argv[1:]) as made:
    print("joined", flush=True)
    while True:
        time.sleep(0.01)
"""


@contextlib.contextmanager
def joining(files, scratch):
    """A process that has rows on disk, and where."""
    before = set(scratch.iterdir())
    process = subprocess.Popen(
        [sys.executable, "-c", JOINING, *files],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(scratch)},
    )
    try:
        assert process.stdout.readline() == "joined\n"
        (folder,) = set(scratch.iterdir()) - before
        yield process, folder
    finally:
        process.kill()
        process.communicate()


def test_the_next_join_removes_what_a_killed_one_has_left_and_nothing_else(tmp_path, monkeypatch):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    old = file_of(tmp_path, "old", id=[1, 2, 3], label=["a"] * 3)
    new = file_of(tmp_path, "new", id=[3, 1, 2], label=["a"] * 3)
    own = scratch / "dynsnap-join-mine"  # somebody's own folder
    own.mkdir()
    link = scratch / f"dynsnap-join-{'0' * 32}"  # not a folder, but a way to one
    link.symlink_to(own)
    with joining([old, new], scratch) as (dead, left), joining([old, new], scratch) as (_, alive):
        dead.kill()
        dead.wait()
        assert list(left.iterdir())
        with stream([old, new]) as made:
            assert not left.exists()
            assert list(alive.iterdir())
            assert [len(block[0]) for block in made] == [3]
        assert set(scratch.iterdir()) == {own, link, alive}


def test_the_order_of_the_ids_changes_no_bit(tmp_path):
    rng = np.random.default_rng(5)
    scores = rng.dirichlet(np.full(4, 0.3), 40).astype(np.float32)
    order = rng.permutation(40)
    made = {}
    for name, rows in (("old", np.arange(40)), ("new", np.arange(40)), ("moved", order)):
        made[name] = tmp_path / f"{name}.parquet"
        both = scores[::-1] if name != "old" else scores
        said = Predictions(ids=rows, classes=CLASSES, scores=both[rows], truth=rows % 4)
        write(said, made[name])
    with tiny_steps():
        found = []
        for second in ("new", "moved"):
            with stream([made["old"], made[second]], rows_at_once=7) as blocks:
                found.append([[bits(each) for each in block] for block in blocks])
    assert found[0] == found[1]


def bits(predictions):
    """The bytes of all that predictions hold, but for what they say of themselves."""
    arrays = (predictions.scores, predictions.labels, predictions.truth)
    return predictions.ids.tolist(), [np.ascontiguousarray(each).tobytes() for each in arrays]


@pytest.mark.hypothesis
def test_a_stream_says_what_reading_says_of_a_damaged_file(sound_files, tmp_path):
    sound = tmp_path / "sound.csv"
    ids = ["long one", "5", "a", "1", "9", "b"]
    write(Predictions(ids=ids, classes=["x"], labels=["x"] * len(ids)), sound)
    thrown, files = 0, 3 * settings.default.max_examples

    @settings(max_examples=files)
    @given(test_damage.damage(sound_files))
    def throw(broken):
        nonlocal thrown
        suffix, content = broken
        thrown += 1
        file = tmp_path / f"{thrown}.{suffix}"
        file.write_bytes(content)
        expected = outcome(lambda: in_memory([sound, file])[1])
        found = outcome(lambda: stream_all([sound, file])[0])
        file.unlink()
        # Some messages of Python name an object by its address.
        assert re.sub("0x[0-9a-f]+", "", str(found)) == re.sub("0x[0-9a-f]+", "", str(expected))

    throw()
    assert thrown >= files


# Looks at a file, and says by how many KiB its highest resident memory has grown. The kernel counts
# `ru_maxrss` from the memory of the parent on, so it would say nothing here.
LOOKING = """
import sys
from pathlib import Path
import pyarrow.parquet as pq
from dynsnap.predictions._declared import check_pages
def highest():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
about = pq.read_metadata(sys.argv[1])
before = highest()
check_pages(Path(sys.argv[1]), about)
print(highest() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel is asked for its figure")
def test_a_look_at_the_pages_of_a_file_keeps_none_of_them_in_memory(tmp_path):
    file = tmp_path / "large.parquet"
    values = np.random.default_rng(0).random(6_000_000)  # 48 MB
    pq.write_table(pa.table({"score": values}), file, row_group_size=500_000, use_dictionary=False)
    command = [sys.executable, "-c", LOOKING, file]
    more = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert int(more) < 8_000  # KiB


@pytest.mark.slow
def test_memory_does_not_grow_with_the_files(tmp_path):
    def peak(rows):
        files = [tmp_path / f"{rows} {place}.parquet" for place in (1, 2)]
        for generation, file in enumerate(files):
            memory.write(file, memory.in_order(rows), generation=generation)
        return memory.run("compare", *files, "--quiet").peak_mb

    # Both are compiled for, so that only the rows differ. The larger scores take 160 MB.
    assert peak(2_000_000) - peak(200_000) < 80
