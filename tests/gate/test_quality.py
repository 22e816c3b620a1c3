"""Rules on accuracy, F1, log loss and the like: of NEW, of their change, and of one class."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import dynsnap
from dynsnap.cli import cli
from dynsnap.errors import ComparisonError, PlanError
from dynsnap.gate import Rule, inline_rule, judge
from tests.messages import naming


def predictions(labels, truth, scores=None, classes=("cat", "dog", "fox")):
    said = {"labels": labels} if scores is None else {"scores": scores}
    return dynsnap.Predictions(ids=np.arange(len(truth)), classes=classes, truth=truth, **said)


@pytest.fixture(scope="module")
def pair():
    """NEW loses 4 of 40 dogs to foxes, and gains nothing."""
    truth = np.repeat([0, 1, 2], 40)
    old = truth.copy()
    old[:5] = 1
    new = old.copy()
    new[40:44] = 2
    return predictions(old, truth), predictions(new, truth)


@pytest.fixture(scope="module")
def compared(pair):
    return dynsnap.compare(*pair, resamples=200)


def outcome(compared, rule):
    return judge(compared, [rule]).outcomes[0]


def test_a_change_is_held_against_a_threshold_below_zero(compared):
    worse = outcome(compared, inline_rule("accuracy_change=-0.005", side="at_least"))
    assert worse.status == "failed"
    assert worse.judged == pytest.approx(-4 / 120)
    allowed = outcome(compared, inline_rule("accuracy_change=-0.05", side="at_least"))
    assert allowed.status == "passed"
    bound = Rule(metric="accuracy_change", at_least=-0.05, on="bound")
    assert outcome(compared, bound).status == "failed"  # the interval reaches below
    assert outcome(compared, inline_rule("f1_macro_change=-0.01", side="at_least")).status == (
        "failed"
    )


@pytest.mark.parametrize(
    ("text", "judged"), [("recall[dog]=0.95", 36 / 40), ("precision[fox]=0.95", 40 / 44)]
)
def test_a_rule_names_a_class(compared, text, judged):
    found = outcome(compared, inline_rule(text, side="at_least"))
    assert found.status == "failed"
    assert found.judged == pytest.approx(judged)
    assert found.part == f"class {text[text.index('[') + 1 : text.index(']')]}"


def test_a_rule_is_for_every_class(compared):
    rule = inline_rule("recall_change[*]=-0.02", side="at_least")
    statuses = {each.part: each.status for each in judge(compared, [rule]).outcomes}
    assert statuses == {"class cat": "passed", "class dog": "failed", "class fox": "passed"}


def test_a_metric_of_a_class_needs_one_and_an_average_takes_none():
    with pytest.raises(PlanError, match=naming("recall", "class", "recall_macro")):
        inline_rule("recall=0.9", side="at_least")
    with pytest.raises(PlanError, match=naming("f1_change", "f1_macro_change")):
        inline_rule("f1_change=-0.1", side="at_least")
    with pytest.raises(PlanError, match=naming("f1_macro", "f1")):
        inline_rule("f1_macro[cat]=0.9", side="at_least")
    with pytest.raises(PlanError, match=naming("balanced_accuracy_change", "recall_change")):
        inline_rule("balanced_accuracy_change[cat]=-0.1", side="at_least")


@pytest.mark.parametrize("text", ["recall[cat=0.9", "recall[cat]", "=0.9", "recall[cat]=x"])
def test_a_rule_that_is_not_written_out_is_refused(text):
    with pytest.raises(PlanError):
        inline_rule(text, side="at_least")


def test_worse_is_higher_for_a_loss_and_the_wrong_side_is_refused():
    assert inline_rule("log_loss_change=0.01", side="at_most").threshold == 0.01
    with pytest.raises(PlanError, match=naming("log_loss", "at_most")):
        inline_rule("log_loss=0.5", side="at_least")
    with pytest.raises(PlanError, match=naming("accuracy_change", "at_least")):
        inline_rule("accuracy_change=0.01", side="at_most")


def test_what_is_undefined_is_not_passed():
    truth = np.zeros(60, int)  # one true class
    old, new = np.zeros(60, int), np.zeros(60, int)
    new[:3] = 1
    scores = [np.eye(3)[each] * 0.9 + 0.1 / 3 for each in (old, new)]
    pair = [predictions(None, truth, each) for each in scores]
    found = dynsnap.compare(*pair, resamples=100)
    for text in ("matthews_change=-0.01", "matthews=0.1", "auroc=0.5", "auroc_change=-0.1"):
        with pytest.raises(ComparisonError, match=naming(text.partition("=")[0], "undefined")):
            judge(found, [inline_rule(text, side="at_least")])
    # A class that NEW never names has no precision.
    truth = np.repeat([0, 1, 2], 30)
    never = np.where(truth == 2, 0, truth)
    found = dynsnap.compare(predictions(truth, truth), predictions(never, truth), resamples=100)
    with pytest.raises(ComparisonError, match=naming("precision", "fox", "undefined")):
        judge(found, [inline_rule("precision[fox]=0.5", side="at_least")])
    with pytest.raises(ComparisonError, match=naming("precision_change", "fox", "undefined")):
        judge(found, [inline_rule("precision_change[fox]=-0.5", side="at_least")])
    assert outcome(found, inline_rule("recall[fox]=0.5", side="at_least")).status == "failed"


def test_a_change_that_nothing_could_fail_is_no_pass():
    truth = np.repeat([0, 1, 2], 30)
    bad = (truth + 1) % 3
    bad[:1] = truth[:1]
    found = dynsnap.compare(predictions(bad, truth), predictions(bad.copy(), truth), resamples=100)
    for text in ("accuracy_change=-0.05", "f1_macro_change=-0.05", "recall_change[dog]=-0.05"):
        with pytest.raises(ComparisonError, match=naming(text.partition("=")[0].partition("[")[0])):
            judge(found, [inline_rule(text, side="at_least")])


def test_a_metric_that_was_not_measured_is_refused(pair):
    scores = [np.eye(3)[one.labels] * 0.9 + 0.1 / 3 for one in pair]
    scored = [predictions(None, one.truth, each) for one, each in zip(pair, scores, strict=True)]
    found = dynsnap.compare(*scored, resamples=50, metrics=())
    with pytest.raises(ComparisonError, match=naming("auroc", "ranking")):
        judge(found, [inline_rule("auroc=0.9", side="at_least")])
    with pytest.raises(ComparisonError, match=naming("f1_macro", "classification")):
        judge(found, [inline_rule("f1_macro=0.9", side="at_least")])


@pytest.fixture
def files(tmp_path, pair):
    rng = np.random.default_rng(0)
    paths = []
    for name, one in zip(("old", "new"), pair, strict=True):
        scores = np.eye(3)[one.labels] + rng.random((len(one), 3)) / 3
        scores /= scores.sum(axis=1, keepdims=True)
        path = tmp_path / f"{name}.parquet"
        dynsnap.predictions.write(predictions(None, one.truth, scores), path)
        paths.append(str(path))
    return paths


def test_the_command_judges_changes_classes_and_rankings(files, tmp_path):
    verdict, page, text = (str(tmp_path / name) for name in ("v.json", "v.html", "v.md"))
    rules = ["accuracy_change=-0.005", "f1_macro_change=-0.01", "recall[*]=0.7", "auroc=0.5"]
    more = [word for rule in rules for word in ("--at-least", rule)]
    more += ["--json", verdict, "--html", page, "--markdown", text, "--resamples", "100"]
    done = CliRunner().invoke(cli, ["gate", *files, *more])
    assert done.exit_code == 1, done.output
    found = json.loads(Path(verdict).read_text())["outcomes"]
    statuses = [(each["rule"]["metric"], each["status"]) for each in found]
    assert statuses[:2] == [("accuracy_change", "failed"), ("f1_macro_change", "failed")]
    assert statuses[2:5] == [("recall", "passed")] * 3
    assert statuses[5] == ("auroc", "passed")
    for where in (page, text):
        assert "f1_macro_change" in Path(where).read_text().replace("\\", "")


def test_the_command_compares_groups_of_metrics_on_every_output(files, tmp_path):
    outputs = {name: str(tmp_path / f"c.{name}") for name in ("json", "html", "md")}
    args = ["compare", *files, "--resamples", "60"]
    for name, option in (("json", "--json"), ("html", "--html"), ("md", "--markdown")):
        args += [option, outputs[name]]
    done = CliRunner().invoke(cli, args)
    assert done.exit_code == 0, done.output
    for name in ("balanced_accuracy", "f1_macro", "log_loss"):
        assert name in done.output
    found = json.loads(Path(outputs["json"]).read_text())
    assert {"auroc", "brier", "matthews"} <= found["generations"][0]["metrics"].keys()
    assert "auroc_change" in found["pairs"][0]["metrics"]
    group = found["pairs"][0]["groups"][0]
    assert {"precision", "recall", "f1", "auroc"} <= group["old_metrics"].keys()
    for name in ("html", "md"):
        written = Path(outputs[name]).read_text().replace("\\", "")
        assert "<details" in written
        for metric in ("average_precision_weighted", "matthews", "brier"):
            assert metric in written
    few = CliRunner().invoke(cli, [*args[:5], "--metrics", "consistency", "--json", "-"])
    assert "f1_macro" not in few.output
    wrong = CliRunner().invoke(cli, ["compare", *files, "--metrics", "rankin"])
    assert wrong.exit_code == 2
    assert "ranking" in wrong.output
