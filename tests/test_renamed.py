"""Old names still work, and name their successors: commands, keys of study files, Python."""

import inspect
import re
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier

import dynsnap
from dynsnap import comparison, data, predictions, study, theory
from dynsnap._renamed import RenamedWarning, renamed_arguments
from dynsnap.data import GrowthPlan, Pool, Stream, from_arrivals, from_generations
from dynsnap.ensemble import Rolling
from dynsnap.errors import PlanError
from tests.cli.helpers import NEW, OLD
from tests.cli.helpers import dynsnap as command
from tests.cli.studies import SHIPPED

PUBLISHED = Path(__file__).parents[1] / "results"
KEYS = {
    "carry": "carry_over",
    "lag": "max_accuracy_gap",
    "refresh": "finetune_epochs",
    "onward": "warm_start",
    "untouched": "selection_holdout",
    "holdout": "test_size",
}


def a_pool(rows=40):
    return Pool(
        name="made",
        inputs=np.arange(rows * 3.0).reshape(rows, 3),
        labels=np.arange(rows) % 2,
        classes=("a", "b"),
        ids=np.arange(rows),
    )


def a_stream(**settings):
    return Stream(
        pool=a_pool(),
        generations=(np.arange(30),),
        validation=(np.array([2, 2]),),
        evaluation={"test": a_pool(), data.SELECTION_SET: a_pool(4)},
        **settings,
    )


def cut(make, **settings):
    rows = [np.arange(20), np.arange(40)] if make is from_generations else np.arange(40) // 20
    return make(a_pool(), rows, test=a_pool(), **settings).fingerprint


# --- Python ---------------------------------------------------------------------------------

ARGUMENTS = {
    "carry": (Rolling, 0.5),
    "lag": (Rolling, 0.2),
    "refresh": (Rolling, 3),
    "onward": (Rolling, True),
    "untouched": (GrowthPlan, 0.3),
    "holdout": (GrowthPlan, 0.3),
}


@pytest.mark.parametrize("old", ARGUMENTS)
def test_an_old_argument_is_the_new_one_and_names_it(old):
    make, value = ARGUMENTS[old]
    with pytest.warns(RenamedWarning, match=f"{make.__name__}.*`{old}`.*`{KEYS[old]}`") as said:
        made = make(**{old: value})
    assert made == make(**{KEYS[old]: value})
    assert [Path(one.filename) for one in said] == [Path(__file__)]  # the caller's line


@pytest.mark.parametrize("make", [from_generations, from_arrivals])
def test_streams_take_the_old_argument(make):
    with pytest.warns(RenamedWarning, match="`untouched` is now `selection_holdout`"):
        old = cut(make, untouched=0.3)
    assert old == cut(make, selection_holdout=0.3) != cut(make)


def test_a_stream_takes_the_old_argument():
    rows = (np.arange(4),)
    with pytest.warns(RenamedWarning, match="Stream.*`selection_holdout`"):
        old = a_stream(untouched=rows)
    assert old.fingerprint == a_stream(selection_holdout=rows).fingerprint


def test_an_argument_under_both_names_is_refused():
    with pytest.raises(TypeError, match=r"`carry`.*`carry_over`"):
        Rolling(carry=0.5, carry_over=0.5)


def test_a_successor_must_exist():
    with pytest.raises(AssertionError):
        renamed_arguments(old="misspelt")(Rolling)


ESTIMATED = {"carry": 0.5, "lag": 0.2, "untouched": 0.3}


def test_an_estimator_takes_old_parameters_and_knows_them_by_their_new_names():
    model = DecisionTreeClassifier()
    new = dynsnap.DynSnapClassifier(model, **{KEYS[old]: one for old, one in ESTIMATED.items()})
    with pytest.warns(RenamedWarning) as said:
        made = dynsnap.DynSnapClassifier(model, **ESTIMATED)
    (line,) = {str(one.message) for one in said}
    assert all(f"`{old}` is now `{KEYS[old]}`" in line for old in ESTIMATED)
    with pytest.warns(RenamedWarning, match="`lag` is now `max_accuracy_gap`"):
        later = dynsnap.DynSnapClassifier(model).set_params(**ESTIMATED)
    for one in (made, later, clone(made)):
        assert "DynSnapClassifier" in line
        assert one.get_params(deep=False) == {**new.get_params(deep=False), "model": one.model}
    assert not ESTIMATED.keys() & inspect.signature(dynsnap.DynSnapClassifier).parameters.keys()


