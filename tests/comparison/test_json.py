import json
import re
from pathlib import Path

import numpy as np
import pytest

from dynsnap.comparison import SCHEMA, compare, to_json
from dynsnap.predictions import Predictions
from tests.comparison import made

PAGE = Path(__file__).parents[2] / "docs" / "json.md"


def full():
    old, new, twin = made.generations(
        count=3, slices={"half": np.arange(200) % 2}, weights=np.ones(200)
    )
    return compare(old, new, noise_floor=twin, names=["old", "new"], resamples=20)


def several():
    return compare(*made.generations(count=4), resamples=20)


def paths(value, prefix=""):
    """Every field, with [] for any item of a list and nothing below the names of metrics."""
    if isinstance(value, list):
        for item in value:
            yield from paths(item, f"{prefix}[]")
    elif isinstance(value, dict):
        for name, item in value.items():
            path = f"{prefix}.{name}" if prefix else name
            yield path
            if name in (
                "metrics",
                "old_metrics",
                "averages",
                "agreement",
                "noise_floor",
                "slices",
                "matrices",
            ):
                continue
            yield from paths(item, path)


def test_the_page_names_every_field_and_no_other():
    named = {
        word
        for line in PAGE.read_text().splitlines()
        if line.startswith("| `")
        for word in re.findall(r"`([^`]+)`", line.split("|")[1])
    }
    found = {*paths(to_json(full())), *paths(to_json(several()))}
    inner = {
        path for path in found if path.startswith("pairs[].flows[].") or ".transitions." in path
    }
    assert found - inner == named
    text = PAGE.read_text()
    assert all(f"`{path.rpartition('.')[2]}`" in text for path in inner)


def test_the_schema_has_the_version_that_the_page_names():
    assert to_json(full())["schema"] == SCHEMA
    assert f'"{SCHEMA}"' in PAGE.read_text()


def test_values_and_intervals_are_where_the_page_says():
    found = full()
    plain = to_json(found)
    lost = found.pairs[0].metrics["lost"]
    expected = {"value": lost.value, "low": lost.low, "high": lost.high}
    assert plain["pairs"][0]["metrics"]["lost"] == expected
    assert plain["generations"][1]["name"] == "new"
    assert plain["generations"][1]["metrics"]["accuracy"]["value"] > 0
    accuracy = [each.metrics["accuracy"].value for each in found.generations]
    diagonal = np.diag(plain["matrices"]["correct_consistency"])
    assert diagonal.tolist() == pytest.approx(accuracy)
    assert plain["alignment"]["names"] == ["old", "new", "noise floor"]


def test_what_the_page_shows_of_single_inputs_is_in_the_json():
    found = several()
    plain = json.loads(json.dumps(to_json(found)))
    last = found.pairs[-1]
    lost = [(one.id, one.old_label, one.new_label, one.new_confidence) for one in last.flipped]
    assert lost == [
        (one["id"], one["old_label"], one["new_label"], one["new_confidence"])
        for one in plain["pairs"][-1]["flipped"]
    ]
    assert plain["ambiguity_so_far"] == list(found.ambiguity_so_far)
    assert [one["changes"] for one in plain["restless"]] == [one.changes for one in found.unstable]
    assert {len(one["labels"]) for one in plain["restless"]} == {4}


def test_p_values_are_corrected_for_all_groups_of_a_pair_together():
    found = full().pairs[0].groups
    assert {group.kind for group in found} >= {"class", "slice"}
    worst = min(found, key=lambda group: group.changed)
    assert worst.corrected == pytest.approx(min(1.0, len(found) * worst.changed))
    assert all(group.changed <= group.corrected <= 1 for group in found)


def test_undefined_and_infinite_values_are_null_and_the_text_is_strict_json():
    one = Predictions(ids=[1, 2], classes=["a", "b"], labels=[0, 0], truth=[0, 0])
    two = Predictions(ids=[1, 2], classes=["a", "b"], labels=[1, 0])
    for pair in ((one, one), (two, one)):
        text = json.dumps(to_json(compare(*pair, resamples=10)), allow_nan=False)
        assert json.loads(text)["pairs"][0]["metrics"]["win_loss_ratio"]["value"] is None


def test_without_truth_and_scores_the_shape_stays():
    plain = to_json(compare(*made.generations(truth=False, scores=False), resamples=10))
    assert plain["pairs"][0]["transitions"] is None
    assert plain["pairs"][0]["mcnemar"] is None
    assert plain["pairs"][0]["noise_floor"] is None
    assert list(plain["matrices"]) == ["consistency"]
    assert plain.keys() == to_json(full()).keys()
