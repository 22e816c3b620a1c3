"""Rounds that say something else than what was stored count as damaged, whatever they say."""

import copy
import json
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dynsnap.errors import DynSnapError, FileError
from dynsnap.store import RunFolder, SavedEnsemble, load_ensemble, save_ensemble
from tests.cli.forging import packed, unpacked
from tests.store.rounds import a_round, a_spec, assert_same_round
from tests.untrusted.bombs import header, memory_below

WILD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.floats(allow_nan=False),
    st.text(max_size=5),
    st.lists(st.integers(-2, 10**9), max_size=3),
    st.dictionaries(st.sampled_from(["name", "factory", "kind", "x"]), st.text(max_size=3)),
)


@pytest.fixture
def stored(tmp_path):
    """A run folder with one round, and the round's file."""
    with RunFolder(tmp_path / "run") as folder:
        folder.put("k", a_round())
    return tmp_path / "run", tmp_path / "run/rounds/k.npz"


def places(value, path=()):
    """Every place in a document, the outermost last."""
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*path, key))
    if path:
        yield path


def changed(manifest, draw):
    """A manifest with another value at one place, or one key more."""
    made = copy.deepcopy(manifest)
    *outer, last = draw(st.sampled_from(list(places(made))))
    inner = made
    for key in outer:
        inner = inner[key]
    if isinstance(inner, dict) and draw(st.booleans()):
        last = draw(st.sampled_from([last, "extra", "factory"]))
    inner[last] = draw(WILD)
    return made


def test_a_round_without_some_of_its_facts_is_damaged(stored):
    run, file = stored
    manifest, parts = unpacked(file)
    for key in manifest.keys() - {"sha256"}:
        rest = {name: value for name, value in manifest.items() if name != key}
        packed(file, rest, parts)
        assert key in RunFolder(run).entry("k").damage
        with pytest.warns(UserWarning, match="trained again"):
            assert RunFolder(run).get("k", a_spec()) is None


# Every example writes the fixture's file anew; and how busy the machine is does not matter.
UNCHECKED = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@settings(suppress_health_check=UNCHECKED, max_examples=60)
@given(data=st.data())
def test_whatever_a_round_s_manifest_says_it_is_whole_or_damaged(stored, data):
    run, file = stored
    sound = file.with_suffix(".sound")
    if not sound.exists():
        file.rename(sound)
    manifest, parts = unpacked(sound)
    packed(file, changed(manifest, data.draw), parts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            folder = RunFolder(run)
            entry, found = folder.entry("k"), folder.get("k", a_spec())
        except FileError as error:
            assert "newer version" in str(error)
            return
    if entry.damage is None:
        json.dumps(entry.facts)
    if found is not None and found.seconds == a_round().seconds:
        assert_same_round(found, a_round())


@pytest.mark.parametrize(
    "content",
    [
        header((3, 10**9, 4), "<f4"),  # reaches beyond the file
        header((3, 5, 5), "<f4") + bytes(4 * 60),  # reaches into the next part
        header((3, 5, 4), "|O") + bytes(8 * 60),
        header((3, 5, 4), "<U4") + bytes(16 * 60),
        header((-3, 5, 4), "<f4"),
        b"",
    ],
)
def test_an_array_that_reaches_beyond_its_part_is_damage(stored, content):
    run, file = stored
    manifest, parts = unpacked(file)
    packed(file, manifest, {**parts, "scores.test.npy": content})
    with memory_below(5), pytest.warns(UserWarning, match="trained again"):
        assert RunFolder(run).get("k", a_spec()) is None


def test_a_run_folder_s_mark_is_checked(tmp_path):
    with RunFolder(tmp_path / "run"):
        pass
    mark = tmp_path / "run/dynsnap.json"
    for text in ('{"kind": "run"}', '{"kind": "run", "format": 1, "x": 1}', "[" * 10**5, "[]", ""):
        mark.write_text(text)
        with pytest.raises(FileError, match="run folder"):
            RunFolder(tmp_path / "run")


def an_ensemble():
    return SavedEnsemble(
        method="dynsnap-cyc",
        generation=3,
        combination="average",
        classes=("a", "b"),
        accuracy=np.array([0.9, 0.8]),
        learners=(b"one", b"two"),
        positions=np.array([1, 0]),
        known=np.ones((2, 2), bool),
        model={"name": "mlp", "hidden": [4]},
        about={"study": "x", "reading": {"label": "y", "size": [8, 8]}, "cost": 2.0},
    )


@settings(suppress_health_check=UNCHECKED)
@given(data=st.data())
def test_whatever_a_manifest_says_an_ensemble_is_read_or_refused(tmp_path, data):
    file = tmp_path / "x.ensemble"
    save_ensemble(file, an_ensemble())
    manifest, parts = unpacked(file)
    packed(file, changed(manifest, data.draw), parts)
    try:
        found = load_ensemble(file)
    except FileError:
        return
    # What was taken is what could have been saved.
    save_ensemble(tmp_path / "again", found)
    assert load_ensemble(tmp_path / "again").model == found.model


def test_what_could_not_be_read_again_is_not_saved(tmp_path):
    for wrong in (
        {"model": {"name": "mlp", "factory": "a:b"}},
        {"about": {"mine": 1}},
        {"classes": ("a", "a")},
        {"accuracy": np.array([0.5, np.nan])},
    ):
        parts = {name: getattr(an_ensemble(), name) for name in SavedEnsemble.__slots__}
        with pytest.raises(DynSnapError):
            save_ensemble(tmp_path / "x", SavedEnsemble(**{**parts, **wrong}))
        assert not (tmp_path / "x").exists()
