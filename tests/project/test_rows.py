"""Rows of a project as files have them: kinds of columns, empty files, times that are none."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dynsnap import project as projects
from dynsnap.errors import DataError
from dynsnap.project._rows import cut, read_rows
from dynsnap.project._settings import DataSettings
from tests.cli.helpers import refused
from tests.messages import naming
from tests.project.made import WEEKS, make

COUNT = 60
TIMES = np.datetime64("2024-01-01T00:00:00.000000001", "ns") + np.arange(COUNT) * np.timedelta64(
    2, "h"
)


def rows_of(tmp_path, **columns):
    """What is read of a Parquet file, with some of its columns replaced."""
    plain = {
        "id": pa.array([f"i{at}" for at in range(COUNT)]),
        "time": pa.array(TIMES.astype("datetime64[us]")),
        "x": pa.array(np.arange(COUNT) / 7),
        "label": pa.array(["late" if at % 2 else "early" for at in range(COUNT)]),
    }
    pq.write_table(pa.table({**plain, **columns}), tmp_path / "rows.parquet")
    return read_rows(DataSettings(path=tmp_path / "rows.parquet"))


@pytest.mark.parametrize(
    "times",
    [
        pa.array(TIMES),
        pa.array(TIMES, pa.timestamp("ns", "America/New_York")),
        pa.array(TIMES.astype("datetime64[s]").astype(str).tolist()),
        pa.array([f"{one}+00:00" for one in TIMES.astype("datetime64[s]").astype(str)]),
        pa.array(TIMES.astype("datetime64[s]").astype(str).tolist()).cast(pa.string_view()),
    ],
    ids=["nanoseconds", "zoned", "text", "offset", "view"],
)
def test_every_kind_of_time_is_the_same_time(tmp_path, times):
    found = rows_of(tmp_path, time=times)
    wanted = TIMES.astype("datetime64[us]")
    assert (found.times.astype("datetime64[s]") == wanted.astype("datetime64[s]")).all()


@pytest.mark.parametrize(
    ("labels", "wanted"),
    [
        (pa.array([at % 2 for at in range(COUNT)]), {"0", "1"}),
        (pa.array(["a", "b"] * (COUNT // 2)).dictionary_encode(), {"a", "b"}),
        (pa.array(["a", None] * (COUNT // 2)), {"a", None}),
        (pa.array(["a", "b"] * (COUNT // 2)).cast(pa.string_view()), {"a", "b"}),
        (pa.array([1.0, 0.0] * (COUNT // 2)), {"1", "0"}),
        (pa.array([1.0, float("nan"), None] * (COUNT // 3)), {"1", None}),
    ],
)
def test_labels_are_texts_whole_numbers_or_categories(tmp_path, labels, wanted):
    assert set(rows_of(tmp_path, label=labels).labels) == wanted


@pytest.mark.parametrize(
    ("columns", "named"),
    [
        ({"time": pa.array([-(2**63)] * COUNT, pa.timestamp("us"))}, ("time", "years")),
        ({"time": pa.array([-(10**15)] * COUNT, pa.timestamp("ms"))}, ("time", "years")),
        ({"time": pa.array(["9999-12-31T23:00:00-05:00"] * COUNT)}, ("time", "years")),
        ({"time": pa.array(np.arange(COUNT))}, ("time", "int64")),
        ({"label": pa.array([[1]] * COUNT)}, ("label", "list")),
        ({"label": pa.array([0.5] * COUNT)}, ("label", "double")),
        ({"label": pa.array(["1", "1.0"] * (COUNT // 2))}, ("label", "'1'", "'1.0'")),
        ({"id": pa.array(np.arange(COUNT) / 2)}, ("id", "double")),
        ({"label": pa.array(["x" * 20_000] * COUNT)}, ("label", "20,000")),
        ({"label": pa.array(["a\x1b[31m"] * COUNT)}, ("label", "control")),
        ({"id": pa.array([[1]] * COUNT)}, ("id", "list")),
        ({"id": pa.array([f"\x07{at}" for at in range(COUNT)])}, ("id", "control")),
    ],
)
def test_columns_that_no_loop_can_use_are_refused_before_training(tmp_path, columns, named):
    made = make(tmp_path / "small", weeks=0)
    (made / "data").mkdir()
    with pytest.raises(DataError, match=naming(*named)):
        rows_of(made / "data", **columns)
    said = refused("retrain", made, "--until", WEEKS[0], "-q", code=3)
    assert re.search(naming(*named), said)
    assert not (made / "retrains").exists()


@pytest.mark.parametrize("name", ["a.csv", "week-9.csv"])
def test_a_file_with_a_head_and_no_rows_is_a_week_without_rows(tmp_path, name):
    made = make(tmp_path / "small", weeks=1)
    whole = read_rows(projects.read_project(made).data)
    (made / "data" / name).write_text("id,time,x,label\n")
    assert read_rows(projects.read_project(made).data).ids.tolist() == whole.ids.tolist()
    (made / "data/week-0.csv").unlink()
    assert "no rows" in refused("retrain", made, code=3)


def test_every_skipped_week_is_kept_and_years_of_them_take_no_time(tmp_path):
    made = make(tmp_path / "small", weeks=1)
    settings = projects.read_project(made).data
    rows = read_rows(settings)
    found = cut(rows, settings, until=projects.parse_until("2024-02-12"), after="2024-01-01")
    assert found.skipped == ("2024-01-08", "2024-01-15", "2024-01-22", "2024-01-29", "2024-02-05")
    late = cut(rows, settings, until=projects.parse_until("9999-01-01"), after="2024-01-01")
    assert late.period == "2024-01-01" and late.skipped[0] == "2024-01-08"


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00+05:00", "9999-12-31T23:00:00-05:00"])
def test_a_moment_that_utc_has_no_year_for_is_wrong_use(tmp_path, moment):
    said = refused("retrain", make(tmp_path / "small"), "--until", moment, "-q", code=2)
    assert moment in said


def test_places_without_rows_are_named(tmp_path):
    made = make(tmp_path / "small", weeks=0)
    assert re.search(naming("data", "path"), refused("retrain", made, code=3))


def test_whole_numbers_are_one_class_however_a_week_writes_them(tmp_path):
    for week, kind in enumerate((pa.int64(), pa.float64())):
        columns = {
            "id": pa.array(range(week * 10, week * 10 + 10)).cast(kind),
            "time": pa.array([f"2024-01-{1 + 7 * week:02}"] * 10),
            "label": pa.array([1, 0] * 5).cast(kind),
        }
        pq.write_table(pa.table(columns), tmp_path / f"week-{week}.parquet")
    found = read_rows(DataSettings(path=tmp_path))
    assert set(found.labels) == {"0", "1"}
    assert sorted(found.ids, key=int) == [str(number) for number in range(20)]


def test_rows_that_csv_cannot_hold_are_named(tmp_path):
    made = make(tmp_path / "small", weeks=0)
    (made / "data").mkdir()
    rows_of(made / "data", x=pa.array([[1.0]] * COUNT))
    said = refused("retrain", made, "--until", WEEKS[0], "-q", code=3)
    assert re.search(naming("'x'", "list", "rows_format"), said)


def test_a_dry_run_refuses_rows_that_a_retrain_refuses(tmp_path):
    made = make(tmp_path / "small", weeks=0)
    (made / "data").mkdir()
    (made / "data/one.csv").write_text("id,time,x,label\na,2024-01-01,1,late\n")
    for more in (("--dry-run",), ("-q",)):
        assert "1 rows" in refused("retrain", made, "--until", WEEKS[0], *more, code=3)
    assert not (made / "retrains").exists()
