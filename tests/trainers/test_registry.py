"""A trainer of another package: found by its entry point, imported only when it is named."""

import sys

import numpy as np
import pytest

from dynsnap import DynSnapClassifier, store, trainers
from dynsnap.data import digits
from dynsnap.errors import FileError, PlanError
from dynsnap.testing import CentroidTrainer
from tests.cli.forging import forged, unpacked
from tests.cli.studies import dynsnap
from tests.extending import files, registries
from tests.messages import naming
from tests.trainers.installed import install

WRITTEN = files("A trainer")
STUDY = WRITTEN["toy-study.toml"].replace("[training]", "[data]\nsubsample = 0.4\n\n[training]")
SMALL = {"trainer": "toy", "members": 4, "snapshots": 2, "epochs": 4, "random_state": 0}


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """The package of docs/extending.md, installed into a folder of its own."""
    folder = tmp_path / "site"
    folder.mkdir()
    install(folder, WRITTEN["pyproject.toml"], {"dynsnap_toy.py": WRITTEN["dynsnap_toy.py"]})
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "dynsnap_toy", raising=False)
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    (work / "study.toml").write_text(STUDY)
    rows = digits().train
    np.savez(work / "new.npz", inputs=rows.inputs[:30])
    with registries():
        yield work
    for name in [name for name in sys.modules if name.startswith("broken_")]:
        del sys.modules[name]


def data():
    rows = digits().train
    return rows.inputs[:300], rows.labels[:300]


def imported():
    return "dynsnap_toy" in sys.modules


@pytest.fixture
def uninstalled(toy, monkeypatch):
    """Ends the installation, and what was imported of it."""

    def remove():
        monkeypatch.setattr(sys, "path", [path for path in sys.path if "site" not in path[-4:]])
        monkeypatch.delitem(sys.modules, "dynsnap_toy", raising=False)
        trainers.BACKENDS._things.pop("toy", None)

    return remove


def test_an_installed_trainer_is_listed_without_being_imported(toy):
    assert "toy" in trainers.names()
    assert not imported()


def test_a_trainer_is_imported_when_it_is_named(toy):
    assert trainers.named("toy").name == "toy"
    assert imported()
    assert trainers.named("toy") is trainers.named("toy")


def test_an_estimator_fits_saves_and_loads_with_a_named_trainer(toy):
    inputs, labels = data()
    fitted = DynSnapClassifier({"rate": 0.5}, **SMALL).fit(inputs, labels)
    assert fitted.score(inputs, labels) > 0.5
    fitted.save("toy.ensemble")
    again = DynSnapClassifier.load("toy.ensemble", trainer="toy")
    np.testing.assert_array_equal(again.predict_proba(inputs), fitted.predict_proba(inputs))
    more = DynSnapClassifier.load("toy.ensemble", trainer="toy", model={"rate": 0.5}).retrain(
        inputs, labels, earlier=(inputs, labels)
    )
    assert more.generation_ == 2


@pytest.mark.parametrize("method", ["single-ema", "single-smooth"])
def test_a_trainer_that_cannot_average_or_smooth_refuses_methods_that_do(toy, method):
    estimator = DynSnapClassifier({"rate": 0.5}, method=method, trainer="toy", epochs=4)
    with pytest.raises(PlanError, match=naming(method, "'toy'", "singlebase")):
        estimator.fit(*data())


def test_a_saved_ensemble_does_not_choose_its_trainer(toy, uninstalled):
    DynSnapClassifier({"rate": 0.5}, **SMALL).fit(*data()).save("toy.ensemble")
    manifest, _ = unpacked("toy.ensemble")
    assert "trainer" not in manifest["about"]["estimator"]["settings"]
    trainers.BACKENDS._things.pop("toy")
    sys.modules.pop("dynsnap_toy")
    with pytest.raises(PlanError, match=r"'toy'.*load\(path, trainer=\"toy\"\)"):
        DynSnapClassifier.load("toy.ensemble")
    assert not imported()
    uninstalled()
    with pytest.raises(PlanError, match=r"no trainer 'toy'.*install"):
        DynSnapClassifier.load("toy.ensemble", trainer="toy")


