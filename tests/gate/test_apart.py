"""Rules on any metric, of any class or slice: measured there as if those inputs were all."""

import numpy as np
import pytest

from dynsnap import Predictions, compare, gate, predictions
from dynsnap.cli import cli
from dynsnap.comparison import Settings, compare_blocks, measure_apart
from dynsnap.metrics import catalogue

METRICS = [name for name, entry in catalogue.items() if entry.scope != "many"]


@pytest.fixture
def pair(tmp_path):
    rng = np.random.default_rng(3)
    truth, ink = rng.integers(0, 3, 300), rng.choice(["blue", "red"], 300)
    made = []
    for name in ("old", "new"):
        scores = rng.dirichlet(np.ones(3), 300) + 0.8 * np.eye(3)[truth]
        scores /= scores.sum(axis=1, keepdims=True)
        said = Predictions(
            ids=np.arange(300),
            classes=["a", "b", "c"],
            scores=scores,
            truth=truth,
            slices={"ink": ink},
        )
        path = tmp_path / f"{name}.parquet"
        predictions.write(said, path)
        made.append((said, path))
    return made


@pytest.mark.parametrize(("column", "name"), [("truth", "b"), ("ink", "red")])
def test_a_part_measured_apart_is_the_comparison_of_its_inputs(pair, column, name):
    (old, old_path), (new, new_path) = pair
    with predictions.stream([old_path, new_path], rows_at_once=64) as blocks:
        settings = Settings(confidences=[0.9], resamples=50)
        compared = compare_blocks(blocks, settings)
        key = ("class" if column == "truth" else "slice", column, name)
        (found,) = measure_apart(compared, blocks, [key], settings)
    rows = old.truth == 1 if column == "truth" else old.slices["ink"].codes == 1
    alone = compare(old.take(np.flatnonzero(rows)), new.take(np.flatnonzero(rows)), resamples=50)
    expected = {**alone.generations[1].metrics, **alone.pairs[0].metrics}
    (group,) = (g for g in found.pairs[0].groups if (g.column, g.name) == (column, name))
    whole = {name for name in METRICS if catalogue[name].of != "class"}
    assert set(expected) == whole
    assert set(group.metrics) == whole if column == "ink" else set(METRICS)
    for metric, estimate in expected.items():
        if column == "truth" and catalogue[metric].of == "each":
            continue  # of the class among all inputs
        assert group.metrics[metric].value == pytest.approx(estimate.value, nan_ok=True)
    others = [g for g in found.pairs[0].groups if (g.column, g.name) != (column, name)]
    assert others == [
        g for g in compared[0].pairs[0].groups if (g.column, g.name) != (column, name)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("metric", METRICS)
def test_every_metric_can_be_a_rule_on_a_class_and_on_a_slice(pair, metric, tmp_path):
    from click.testing import CliRunner

    unbounded = ("win_loss_ratio", "relative_negative_flip_rate")
    bound = f"at_most = {1e9 if metric in unbounded else 1}\nallow_odd = true"
    if metric == "correct_distance":
        bound = "at_most = 4"
    rules = tmp_path / "gate.toml"
    of_class = f'[[rule]]\nmetric = "{metric}"\n{bound}\nclass = "a"\n'
    of_slice = f'[[rule]]\nmetric = "{metric}"\n{bound}\nslice = {{column = "ink", value = "*"}}\n'
    of = catalogue[metric].of
    rules.write_text((of_class if of != "classes" else "") + (of_slice if of != "class" else ""))
    files = [str(path) for _, path in pair]
    done = CliRunner().invoke(cli, ["gate", *files, "--rules", str(rules), "--resamples", "20"])
    assert done.exit_code == 0, done.output
    assert ("ink = red" if of != "class" else "class a") in done.output


def test_only_what_is_missing_is_measured_apart(pair):
    compared = compare(*(said for said, _ in pair), resamples=20)
    rules = [
        gate.Rule(metric="lost", at_most=0.5, class_name="*"),
        gate.Rule(metric="correctness", at_least=0.1, slice=("ink", "red")),
        gate.Rule(metric="accuracy", at_least=0.1),
    ]
    assert gate.apart(compared, rules) == {("slice", "ink", "red")}
