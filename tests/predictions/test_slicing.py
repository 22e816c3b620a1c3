"""Slices that a reader chooses: columns, bins, periods, and two crossed."""

import datetime
from collections import Counter

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dynsnap.comparison import compare, to_json
from dynsnap.errors import FileError, InputError, PlanError
from dynsnap.gate import Rule, judge
from dynsnap.predictions import Predictions, read, stream
from dynsnap.predictions._slicing import PERIODS, SliceSpec, Slicing, quantiles
from tests.cli.helpers import dynsnap, refused
from tests.messages import naming

values = st.lists(
    st.one_of(st.floats(width=32), st.sampled_from([0.0, -0.0, 1.0, 2.0, np.inf])), max_size=60
)


def slow_quantiles(numbers, bins):
    """The same by sorting."""
    known = sorted(each + 0.0 for each in numbers if not np.isnan(each))
    ends = {known[-(-i * len(known) // bins) - 1] for i in range(1, bins)} if known else set()
    return sorted(end for end in ends if end < known[-1])


@given(values, st.integers(2, 12), st.integers(1, 20))
def test_quantiles_are_those_of_the_sorted_values(numbers, bins, step):
    array = np.array(numbers, np.float64)
    batches = [array[first : first + step] for first in range(0, len(array), step)]
    assert quantiles(lambda: batches, bins).tolist() == slow_quantiles(numbers, bins)


@given(st.lists(st.integers(0, 1000), min_size=40, max_size=80, unique=True), st.integers(2, 8))
def test_bins_of_distinct_values_are_of_one_size(numbers, bins):
    made = predictions(len(numbers), age=numbers)
    (column,) = Slicing.of([f"age:{bins}"]).applied(made).slices.values()
    sizes = np.bincount(column.codes)
    assert len(sizes) == bins == len(column.values)
    assert max(sizes) - min(sizes) <= 1


def predictions(rows, *, seed=0, **slices):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, rows)
    return Predictions(
        ids=range(rows),
        classes=["a", "b"],
        labels=np.where(rng.random(rows) < 0.8, truth, 1 - truth),
        truth=truth,
        slices=slices,
    )


ROWS = 400
CHOSEN = ["region", "age:5", "amount:3", "time:month", "region*age:4", "time:week*region"]


@pytest.fixture(scope="module")
def columns():
    rng = np.random.default_rng(0)
    start = datetime.datetime(2026, 1, 28, 12)
    age = rng.normal(40, 12, ROWS).round(1)
    return {
        "region": rng.choice(["eu", "us", "asia"], ROWS).tolist(),
        "age": [None if place % 31 == 0 else value for place, value in enumerate(age.tolist())],
        "amount": rng.lognormal(3, 1, ROWS).astype(np.float32),
        "time": [start + datetime.timedelta(hours=7 * int(h)) for h in rng.integers(0, 99, ROWS)],
        "one": ["same"] * ROWS,
        "name": [f"n{place}" for place in range(ROWS)],
    }


@pytest.fixture(scope="module")
def files(columns, tmp_path_factory):
    """Two generations, the second in another order, in each of three formats."""
    folder = tmp_path_factory.mktemp("slices")
    made = {}
    order = np.random.default_rng(1).permutation(ROWS)
    for place, name in enumerate(("old", "new")):
        said = predictions(ROWS, seed=place)
        truth = predictions(ROWS).truth
        table = pa.table(
            {
                "id": np.arange(ROWS),
                "truth": said.names_of(truth).tolist(),
                "label": said.names_of(said.labels).tolist(),
                **columns,
            }
        )
        table = table.take(order) if place else table
        pq.write_table(table, folder / f"{name}.parquet", row_group_size=50)
        pyarrow.csv.write_csv(table, folder / f"{name}.csv")
        pa.feather.write_feather(table, folder / f"{name}.arrow")
        made[name] = table
    return folder


def groups(found):
    """What was counted in each group of a slice."""
    return {
        (group.column, group.name): (group.inputs, group.transitions, group.corrected)
        for group in found.pairs[0].groups
        if group.kind == "slice"
    }


def test_files_and_memory_have_the_same_slices(columns, files):

    expected = groups(compare(files / "old.parquet", files / "new.parquet", slices=CHOSEN))
    assert len({column for column, _ in expected}) == len(CHOSEN)
    for ending in ("csv", "arrow"):
        found = compare(files / f"old.{ending}", files / f"new.{ending}", slices=CHOSEN)
        assert groups(found) == expected, ending
    with stream([files / "old.parquet"], slices=CHOSEN, rows_at_once=37) as small:
        blocks = [block[0] for block in small]
    whole = read(files / "old.parquet", slices=CHOSEN)
    for name in CHOSEN:
        codes = np.concatenate([block.slices[name].codes for block in blocks])
        assert codes.tolist() == whole.slices[name].codes.tolist()
        assert blocks[0].slices[name].values == whole.slices[name].values
    raw = {name: columns[name] for name in ("region", "age", "amount", "time")}
    held = [predictions(ROWS, seed=0, **raw), files / "new.parquet"]
    assert groups(compare(*held, slices=CHOSEN)) == expected


def test_groups_have_the_inputs_that_their_names_say(columns, files):
    found = groups(compare(files / "old.parquet", files / "new.parquet", slices=CHOSEN))
    sizes = {key: inputs for key, (inputs, _, _) in found.items()}
    regions = Counter(columns["region"])
    assert {name: sizes["region", name] for name in regions} == regions
    months = Counter(f"{each:%Y-%m}" for each in columns["time"])
    assert {name: sizes["time:month", name] for name in months} == months
    weeks = Counter(
        f"{each.isocalendar().year}-W{each.isocalendar().week:02d} × {region}"
        for each, region in zip(columns["time"], columns["region"], strict=True)
    )
    assert {name: sizes["time:week*region", name] for name in weeks} == weeks
    assert sum(size for (column, _), size in sizes.items() if column == "age:5") == ROWS
    assert sizes["age:5", "(none)"] == sum(each is None for each in columns["age"])


def test_all_groups_that_were_looked_at_are_corrected_together(files):
    old, new = files / "old.parquet", files / "new.parquet"
    few = compare(old, new, slices=["region"])
    many = compare(old, new, slices=["region", "age:20"])
    alone = {group.key: group.corrected for group in few.pairs[0].groups}
    for group in many.pairs[0].groups:
        if group.key in alone:
            assert group.corrected >= alone[group.key]
    tested = [group.changed for group in few.pairs[0].groups if group.changed is not None]
    least = min(few.pairs[0].groups, key=lambda group: group.changed)
    assert least.corrected == pytest.approx(min(1, least.changed * len(tested)))


def test_a_constant_column_is_no_slice_but_rules_may_name_it(files):
    old, new = files / "old.parquet", files / "new.parquet"
    found = compare(old, new, slices=["region", "one", "one*region"])
    written = {group["column"] for group in to_json(found)["pairs"][0]["groups"]}
    assert "one" not in written
    assert {"region", "one*region"} <= written
    assert any("one" in note.split(": ")[-1] for note in found.notes)
    rule = Rule(metric="lost", at_most=1.0, slice=("one", "same"), allow_odd=True)
    (outcome,) = judge(found, rule).outcomes
    assert outcome.inputs == ROWS
    with_it = {group.key: group.corrected for group in found.pairs[0].groups}
    without = compare(old, new, slices=["region", "one*region"])
    assert {group.key: group.corrected for group in without.pairs[0].groups} == {
        key: value for key, value in with_it.items() if key[1] != "one"
    }


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", ["column"]),
        ("a*b*c", [r"a\*b\*c"]),
        ("a*", [r"a\*"]),
        ("age*age:3", ["itself"]),
        ("age:1", ["1", "2", "100"]),
        ("age:1000", ["1000", "100"]),
    ],
)
def test_a_slice_that_makes_no_sense_is_refused_before_a_file_is_read(text, names):
    with pytest.raises(PlanError, match=naming(*names)):
        SliceSpec.parse(text)
    assert refused("compare", "a.csv", "b.csv", "--slice", text, code=2)