def test_a_file_of_another_trainer_than_the_named_one_is_refused(toy):
    from sklearn.naive_bayes import GaussianNB

    inputs, labels = data()
    flat = inputs.reshape(len(inputs), -1)
    plain = DynSnapClassifier(GaussianNB(), method="extbagging", members=2).fit(flat, labels)
    plain.save("plain.ensemble")
    with pytest.raises(PlanError, match=r"'boost'.*'toy'"):
        DynSnapClassifier.load("plain.ensemble", trainer="toy")
    assert not imported()


def test_settings_in_a_file_cannot_smuggle_a_trainer_in(toy):
    from sklearn.naive_bayes import GaussianNB

    inputs, labels = data()
    flat = inputs.reshape(len(inputs), -1)
    plain = DynSnapClassifier(GaussianNB(), method="extbagging", members=2).fit(flat, labels)
    plain.save("plain.ensemble")
    manifest, _ = unpacked("plain.ensemble")
    manifest["about"]["estimator"]["settings"]["trainer"] = "toy"
    forged("plain.ensemble", "forged.ensemble", about=manifest["about"])
    with pytest.raises(FileError, match="trainer"):
        DynSnapClassifier.load("forged.ensemble")
    assert not imported()


def test_a_study_trains_with_it_and_predict_asks_for_its_name(toy, monkeypatch):
    ended = dynsnap("train", "study.toml", "--out", "run", "-q")
    assert ended.exit_code == 0, ended.stderr
    saved = "run/ensembles/dynsnap-cyc-g3.ensemble"
    assert store.load_ensemble(saved).model == {"trainer": "toy", "rate": 0.5}
    trainers.BACKENDS._things.pop("toy")
    sys.modules.pop("dynsnap_toy")
    refused = dynsnap("predict", saved, "new.npz", "-o", "x.parquet")
    assert refused.exit_code == 2
    assert "--trainer toy" in refused.stderr
    assert not imported()
    ended = dynsnap("predict", saved, "new.npz", "-o", "x.parquet", "--trainer", "toy")
    assert ended.exit_code == 0, ended.stderr
    for option in (["--model", "os:system"], ["--device", "cuda"]):
        ended = dynsnap("predict", saved, "new.npz", "-o", "y.parquet", "--trainer", "toy", *option)
        assert ended.exit_code == 2
        assert option[0] in ended.stderr


def test_looking_at_a_plan_imports_no_trainer(toy, uninstalled):
    ended = dynsnap("run", "study.toml", "--plan")
    assert ended.exit_code == 0, ended.stderr
    assert "'toy'" in ended.stdout
    assert not imported()
    uninstalled()
    ended = dynsnap("run", "study.toml", "--plan")
    assert "no trainer 'toy'" in " ".join(ended.stdout.split())
    ended = dynsnap("run", "study.toml", "-q")
    assert ended.exit_code == 2
    assert "no trainer 'toy'" in ended.stderr


@pytest.mark.slow
def test_only_commands_that_train_import_the_trainer_of_a_study(toy):
    ended = dynsnap("run", "study.toml", "--out", "run", "-q")
    assert ended.exit_code == 0, ended.stderr
    assert imported()
    trainers.BACKENDS._things.pop("toy")
    sys.modules.pop("dynsnap_toy")
    old, new = (f"run::dynsnap-cyc/average/g{generation}/r0" for generation in (1, 2))
    for command in (
        ("run", "run/study.toml", "--plan"),
        ("report", "run", "-q", "--html", "page.html"),
        ("publish", "run", "published"),
        ("report", "published", "-q"),
        ("size", "run", "-q"),
        ("runs", "run"),
        ("compare", old, new, "-q", "--study", "run"),
        ("gate", old, new, "-q", "--study", "run", "--at-most", "lost=0.5", "--allow-odd-rules"),
    ):
        ended = dynsnap(*command)
        assert ended.exit_code == 0, (command, ended.output)
        assert not imported(), command


