"""`dynsnap watch` through the real command: logs by day and with times, slices, bad input."""

import json
import re

import pytest

from dynsnap.watch import ALL, Counts, judge
from tests.cli.helpers import dynsnap, refused, table
from tests.messages import naming

DAYS = [f"2024-05-{day:02}" for day in range(1, 13)]


def rows(differing, *, times=True, slices=True, count=40):
    """Rows of each day; so many of the candidate's labels differ, of region north alone."""
    old, new = {}, {}
    for at, day in enumerate(DAYS):
        old[day], new[day] = [], []
        for row in range(count):
            region = "north" if row % 2 else "south"
            more = [f"{day}T{row % 24:02}:00:00"] if times else []
            more += [region] if slices else []
            other = row % 2 == 1 and row // 2 < differing(at)
            old[day].append(",".join([f"{day}-{row}", "a", *more]))
            new[day].append(",".join([f"{day}-{row}", "b" if other else "a", *more]))
    return old, new


def head(times=True, slices=True):
    return ",".join(["id", "label", *(["time"] if times else []), *(["region"] if slices else [])])


def logs(folder, differing, **more):
    """Two files with times."""
    made = rows(differing, **more)
    return [
        table(folder / f"{name}.csv", [line for day in DAYS for line in each[day]], head())
        for name, each in zip(("deployed", "candidate"), made, strict=True)
    ]


def test_a_quiet_log_has_no_alarm_and_a_change_is_found(tmp_path):
    quiet = logs(tmp_path, lambda _: 1)
    ended = dynsnap("watch", *quiet, "--at-most", "0.05", "--slice", "region", "--json", "-")
    assert ended.exit_code == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert not found["alarm"]
    whole = found["parts"][0]
    assert [day["day"] for day in whole["days"]] == DAYS
    assert whole["rows"] == 480 and whole["differing"] == 12
    loud = logs(tmp_path, lambda at: 1 if at < 6 else 10)
    page = tmp_path / "page.html"
    ended = dynsnap(
        "watch", *loud, "--at-most", "0.05", "--slice", "region", "--json", "-", "--html", page
    )
    assert ended.exit_code == 1
    parts = {part["value"]: part for part in json.loads(ended.stdout)["parts"]}
    assert DAYS[6] <= parts[None]["alarm"] <= DAYS[9]
    assert DAYS[6] <= parts["north"]["alarm"] <= DAYS[9]
    assert parts["south"]["alarm"] is None
    assert parts[None]["alpha"] == pytest.approx(0.025)
    assert parts["north"]["alpha"] == pytest.approx(0.025 / 2 / 2)
    assert "ALARM" in page.read_text()


def test_a_file_for_each_day_is_the_same_as_times(tmp_path):
    def change(at):
        return 1 if at < 6 else 10

    one = dynsnap("watch", *logs(tmp_path, change), "--at-most", "0.05", "--json", "-")
    made = rows(change, times=False, slices=False)
    folders = []
    for name, each in zip(("old", "new"), made, strict=True):
        folders.append(tmp_path / name)
        folders[-1].mkdir()
        for day in DAYS:
            table(folders[-1] / f"log-{day}.csv", each[day], head(times=False, slices=False))
    many = dynsnap("watch", *folders, "--at-most", "0.05", "--json", "-")
    assert (one.exit_code, many.exit_code) == (1, 1)
    assert json.loads(one.stdout)["parts"] == json.loads(many.stdout)["parts"]
    (folders[1] / f"log-{DAYS[3]}.csv").unlink()
    fewer = json.loads(dynsnap("watch", *folders, "--at-most", "0.05", "--json", "-").stdout)
    assert len(fewer["parts"][0]["days"]) == len(DAYS) - 1
    assert re.search(naming(DAYS[3]), " ".join(fewer["notes"]))


@pytest.mark.parametrize("name", ["old", "new"])
def test_a_file_of_a_day_without_rows_is_a_day_without_rows(tmp_path, name):
    folders = [tmp_path / "old", tmp_path / "new"]
    for folder in folders:
        folder.mkdir()
        for day in DAYS[:3]:
            table(folder / f"{day}.csv", ["1,a", "2,b"], "id,label")
    table(tmp_path / name / f"{DAYS[1]}.csv", [], "id,label")
    found = json.loads(dynsnap("watch", *folders, "--at-most", "0.05", "--json", "-").stdout)
    assert [day["day"] for day in found["parts"][0]["days"]] == [DAYS[0], DAYS[2]]
    assert re.search(naming(DAYS[1]), " ".join(found["notes"]))


