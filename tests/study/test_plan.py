import pytest

from dynsnap.ensemble import COMBINATIONS, METHODS, EnsemblePlan, Recipe, Schedule
from dynsnap.errors import FileError, PlanError
from dynsnap.study import read_study
from tests.messages import naming


@pytest.fixture
def study(tmp_path):
    """Reads a study file with this text."""

    def read(text):
        path = tmp_path / "mine.toml"
        path.write_text(text)
        return read_study(path)

    return read


def test_an_empty_file_is_the_papers_study_of_the_digits(study):
    plan = study("")
    assert plan.name == "mine"
    assert plan.data.source == "digits"
    assert plan.epochs == 200
    assert tuple(method.name for method in plan.methods) == METHODS
    assert plan.combinations == COMBINATIONS
    assert plan.method("dynsnap-cyc").plan == EnsemblePlan(size=20, snapshots=10, beta="mean")
    assert (plan.seed, plan.replicates, plan.keep) == (0, 1, "scores")


def test_single_base_ext_bagging_and_dynsnap_step_share_their_rounds(study):
    plan = study("")
    recipes = {plan.method(name).recipe for name in ("singlebase", "extbagging", "dynsnap-step")}
    assert len(recipes) == 1


def test_everything_can_be_said_otherwise(study, tmp_path):
    plan = study("""
        [study]
        name = "other"
        seed = 5
        replicates = 3
        keep = "weights"
        half_precision = true

        [data]
        source = "npz"
        path = "sub/data.npz"
        inputs = "x"
        growth = { fractions = [0.5, 1.0] }

        [model]
        name = "mlp"
        hidden = [16]

        [training]
        epochs = 40
        batch_size = 32

        [methods]
        names = ["singlebase", "extbagging"]
        combinations = ["average"]
        members = 6
        snapshots = 4
        beta = 0.5
        extbagging = { members = 3 }
    """)
    assert (plan.name, plan.seed, plan.replicates, plan.keep) == ("other", 5, 3, "weights")
    assert plan.half
    assert plan.data.path == tmp_path / "sub/data.npz"
    assert plan.data.options == {"inputs": "x"}
    assert plan.data.growth == {"fractions": [0.5, 1.0]}
    assert plan.model == {"name": "mlp", "hidden": [16]}
    assert plan.training == {"batch_size": 32}
    assert [method.name for method in plan.methods] == ["singlebase", "extbagging"]
    assert plan.method("extbagging").plan.size == 3
    assert plan.method("singlebase").recipe.snapshots == 4
    assert plan.combinations == ("average",)


def test_a_sweep_over_members_varies_nothing_else(study):
    (sweep,) = study("""
        [[sweep]]
        over = "members"
        values = [1, 5]
    """).sweeps
    assert sweep.combination == "average"
    assert [(point, method.plan.size) for point, method in sweep.points] == [("1", 1), ("5", 5)]
    assert {method.recipe for _, method in sweep.points} == {study("").method("dynsnap-cyc").recipe}


def test_a_sweep_over_beta_takes_numbers_and_the_mean(study):
    (sweep,) = study("""
        [[sweep]]
        over = "beta"
        values = [0, 0.5, "mean"]
    """).sweeps
    assert [method.plan.beta for _, method in sweep.points] == [0, 0.5, "mean"]
    assert [method.name for _, method in sweep.points] == ["beta=0", "beta=0.5", "beta=mean"]


def test_values_that_are_nearly_equal_are_points_of_their_own(study):
    (sweep,) = study("""
        [[sweep]]
        over = "margin"
        values = [0, 0.2, 0.2000001, 0.75, 1.0, 1e-7, 1.00000001e-7]
    """).sweeps
    exact = ["0", "0.2", "0.2000001", "0.75", "1", "1e-07", "1.00000001e-07"]
    assert [point for point, _ in sweep.points] == exact
    assert [method.name for _, method in sweep.points] == [f"margin={point}" for point in exact]
    assert [method.margin for _, method in sweep.points] == [float(point) for point in exact]


def test_the_papers_sweep_over_snapshots_keeps_the_window_and_every_snapshot(study):
    (sweep,) = study("""
        [[sweep]]
        over = "snapshots"
        values = [1, 40]
        window = 20
        members = "snapshots"
        beta = 1.0
    """).sweeps
    few, many = (method for _, method in sweep.points)
    assert (few.recipe.epochs, few.plan.size, few.recipe.window) == (20, 1, 20)
    assert (many.recipe.epochs, many.plan.size, many.recipe.window) == (800, 40, 20)
    assert many.plan.beta == 1


def test_the_papers_sweep_over_the_window_changes_the_epochs(study):
    (sweep,) = study("""
        [[sweep]]
        over = "window"
        values = [5, 40]
        beta = 1.0
    """).sweeps
    assert [method.recipe.epochs for _, method in sweep.points] == [50, 400]
    assert {method.recipe.snapshots for _, method in sweep.points} == {10}