def test_an_ensemble_file_keeps_its_names_and_is_read_by_old_and_new_ones(tmp_path):
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(60, 3))
    made = dynsnap.DynSnapClassifier(
        DecisionTreeClassifier(max_depth=2), method="rolling", members=2, snapshots=1, epochs=1,
        carry_over=0.5, selection_holdout=0.3, random_state=0,
    ).fit(inputs, inputs[:, 0] > 0)  # fmt: skip
    made.save(tmp_path / "it.ensemble")
    with warnings.catch_warnings():
        warnings.simplefilter("error", RenamedWarning)
        found = dynsnap.DynSnapClassifier.load(tmp_path / "it.ensemble")
    for name in ("carry_over", "max_accuracy_gap", "selection_holdout"):
        assert getattr(found, name) == getattr(made, name)
    assert found._fitted.selection_holdout == 0.3
    with pytest.warns(RenamedWarning, match="load.*`carry` is now `carry_over`"):
        found = dynsnap.DynSnapClassifier.load(tmp_path / "it.ensemble", carry=0.9)
    assert found.carry_over == 0.9


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        (dynsnap, "stand", "stabilize"),
        (predictions, "stand", "stabilize"),
        (predictions, "standing", "stabilize_scores"),
        (data, "untouched_rows", "selection_rows"),
        (comparison, "RestlessInput", "UnstableInput"),
        (theory, "Members", "MemberPredictions"),
    ],
)
def test_an_old_function_is_the_new_one_and_names_it(module, old, new):
    with pytest.warns(RenamedWarning, match=f"{old}` is now .*{new}`"):
        assert getattr(module, old) is getattr(module, new)
    assert old not in dir(module)


def test_the_unstable_inputs_of_a_comparison_are_found_by_their_old_name():
    found = comparison.compare(*(predictions.read(file) for file in (OLD, NEW, OLD)))
    with pytest.warns(RenamedWarning, match="restless.*unstable"):
        assert found.restless is found.unstable
    assert found.unstable


# --- study files ----------------------------------------------------------------------------


def with_old_keys(text):
    for old, new in KEYS.items():
        text = re.sub(rf"(?m)^{new}( *=)", rf"{old}\1", text)
    return text.replace('over = "carry_over"', 'over = "carry"')


@pytest.mark.parametrize("name", SHIPPED)
def test_a_study_file_with_old_keys_is_the_same_study(name, tmp_path):
    text = SHIPPED[name].read_text()
    before = with_old_keys(text)
    file = tmp_path / f"{name}.toml"
    file.write_text(before)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        old = study.read_study(file)
    file.write_text(text)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RenamedWarning)  # what is shipped has new keys
        new = study.read_study(file)
    assert old == new
    assert study.growth_of(old.data) == study.growth_of(new.data)
    assert study.workload(old).rounds == study.workload(new).rounds
    used = {key for key in KEYS if re.search(rf'(?m)^{key} *=|^over = "{key}"', before)}
    assert len(said) == bool(used)
    for key in used:
        assert f"`{key}` is now `{KEYS[key]}`" in str(said[0].message)


@pytest.mark.parametrize("name", [name for name in SHIPPED if (PUBLISHED / name).is_dir()])
def test_the_shipped_study_is_the_one_that_was_published(name):
    ran, shipped_now = (
        study.read_study(file, stored=True)
        for file in (PUBLISHED / name / "study.toml", SHIPPED[name])
    )
    assert ran == shipped_now
    names = ([one.canonical() for one in study.workload(it).rounds] for it in (ran, shipped_now))
    assert next(names) == next(names)


def test_old_keys_were_in_use():
    texts = "".join(with_old_keys(file.read_text()) for file in SHIPPED.values())
    assert {key for key in KEYS if re.search(rf"(?m)^{key} *=", texts)} >= KEYS.keys() - {"holdout"}
    assert 'over = "carry"' in texts