def test_a_slice_that_is_named_twice_is_counted_once(tmp_path):
    files = logs(tmp_path, lambda _: 2)
    once, twice = (
        dynsnap("watch", *files, "--at-most", "0.05", *slices, "--json", "-").stdout
        for slices in (["--slice", "region"], ["--slice", "region", "--slice", "region"])
    )
    assert json.loads(once) == json.loads(twice)


def test_reports_show_days_and_alarms(tmp_path):
    loud = logs(tmp_path, lambda at: 10)
    junit = tmp_path / "junit.xml"
    ended = dynsnap("watch", *loud, "--at-most", "0.05", "--junit", junit)
    assert ended.exit_code == 1
    assert "ALARM" in ended.stdout and DAYS[-1] in ended.stdout
    assert 'failures="1"' in junit.read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "named"),
    [
        ((), 2, ("--at-most",)),
        (("--at-most", "0"), 2, ("0",)),
        (("--at-most", "nan"), 2, ("nan",)),
        (("--at-most", "0.05", "--time", "when"), 3, ("'when'", "--time")),
        (("--at-most", "0.05", "--slice", "nowhere"), 3, ("nowhere",)),
        (("--at-most", "0.05", "--false-alarms", "1"), 2, ("1",)),
    ],
)
def test_wrong_use_gets_one_line(tmp_path, arguments, code, named):
    files = logs(tmp_path, lambda _: 1)
    result = dynsnap("watch", *files, *arguments)
    assert result.exit_code in (2, 3), result.output
    assert result.exit_code == code or "nowhere" in arguments or "when" in arguments
    assert re.search(naming(*named), result.stderr)
    assert result.stderr.count("\n") == 1


def test_logs_without_rows_in_common_are_refused(tmp_path):
    first, second = logs(tmp_path, lambda _: 1)
    second.write_text(second.read_text().replace("2024-05", "2024-06"))
    refused("watch", first, second, "--at-most", "0.05", code=3)
    refused("watch", tmp_path / "none.csv", second, "--at-most", "0.05", code=3)


def test_a_log_beside_itself_is_refused(tmp_path):
    first, second = logs(tmp_path, lambda _: 1)
    second.unlink()
    second.symlink_to(first)
    assert str(first) in refused("watch", first, second, "--at-most", "0.05", code=2)


def test_days_without_rows_are_stated_and_seven_days_are_those_of_the_calendar():
    counts = Counts()
    for day, differing in (("2024-05-01", 50), ("2024-05-02", 0), ("2024-05-11", 1)):
        counts.add(ALL, day, 100, differing)
    found = judge(counts, limit=0.4)
    assert [day.rolling for day in found.whole.days] == [0.5, 0.25, 0.01]
    assert found.whole.days[-1].mean == pytest.approx(51 / 300)
    (note,) = found.notes
    assert re.search(naming("8 days", "2024-05-03"), note)


def test_rows_without_a_time_are_left_out_and_stated(tmp_path):
    files = logs(tmp_path, lambda _: 1)
    files[0].write_text(re.sub(r"2024-05-03T\d\d:00:00", "", files[0].read_text()))
    found = json.loads(dynsnap("watch", *files, "--at-most", "0.05", "--json", "-").stdout)
    assert [day["day"] for day in found["parts"][0]["days"]] == [*DAYS[:2], *DAYS[3:]]
    assert re.search(naming("40 rows", "no time"), " ".join(found["notes"]))


def test_a_file_of_a_day_that_no_calendar_has_is_named(tmp_path):
    places = [tmp_path / "old", tmp_path / "new"]
    for place in places:
        place.mkdir()
        for day in (DAYS[0], "2024-13-45"):
            table(place / f"{day}.csv", ["1,a"], "id,label")
    assert "2024-13-45" in refused("watch", *places, "--at-most", "0.05", code=3)


def test_rows_that_are_added_to_an_earlier_day_count_there(tmp_path):
    files = logs(tmp_path, lambda _: 1)
    before = json.loads(dynsnap("watch", *files, "--at-most", "0.05", "--json", "-").stdout)
    for file, label in zip(files, "ab", strict=True):
        late = [f"late-{row},{label},{DAYS[2]}T12:00:00,north" for row in range(60)]
        file.write_text(file.read_text() + "\n".join(late) + "\n")
    ended = dynsnap("watch", *files, "--at-most", "0.05", "--json", "-")
    after = json.loads(ended.stdout)
    assert (before["alarm"], ended.exit_code) == (False, 1)
    assert after["parts"][0]["alarm"] == DAYS[2]
    assert after["parts"][0]["days"][:2] == before["parts"][0]["days"][:2]