def test_the_papers_ablations_are_methods_of_their_own(study):
    plan = study("""
        [[ablation]]
        name = "no-schedule"
        schedule = "constant"

        [[ablation]]
        name = "no-randomness"
        epochs = 800
        snapshots = 40
        beta = 1
    """)
    assert plan.method("no-schedule").recipe == Recipe(
        schedule=Schedule("constant"), epochs=200, snapshots=10, selection="top"
    )
    alone = plan.method("no-randomness")
    assert alone.recipe.window == 20
    assert alone.plan == EnsemblePlan(size=20, snapshots=40, beta=1)


def test_the_noise_floor_is_measured_with_single_base_even_where_it_is_left_out(study):
    plan = study('[methods]\nnames = ["dynsnap-step"]')
    assert plan.baseline.name == "singlebase"
    assert plan.baseline.recipe == plan.method("dynsnap-step").recipe


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[studdy]", naming(r"mine\.toml", "`studdy`", '"study"')),
        ("[study]\nreplicats = 2", naming(r"\[study\]", "`replicats`", '"replicates"')),
        ("[study]\nreplicates = 0", naming("`replicates`", "at least 1", "got 0")),
        ("[study]\nreplicates = true", naming("`replicates`", "whole number", "True")),
        ("[study]\nresamples = 0", "`resamples` must be"),
        ("[study]\nresamples = 100_001", naming("`resamples`", "100,000", "100001")),
        ("[study]\nseed = -1", naming("`seed`", "negative", "-1")),
        ('[study]\nkeep = "all"', '`keep` must be "scores" or "weights"'),
        ('[methods]\nnames = ["dynsnap"]', r"no method 'dynsnap'.*dynsnap-"),
        ('[methods]\nnames = ["snapshot", "snapshot"]', naming("snapshot", "more than once")),
        ("[methods]\nnames = []", "one method"),
        ("[methods]\nnames = [1]", naming("`names`", "list of texts")),
        ('[methods]\ncombinations = ["mean"]', "no combination 'mean'"),
        ("[methods]\nmember = 3", naming(r"\[methods\]", "`member`", '"members"')),
        ("[methods.extbagging]\nmember = 3", naming(r"\[methods\.extbagging\]", "`member`")),
        ("[methods]\nbeta = 2", "`beta` must be"),
        ("[training]\nepochs = 5", naming("`snapshots`", "5 epochs", "10", "default")),
        (
            "[training]\nepochs = 5\n[methods]\nsnapshots = 10",
            naming("`snapshots`", "5 epochs", "10", "(?!.*default)"),
        ),
        ("[[sweep]]\nvalues = [1]", r"\[\[sweep\]\] 1 .*`over`"),
        ('[[sweep]]\nover = "m"\nvalues = [1]', "`over` cannot be 'm'"),
        ('[[sweep]]\nover = "members"\nvalues = []', "`values` is empty"),
        (
            '[[sweep]]\nover = "members"\nvalues = [1]\nmethod = "snapshot"',
            naming("members", "'snapshot'"),
        ),
        (
            '[[sweep]]\nover = "window"\nvalues = [1]\nepochs = 3',
            "give `window` or `epochs`",
        ),
        (
            '[[sweep]]\nover = "margin"\nvalues = [0.2, 1e300]',
            naming("`margin`", "0 and 1", r"1e\+300"),
        ),
        ('[[sweep]]\nover = "margin"\nvalues = [0.2, 0.2]', naming("0.2", "more than once")),
        ("[[ablation]]\nepochs = 3", r"\[\[ablation\]\] 1 .*`name`"),
        ('[[ablation]]\nname = "a b"', naming("name", "letters", "'a b'")),
        ('[[ablation]]\nname = "x"\nschedule = "cosine"', naming("schedule", "cyclic", "'cosine'")),
        (
            '[[variant]]\nname = "noise-floor"\nmethod = "snapshot"',
            naming("named", "'noise-floor'"),
        ),
        (
            '[[variant]]\nname = "never-retrain-snapshot"\nmethod = "snapshot"',
            naming("named", "'never-retrain-snapshot'"),
        ),
        ('[sweep]\nover = "members"', naming("`sweep`", "list")),
        ("[study", "is not valid TOML"),
        (f"[study]\nseed = {'9' * 5000}", r"mine\.toml is not valid TOML"),
        (f"[study]\nname = {'[' * 5000}", r"mine\.toml is not valid TOML"),
    ],
)
def test_a_wrong_study_file_is_one_clear_line(study, text, message):
    with pytest.raises(PlanError, match=message) as caught:
        study(text)
    assert "\n" not in str(caught.value)


def test_a_study_file_that_is_not_there_is_said_so(tmp_path):
    with pytest.raises(FileError, match=naming("study file", r"none\.toml")):
        read_study(tmp_path / "none.toml")