TABLES = {
    "[data.growth]\nholdout = 0.3\n": "[data.growth]\ntest_size = 0.3\n",
    "[methods.rolling]\nlag = 0.2\nonward = true\n": (
        "[methods.rolling]\nmax_accuracy_gap = 0.2\nwarm_start = true\n"
    ),
    '[[sweep]]\nover = "margin"\nvalues = [0.1]\nmethod = "rolling"\ncarry = 0.5\n': (
        '[[sweep]]\nover = "margin"\nvalues = [0.1]\nmethod = "rolling"\ncarry_over = 0.5\n'
    ),
}
HEAD = '[study]\nkeep = "weights"\n[model]\nname = "mlp"\n[methods]\nnames = ["rolling"]\n'


@pytest.mark.parametrize("old", TABLES)
def test_old_keys_are_read_in_every_table(old, tmp_path):
    file = tmp_path / "some.toml"
    file.write_text(HEAD + old)
    with pytest.warns(RenamedWarning, match="is now"):
        found = study.read_study(file)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RenamedWarning)
        assert study.read_study(file, stored=True) == found
        file.write_text(HEAD + TABLES[old])
        assert study.read_study(file) == found


def test_a_key_under_both_names_is_refused(tmp_path):
    file = tmp_path / "some.toml"
    file.write_text(HEAD + "[methods.rolling]\ncarry = 0.5\ncarry_over = 0.5\n")
    with pytest.raises(PlanError, match=r"methods\.rolling.*`carry`.*`carry_over`"):
        study.read_study(file)


@pytest.mark.parametrize("odd", ["data = 1", "variant = 1", "variant = [1]", "sweep = [1]"])
def test_tables_of_the_wrong_kind_are_left_to_the_reader(odd, tmp_path):
    file = tmp_path / "some.toml"
    file.write_text(f'{odd}\n[model]\nname = "mlp"\n')
    with pytest.raises(PlanError):
        study.read_study(file)


def test_growth_of_a_data_plan_takes_old_names():
    with pytest.warns(RenamedWarning, match="`holdout` is now `test_size`"):
        assert study.growth_of(study.DataPlan(growth={"holdout": 0.3})).test_size == 0.3


# --- commands -------------------------------------------------------------------------------


def test_the_old_command_does_what_the_new_one_does_and_names_it(tmp_path):
    files = [tmp_path / f"{name}.parquet" for name in ("stand", "stabilize")]
    old, new = (command(file.stem, OLD, NEW, "-o", file) for file in files)
    assert (old.exit_code, old.stdout) == (new.exit_code, new.stdout) == (0, new.stdout)
    assert old.stderr == "dynsnap: `dynsnap stand` is now `dynsnap stabilize`.\n"
    assert new.stderr == ""
    assert files[0].read_bytes() == files[1].read_bytes()


def test_the_old_command_is_in_no_list():
    assert not re.search(r"(?m)^\s+stand\s", command("--help").stdout)
    assert "stand" not in command("stan").stderr.split("?")[0].replace("'stan'", "")


def test_a_command_names_the_successors_of_old_keys_in_one_line(tmp_path):
    file = tmp_path / "old.toml"
    file.write_text(with_old_keys(SHIPPED["digits-rolling"].read_text()))
    ended = command("run", file, "--plan")
    assert ended.exit_code == 0, ended.stderr
    (line,) = [line for line in ended.stderr.splitlines() if "is now" in line]
    assert (
        line.startswith("dynsnap: old.toml: ") and "`untouched` is now `selection_holdout`" in line
    )


def test_published_results_are_read_without_a_word_about_their_keys(tmp_path):
    for name in ("study.toml", "table.csv"):
        shutil.copy(PUBLISHED / "cifar10-rolling" / name, tmp_path)
    assert re.search(r"(?m)^untouched =", (tmp_path / "study.toml").read_text())
    ended = command("report", tmp_path)
    assert ended.exit_code == 0 and "is now" not in ended.stderr