@pytest.mark.parametrize("wrong", ["3", '""', '["toy"]'])
def test_a_trainer_that_is_no_name_is_refused(toy, wrong):
    (toy / "study.toml").write_text(STUDY.replace('trainer = "toy"', f"trainer = {wrong}"))
    ended = dynsnap("run", "study.toml", "--plan")
    assert ended.exit_code == 2
    assert "`trainer`" in ended.stderr


def test_what_a_trainer_refuses_of_a_study_ends_with_2(toy):
    for old, new, named in (("rate", "rat", "rat"), ("epochs = 4", "epochs = 4\nx = 1", "`x`")):
        (toy / "study.toml").write_text(STUDY.replace(old, new))
        ended = dynsnap("run", "study.toml", "-q")
        assert ended.exit_code == 2, ended.output
        assert named in ended.stderr


# --- packages that are wrong ------------------------------------------------------------------


def broken(toy, name, value, text="from dynsnap.trainers import Backend\n"):
    """A package whose entry point leads nowhere good."""
    pyproject = (
        f'[project]\nname = "broken-{name}"\nversion = "1"\n'
        f'[project.entry-points."dynsnap.trainers"]\n{name} = "{value}"\n'
    )
    install(toy.parent / "site", pyproject, {f"broken_{name}.py": text})


@pytest.mark.parametrize(
    ("value", "text", "said"),
    [
        ("broken_bad:Missing", "", "cannot be imported"),
        ("broken_nowhere:Backend", "", "cannot be imported"),
        ("broken_bad:x", "x = 3\n", "must be a `dynsnap.trainers.Backend`"),
        ("dynsnap_toy:ToyBackend", "", naming("'bad'", "'toy'", "dynsnap_toy:ToyBackend")),
    ],
)
def test_a_broken_package_is_named_by_its_entry_point(toy, value, text, said):
    broken(toy, "bad", value, text)
    with pytest.raises(PlanError, match=said) as caught:
        trainers.named("bad")
    assert value in str(caught.value)


def test_two_packages_of_one_name_are_refused(toy):
    broken(toy, "toy", "broken_toy:ToyBackend")
    with pytest.raises(PlanError, match="broken_toy:ToyBackend, dynsnap_toy:ToyBackend"):
        trainers.named("toy")
    assert not imported()


def test_no_package_replaces_a_trainer_of_dynsnap(toy):
    broken(toy, "torch", "broken_torch:Evil", "raise SystemExit('imported')\n")
    assert type(trainers.named("torch")).__module__.startswith("dynsnap.")


def test_a_registered_backend_needs_no_package():
    class Own(trainers.Backend):
        name = "own"

        def trainer(self, stream, *, model, settings, **more):
            return CentroidTrainer(stream)

        def scorer(self, learners, **more):
            raise NotImplementedError

    with registries():
        trainers.register(Own())
        assert "own" in trainers.names()
        assert trainers.named("own").name == "own"
        Own.name = "torch"
        with pytest.raises(PlanError, match=naming("'torch'", "part of dynsnap")):
            trainers.register(Own())
        with pytest.raises(PlanError, match="Backend"):
            trainers.register(Own)
    assert "own" not in trainers.names()


def test_weights_that_a_trainer_would_ignore_are_refused_by_name(toy):
    inputs, labels = data()
    estimator = DynSnapClassifier({}, **SMALL)
    with pytest.raises(PlanError, match=naming("'toy'", "`sample_weight`")):
        estimator.fit(inputs, labels, sample_weight=1.0 + np.arange(len(labels)))
    for setting in ({"class_weight": "balanced"}, {"selection_metric": "f1"}, {"warmup": 1}):
        (name,) = setting
        with pytest.raises(PlanError, match=naming(f"`{name}=", "'toy'")):
            DynSnapClassifier({}, **SMALL, **setting).fit(inputs, labels)