@pytest.mark.parametrize(
    ("chosen", "names"),
    [
        ("regoin", ["regoin", '"region"']),
        ("region:3", ['"region"', "numbers"]),
        ("region:day", ['"region"', "times"]),
        ("time:3", ['"time"', "time:day"]),
        ("name*time:day", ['"?name|groups"?']),
    ],
)
def test_a_column_that_does_not_fit_is_named(files, chosen, names):
    message = refused(
        "compare", files / "old.parquet", files / "new.parquet", "--slice", chosen, code=3
    )
    with pytest.raises((InputError, FileError), match=naming(*names)):
        raise InputError(message)


def test_a_column_may_be_called_like_a_slice():
    made = predictions(4, **{"a:10": ["x", "y", "x", "y"], "a*b": ["p", "p", "q", "q"]})
    found = compare(made, made, slices=["a:10", "a*b"])
    assert {key[0]: None for key in groups(found)} == {"a:10": None, "a*b": None}


def test_the_command_has_the_same_slices(files, tmp_path):
    target = tmp_path / "found.json"
    options = [part for name in CHOSEN for part in ("--slice", name)]
    old, new = files / "old.parquet", files / "new.parquet"
    result = dynsnap("compare", old, new, *options, "--json", target, "--limit", 0)
    assert result.exit_code == 0
    assert all(name in result.stdout for name in CHOSEN)
    rules = ["--at-most", "lost=1", "--allow-odd-rules"]
    assert dynsnap("gate", old, new, *options, *rules).exit_code == 0
    assert set(PERIODS) == {"day", "week", "month"}


@given(
    st.lists(st.sampled_from([-np.inf, np.inf, np.nan, -1.5, 0.0, 2.0]), min_size=2, max_size=30),
    st.integers(2, 20),
)
def test_infinite_numbers_are_the_ends_of_bins_like_others(numbers, bins):
    assume(not np.isnan(numbers).all())  # a column without any number is no slice
    found = read(
        {"id": range(len(numbers)), "label": ["a"] * len(numbers), "x": numbers},
        slices=[f"x:{bins}"],
    ).slices[f"x:{bins}"]
    ends = slow_quantiles(numbers, bins)
    expected = np.where(np.isnan(numbers), len(ends) + 1, np.searchsorted(ends, numbers))
    assert found.codes.tolist() == expected.tolist()
    assert all(("inf" in found.values[0]) == np.isinf(end) for end in ends[:1])


@pytest.mark.parametrize("written", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_times_have_gaps_in_every_kind_of_file(written, tmp_path):
    frame = pd.DataFrame({"id": range(4), "label": ["a"] * 4})
    frame["seen"] = pd.to_datetime(["2026-01-31 10:00", None, "2026-02-01 00:00", None])
    file = tmp_path / f"old{written}"
    if written == ".parquet":
        frame.to_parquet(file)
    elif written == ".jsonl":
        frame.to_json(file, orient="records", lines=True, date_format="iso")
    else:
        frame.to_csv(file, index=False, sep="\t" if written == ".tsv" else ",")
    found = read(file, slices=["seen:month"]).slices["seen:month"]
    assert found.values == ("2026-01", "2026-02", "(none)")
    assert found.codes.tolist() == [0, 2, 1, 2]
