"""All predictions of a study in two files: what goes in comes out, and nothing else is read."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynsnap import predictions
from dynsnap.errors import FileError
from dynsnap.predictions import (
    PUBLISHED,
    ColumnNames,
    PredictionKey,
    Predictions,
    names_of_files,
    stored,
    stream,
    write_published,
)
from dynsnap.predictions._digest import seal
from tests.messages import naming

LABELS, SCORES = PUBLISHED


def file_of(folder, key):
    """Where a run folder keeps predictions."""
    place = folder / "predictions" / ("" if key.kind == "test" else key.kind)
    place.mkdir(parents=True, exist_ok=True)
    name = f"{key.method}-{key.combination}-g{key.generation}-r{key.replicate}.parquet"
    return place / name


def scored(key):
    return key.combination == "average" and key.replicate == 0


def made(rng, rows, *, classes=("cat", "dog", "eel"), prefix="", **parts):
    scores = rng.dirichlet(np.ones(len(classes)), rows).astype(np.float32)
    return Predictions(
        ids=[f"{prefix}{row}" for row in range(rows)], classes=classes, scores=scores, **parts
    )


KEYS = [
    key
    for text in (
        *("a/average/g1/r0", "a/average/g2/r0", "a/average/g2/r1", "a/weighted_majority/g1/r0"),
        *("b-c.d=1/average/g1/r0", "late/a/average/g1/r0", "late/a/average/g2/r0"),
        "twin/a/average/g1/r0",
    )
    if (key := PredictionKey.parse(text)) is not None
]


@pytest.fixture(scope="module")
def made_once(tmp_path_factory):
    """A run folder, as far as predictions go, and what is published of it."""
    folder = tmp_path_factory.mktemp("once")
    rng = np.random.default_rng(0)
    truth = {"test": rng.integers(0, 3, 40), "late": np.full(7, 2)}
    for key in KEYS:
        rows = len(truth[key.inputs])
        hours = (["day", "night"] * rows)[:rows]
        parts = {"truth": truth[key.inputs], "slices": {"hour": hours}, "positions": True}
        one = made(rng, rows, prefix=key.inputs, **parts)
        predictions.write(one, file_of(folder / "run", key))
    (folder / "published").mkdir()
    write_published(folder / "run", folder / "published", scored=scored)
    return folder


@pytest.fixture
def run(made_once, tmp_path):
    return shutil.copytree(made_once / "run", tmp_path / "run")


@pytest.fixture
def published(made_once, tmp_path):
    return shutil.copytree(made_once / "published", tmp_path / "published")


def assert_same(kept, said, *, scores):
    assert kept.classes == said.classes
    assert kept.id_column.equals(said.id_column)
    np.testing.assert_array_equal(kept.labels, said.labels)
    assert (kept.truth is None) == (said.truth is None)
    if said.truth is not None:
        np.testing.assert_array_equal(kept.truth, said.truth)
    assert (kept.weights is None) == (said.weights is None)
    if said.weights is not None:
        np.testing.assert_array_equal(kept.weights, said.weights)
    assert kept.slices.keys() == said.slices.keys()
    for name, column in said.slices.items():
        assert kept.slices[name].values == column.values
        np.testing.assert_array_equal(kept.slices[name].codes, column.codes)
    assert kept.notes == said.notes
    if scores:
        np.testing.assert_array_equal(kept.scores, said.scores)
    else:
        assert kept.scores is None


@given(data=st.data())
def test_published_predictions_are_those_of_compact_files(data, tmp_path_factory):
    tmp_path = tmp_path_factory.mktemp("law")
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    classes = tuple(f"class {place}" for place in range(data.draw(st.sampled_from([1, 3, 120]))))
    keys = data.draw(st.lists(st.sampled_from(KEYS), min_size=1, max_size=3, unique=True))
    with_truth, with_weights, numbers = (data.draw(st.booleans()) for _ in range(3))
    slices = data.draw(st.lists(st.sampled_from(["id", "inputs", "a/average/g1/r0"]), unique=True))
    known = {}
    for key in keys:
        rows = 5 if key.inputs == "test" else 3
        first = 0 if key.inputs == "test" else 100
        if key.inputs not in known:
            known[key.inputs] = {
                "ids": np.arange(first, first + rows)
                if numbers
                else [f"{key.inputs}é{row}" for row in range(rows)],
                "truth": rng.integers(0, len(classes), rows) if with_truth else None,
                "weights": rng.random(rows) + 0.1 if with_weights else None,
                # A slice that only some inputs have.
                "slices": {
                    name: ["x", "y", "", "x", "y"][:rows]
                    for name in slices
                    if name != "id" and (key.inputs == "test" or name != "inputs")
                },
            }
        scores = rng.dirichlet(np.ones(len(classes)), rows)
        one = Predictions(scores=scores, classes=classes, positions=True, **known[key.inputs])
        predictions.write(one, file_of(tmp_path / "run", key), compact=True)
    write_published(tmp_path / "run", tmp_path, scored=scored)
    kept, said = stored(tmp_path), stored(tmp_path / "run")
    assert list(kept) == list(said) == sorted(keys)
    for key in keys:
        assert_same(predictions.read(kept[key]), predictions.read(said[key]), scores=scored(key))


def test_publishing_what_was_published_changes_no_byte(published, tmp_path):
    again = tmp_path / "again"
    again.mkdir()
    files = write_published(published, again, scored=scored)
    assert [file.name for file in files] == [LABELS, SCORES]
    for name in PUBLISHED:
        assert (again / name).read_bytes() == (published / name).read_bytes()


def test_labels_are_a_table_that_any_program_reads(published):
    table = pq.read_table(published / LABELS)
    assert table.num_rows == 47
    assert table.column_names[:4] == ["id", "inputs", "truth", "slice:hour"]
    one = predictions.read(f"{published}::a/average/g2/r0")
    labels = table.filter(pa.compute.equal(table["inputs"], "test"))["a/average/g2/r0"]
    assert labels.to_pylist() == one.names_of(one.labels).tolist()
    scores = pq.read_table(published / SCORES, filters=[("address", "==", "a/average/g2/r0")])
    np.testing.assert_array_equal(np.stack(scores["scores"].to_numpy()), one.scores)


def test_other_names_of_columns_are_for_files(published, tmp_path):
    """An address can be compared with a file whose columns have other names."""
    address = f"{published}::a/average/g1/r0"
    columns = ColumnNames(id="key", truth="gold", label="said")
    kept = predictions.read(address, columns=columns)
    assert_same(kept, predictions.read(address), scores=True)
    file = tmp_path / "other.parquet"
    predictions.write(kept, file, columns=columns)
    with stream([address, file], columns=columns) as blocks:
        ((one, other),) = list(blocks)
    np.testing.assert_array_equal(one.labels, other.labels)


@pytest.mark.parametrize("place", ["run", "published"])
@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ("", ["FOLDER::METHOD/COMBINATION/gN/rN", '"a"', '"b-c.d=1"', "::a/average/g1/r0"]),
        ("a", ["FOLDER::METHOD/COMBINATION/gN/rN", "::a/average/g1/r0"]),
        ("a/average/1/0", ["FOLDER::METHOD/COMBINATION/gN/rN"]),
        ("a/average/g01/r0", ["FOLDER::METHOD/COMBINATION/gN/rN"]),
        ("x/average/g1/r0", ['"a"', '"b-c.d=1"']),
        ("a/majority/g1/r0", ['"average"', '"weighted_majority"', "of a"]),
        ("a/average/g3/r0", ['"g1"', '"g2"', "of a/average"]),
        ("a/average/g2/r7", ['"r0"', '"r1"', "of a/average/g2"]),
        ("late/b-c.d=1/average/g1/r0", ['"a"', "of late"]),
        ("../a/average/g1/r0", ["FOLDER::METHOD/COMBINATION/gN/rN"]),
        ("late/../a/average/g1/r0", ["FOLDER::METHOD/COMBINATION/gN/rN"]),
        ("a/average/g1/r0\n", ["FOLDER::METHOD/COMBINATION/gN/rN"]),
        ("a/average/g1/r0.parquet", ["FOLDER::METHOD/COMBINATION/gN/rN"]),
    ],
)
def test_a_wrong_part_of_an_address_is_answered_with_what_is_inside(
    run, published, place, wrong, named
):
    folder = {"run": run, "published": published}[place]
    with pytest.raises(FileError) as refused:
        predictions.read(f"{folder}::{wrong}")
    assert "\n" not in str(refused.value)
    for part in named:
        assert part in str(refused.value)


def test_a_place_that_holds_no_study_is_named(tmp_path):
    (tmp_path / "empty").mkdir()
    for folder in ("none", "empty"):
        with pytest.raises(FileError, match=folder):
            predictions.read(f"{tmp_path / folder}::a/average/g1/r0")


def test_a_file_whose_name_looks_like_an_address_is_a_file(tmp_path):
    file = tmp_path / "a::b.csv"
    file.write_text("id,label\n1,x\n2,y\n")
    assert len(predictions.read(file)) == 2


def test_many_ensembles_are_not_one_generation(published):
    for place in (published, published / LABELS, published / SCORES):
        with pytest.raises(FileError, match=naming("(many|8) ensembles", "::")):
            predictions.read(place)


def test_a_folder_of_parts_may_have_a_file_called_labels(tmp_path):
    one = made(np.random.default_rng(0), 9)
    for name, (start, stop) in {LABELS: (0, 4), "more.parquet": (4, 9)}.items():
        predictions.write(one.slice(start, stop), tmp_path / name)
    assert len(predictions.read(tmp_path)) == 9


def test_an_address_is_called_by_its_method_and_generation():
    places = [Path(f"x::a/average/g{number}/r0") for number in (1, 2)]
    assert names_of_files(places) == ("a g1", "a g2")
    assert names_of_files([places[0], Path("new.parquet")]) == ("a g1", "new")
    assert len(set(names_of_files([Path(f"x::a/average/g1/r{k}") for k in (0, 1)]))) == 2


@pytest.mark.parametrize("name", PUBLISHED)
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_flipped_bit_is_refused(published, name, share):
    file = published / name
    content = bytearray(file.read_bytes())
    content[int(share * len(content))] ^= 4
    file.write_bytes(content)
    with pytest.raises(FileError, match=name):
        predictions.read(f"{published}::a/average/g1/r0")


def test_scores_of_other_labels_are_refused(published, run, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    write_published(run, other, scored=lambda key: scored(key) and key.generation == 2)
    shutil.copy(other / SCORES, published)
    with pytest.raises(FileError, match=rf"{SCORES}.*{LABELS}"):
        predictions.read(f"{published}::a/average/g1/r0")
    (published / SCORES).unlink()
    with pytest.raises(FileError, match=SCORES):
        predictions.read(f"{published}::a/average/g1/r0")
    assert predictions.read(f"{published}::a/average/g2/r1").scores is None


def forged(published, name, *, about):
    """The file with another document in its metadata."""
    table = pq.read_table(published / name)
    metadata = {key: value for key, value in table.schema.metadata.items() if b"digest" not in key}
    known = json.loads(metadata[b"dynsnap.published"])
    metadata[b"dynsnap.published"] = about(known)
    pq.write_table(table.replace_schema_metadata(metadata), published / name)


@pytest.mark.parametrize(
    "about",
    [
        lambda known: b"[" * 100_000,
        lambda known: b"[]",
        lambda known: b'{"version": 1}',
        lambda known: json.dumps(known | {"version": 2}),
        lambda known: json.dumps(known | {"rows": {"test": 47, "late": 7}}),
        lambda known: json.dumps(known | {"rows": {"test": -1, "late": 48}}),
        lambda known: json.dumps(known | {"labels": [*known["labels"], "x/average/g1/r0"]}),
        lambda known: json.dumps(known | {"labels": [*known["labels"], "../../x"]}),
        lambda known: json.dumps(known | {"scores": [*known["scores"], "a/average/g9/r0"]}),
        lambda known: json.dumps(known | {"scores": known["scores"] * 2}),
        lambda known: json.dumps(known | {"import": "os"}),
    ],
)
def test_what_labels_list_is_checked(published, about):
    forged(published, LABELS, about=about)
    with pytest.raises(FileError, match=LABELS):
        predictions.read(f"{published}::b-c.d=1/average/g1/r0")


def test_scores_of_another_ensemble_are_refused(published):
    forged(
        published,
        LABELS,
        about=lambda known: json.dumps(
            known | {"scores": known["scores"][::-1], "scores_digest": None}
        ),
    )
    with pytest.raises(FileError, match=rf"{SCORES}.*a/average/g1/r0"):
        predictions.read(f"{published}::a/average/g1/r0")


def test_predictions_of_other_inputs_are_not_published_together(run, tmp_path):
    key = next(key for key in KEYS if key.kind == "test")
    predictions.write(made(np.random.default_rng(1), 9), file_of(run, key))
    with pytest.raises(
        FileError,
        match=naming(
            r"a-average-g2-r0\.parquet", r"a-average-g1-r0\.parquet", "ids and truth and slices"
        ),
    ):
        write_published(run, tmp_path, scored=scored)
    assert not [name for name in PUBLISHED if (tmp_path / name).exists()]


def with_column(folder, name, values):
    """Add a column to the labels, with every digest right."""
    table = pq.read_table(folder / LABELS)
    pq.write_table(table.append_column(name, values), folder / LABELS, write_page_checksum=True)
    seal(folder / LABELS, "Parquet")


@pytest.mark.parametrize("name", ["truth", "label", "weight", "id", "scores", "score:cat"])
def test_a_slice_does_not_take_the_place_of_a_column_of_that_name(published, name):
    address = f"{published}::a/average/g1/r0"
    before = predictions.read(address)
    with_column(published, f"slice:{name}", pa.array(["1"] * 47))
    with pytest.raises(FileError, match=f'slice "{name}"'):
        predictions.read(address)
    if name in ("truth", "label", "id", "scores"):  # which can be called otherwise
        kept = predictions.read(address, columns=ColumnNames(**{name: "other"}))
        np.testing.assert_array_equal(kept.truth, before.truth)
        np.testing.assert_array_equal(kept.labels, before.labels)
        assert kept.slices[name].values == ("1",)


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_pipe_among_published_results_is_not_waited_for(published, name):
    (published / name).unlink()
    os.mkfifo(published / name)
    with pytest.raises(FileError):
        predictions.read(f"{published}::a/average/g1/r0")
