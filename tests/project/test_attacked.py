"""Programs, clocks, hands and forged files that go wrong in ways that a loop must survive."""

import json
import re
import shutil

import numpy as np
import pytest

import dynsnap as dynsnap_api
from dynsnap import project as projects
from dynsnap.errors import FileError, TrainingError
from dynsnap.project._rows import held_out
from tests.cli.helpers import dynsnap, refused
from tests.messages import naming
from tests.project.made import (
    COMMANDS,
    NEVER,
    PERIODS,
    RULES,
    TRAIN,
    WEEKS,
    deployed,
    make,
    retrain,
    week,
)


@pytest.fixture
def second(tmp_path):
    """A project with one generation deployed, and rows of a second week."""
    made = make(tmp_path / "small")
    assert retrain(made, WEEKS[0]).decision == "first"
    return made


# --- programs -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ("open(evaluate, 'a').write('x')", "evaluate.csv"),
        ("open(train.replace('train.csv', 'truth.parquet'), 'w').close()", "truth.parquet"),
    ],
)
def test_a_program_that_changes_the_rows_is_refused_and_they_are_cut_anew(second, more, named):
    (second / "train.py").write_text(f"{TRAIN}\n{more}\n")
    with pytest.raises(TrainingError, match=naming(re.escape(named))):
        retrain(second, WEEKS[1])
    assert deployed(second) == 1
    (second / "train.py").write_text(TRAIN)
    assert retrain(second, WEEKS[1]).decision == "promoted"


def test_a_program_that_trains_on_in_place_changes_a_copy(second):
    (second / "train.py").write_text(f"{TRAIN}\nopen(deployed, 'w').write('99')\n")
    assert retrain(second, WEEKS[1]).decision == "promoted"
    registry = projects.FolderRegistry(second / "registry")
    assert [registry.checked(number)[0].number for number in registry.numbers()] == [1, 2]
    assert {each.name for each in registry.checked(2)[1].iterdir()} == {
        "edge.txt",
        "generation.json",
        "predictions.parquet",
    }


def test_a_deployed_generation_that_a_program_damages_is_not_scored(second):
    damage = "import os\nname = 'registry/generations/0001/edge.txt'\nos.chmod(name, 0o644)\n"
    (second / "train.py").write_text(f"{TRAIN}\n{damage}open(name, 'w').write('99')\n")
    with pytest.raises(FileError, match=naming("[Gg]eneration 1", "edge.txt")):
        retrain(second, WEEKS[1])


def test_a_program_does_not_change_the_rules_that_it_is_held_against(second):
    (second / "gate.toml").write_text(NEVER)
    easy = f"{TRAIN}\nopen('gate.toml', 'w').write({RULES!r})\n"
    (second / "train.py").write_text(easy)
    assert retrain(second, WEEKS[1]).decision == "kept"
    assert deployed(second) == 1


def test_a_damaged_generation_does_not_lock_the_project(second):
    retrain(second, WEEKS[1])
    file = second / "registry/generations/0002/edge.txt"
    file.chmod(0o644)
    file.write_text("99")
    refused("retrain", second, "--until", WEEKS[2], "-q", code=3)
    assert dynsnap("project", "rollback", second).exit_code == 0
    assert retrain(second, WEEKS[2]).decision == "promoted"


def test_a_damaged_generation_is_in_the_way_of_no_dry_run(second):
    assert retrain(second, WEEKS[1]).decision == "promoted"
    manifest = second / "registry/generations/0001/generation.json"
    manifest.unlink()
    manifest.write_text("{}")
    (second / "train.py").write_text("raise SystemExit(1)")
    refused("retrain", second, "--until", WEEKS[2], "-q", code=3)  # one that is not finished
    assert dynsnap("retrain", second, "--until", WEEKS[2], "--dry-run").exit_code == 0
    (second / "train.py").write_text(TRAIN)
    assert retrain(second, WEEKS[2]).decision == "promoted"


def test_what_a_failed_program_said_can_be_read(second):
    (second / "train.py").write_text("print('first'); raise SystemExit('last')")
    said = refused("retrain", second, "--until", WEEKS[1], "-q", code=3)
    log = second / "retrains" / PERIODS[1] / "work/train.log"
    assert str(log) in said and "last" in said
    assert log.read_text().split() == ["first", "last"] or "first" in log.read_text()


def test_predictions_that_cannot_be_compared_are_not_gone_on_with(second):
    wrong = TRAIN.replace("'late' if", "'of no row' if")
    (second / "train.py").write_text(wrong)
    assert "of no row" in refused("retrain", second, "--until", WEEKS[1], "-q", code=3)
    (second / "train.py").write_text(TRAIN)  # mended, the same command trains again
    assert retrain(second, WEEKS[1]).decision == "promoted"


# --- clocks and hands -----------------------------------------------------------------------


def test_a_clock_that_is_set_back_deploys_nothing_of_the_past(tmp_path):
    made = make(tmp_path / "small")
    retrain(made, WEEKS[2])
    for more in ((), ("--dry-run",)):
        said = refused("retrain", made, "--until", WEEKS[0], *more, code=3)
        assert re.search(naming(PERIODS[0], PERIODS[2], "--again"), said)
    assert deployed(made) == 1
    assert dynsnap("retrain", made, "--until", WEEKS[0], "--again", "-q").exit_code == 0
    assert deployed(made) == 2


def set_cadence(folder, cadence):
    config = folder / "project.toml"
    text = re.sub("cadence = .*\n", "", config.read_text())
    config.write_text(text.replace("[data]\n", f'[data]\ncadence = "{cadence}"\n'))


def test_a_month_is_not_the_week_that_begins_with_it(second):
    set_cadence(second, "month")  # January begins on a Monday, as the week that was retrained on
    found = retrain(second, "2024-02-01")
    assert (found.decision, found.plan.period, found.plan.end) == (
        "promoted",
        PERIODS[0],
        "2024-02-01",
    )
    assert found.plan.skipped == ()
    assert [each.plan.name for each in projects.results(second)] == [PERIODS[0], found.plan.name]
    ended = dynsnap("retrain", second, "--until", "2024-02-02")
    assert ended.exit_code == 0 and deployed(second) == 2
    set_cadence(second, "week")  # whose newest one was in that month
    for more in (("--dry-run",), ()):
        ended = dynsnap("retrain", second, "--until", "2024-02-02", *more)
        assert ended.exit_code == 0 and deployed(second) == 2
        assert re.search(naming("cadence", "2024-02-01", "--again"), ended.output)
    week(second / "data", 3)
    later = (second / "data/week-3.csv").read_text().replace("2024-01-", "2024-02-")
    (second / "data/week-3.csv").write_text(later)  # from the 22nd to the 28th
    found = retrain(second, "2024-02-26")
    assert (found.plan.period, found.plan.skipped) == (
        "2024-02-19",
        ("2024-01-29", "2024-02-05", "2024-02-12"),
    )


def without_ends(folder):
    """Records as a version wrote them that did not know the ends of periods."""
    for file in (*folder.glob("retrains/*/plan.json"), *folder.glob("retrains/*/result.json")):
        found = json.loads(file.read_text())
        del found.get("plan", found)["end"]
        file.write_text(json.dumps(found))


def test_a_record_without_the_end_of_its_period_is_of_the_present_cadence(second):
    without_ends(second)
    assert retrain(second, WEEKS[0]).measured.generation == 1
    assert retrain(second, WEEKS[1]).decision == "promoted"


def test_records_without_ends_that_begin_within_periods_are_of_another_cadence(second):
    retrain(second, WEEKS[1])
    without_ends(second)
    set_cadence(second, "month")  # both weeks are in January, and January was not retrained on
    found = retrain(second, "2024-02-01")
    assert (found.decision, found.plan.end) == ("promoted", "2024-02-01")
    assert retrain(second, "2024-02-01").plan == found.plan


def test_the_reason_of_a_move_by_hand_is_not_taken_for_a_retrain(second):
    retrain(second, WEEKS[1])
    assert dynsnap("project", "rollback", second, "--why", PERIODS[2]).exit_code == 0
    retrain(second, WEEKS[2])
    assert deployed(second) == 3


def test_a_finished_retrain_does_not_claim_what_was_moved_since(second):
    retrain(second, WEEKS[1])
    dynsnap("project", "rollback", second)
    ended = dynsnap("retrain", second, "--until", WEEKS[1])
    assert re.search("deployed generation.* 1 now", ended.stdout)
    found = json.loads(dynsnap("retrain", second, "--until", WEEKS[1], "--json", "-").stdout)
    assert (found["deployed"], found["generation"]) == (1, 2)


def test_json_is_written_also_where_there_is_nothing_to_do(second, tmp_path):
    found = json.loads(dynsnap("retrain", second, "--until", "2023-01-01", "--json", "-").stdout)
    assert (found["decision"], found["retrain"], found["deployed"]) == ("nothing", None, 1)
    out = tmp_path / "out.json"
    refused("retrain", second, "--until", WEEKS[1], "--dry-run", "--json", out, code=2)
    assert not out.exists()


def test_nothing_else_in_the_folder_of_retrains_is_touched(second):
    for name in ("notes", "2024", "2024-01-01 backup", ".hidden"):
        (second / "retrains" / name).mkdir()
        (second / "retrains" / name / "mine.txt").write_text("mine")
    (second / "retrains" / "2024-02-05").symlink_to(second / "data")
    assert retrain(second, WEEKS[1]).decision == "promoted"
    assert len(list((second / "retrains").rglob("mine.txt"))) == 4
    assert (second / "data/week-0.csv").exists()


def test_a_removed_retrain_is_made_anew(second):
    retrain(second, WEEKS[1])
    shutil.rmtree(second / "retrains" / PERIODS[1])
    found = retrain(second, WEEKS[1])
    assert (found.decision, found.measured.generation) == ("promoted", 3)
    assert deployed(second) == 3


def test_drift_is_from_the_week_of_the_generation_that_was_deployed_then(second):
    retrain(second, WEEKS[1])
    dynsnap("project", "rollback", second)
    retrain(second, WEEKS[2])
    rows = projects.history_findings(projects.read_project(second)).rows
    shares = [dict(row.shares) for row in rows]
    names = {*shares[0], *shares[2]}
    far = sum(abs(shares[0].get(name, 0) - shares[2].get(name, 0)) for name in names) / 2
    assert rows[2].drift == pytest.approx(far)


# --- forged files ---------------------------------------------------------------------------


def forge(path, **changes):
    found = json.loads(path.read_text())
    if "period" in changes:
        changes = {"plan": {**found["plan"], **changes}}
    path.write_text(json.dumps({**found, **changes}))


@pytest.mark.parametrize(
    ("file", "changes", "command"),
    [
        ("registry/deployed.json", {"generation": 1}, "status"),
        ("registry/deployed.json", {"moves": []}, "status"),
        ("registry/deployed.json", {"more": 1}, "history"),
        ("registry/generations/0001/generation.json", {"model": "../../../gate.toml"}, "promote"),
        ("registry/generations/0001/generation.json", {"number": 2}, "promote"),
        (f"retrains/{PERIODS[0]}/result.json", {"decision": "<script>"}, "history"),
        (f"retrains/{PERIODS[0]}/result.json", {"reason": "\x1b[31m"}, "history"),
        (f"retrains/{PERIODS[0]}/result.json", {"period": "2024-99-99"}, "history"),
    ],
)
def test_forged_files_get_one_line(second, file, changes, command):
    retrain(second, WEEKS[1])
    (second / file).chmod(0o644)
    forge(second / file, **changes)
    more = ["1"] if command == "promote" else []
    refused("project", command, second, *more, code=3)


def test_a_result_of_another_retrain_is_refused(second):
    retrain(second, WEEKS[1])
    places = [second / "retrains" / name / "result.json" for name in PERIODS[:2]]
    places[1].write_text(places[0].read_text())
    assert re.search(naming(PERIODS[0], PERIODS[1]), refused("project", "history", second, code=3))


@pytest.mark.parametrize("command", [("rollback",), ("promote", "1")], ids=lambda words: words[0])
def test_damage_to_the_history_is_not_in_the_way_of_a_move_by_hand(second, command):
    retrain(second, WEEKS[1])
    (second / "train.py").write_text("raise SystemExit(1)")
    refused("retrain", second, "--until", WEEKS[2], "-q", code=3)
    for name, file in ((PERIODS[0], "result.json"), (PERIODS[2], "plan.json")):
        (second / "retrains" / name / file).write_text("{")
    name, *more = command
    ended = dynsnap("project", name, second, *more)
    assert ended.exit_code == 0 and deployed(second) == 1
    assert re.search(naming("result.json", "plan.json"), ended.stderr.replace("\n", " "))
    for folder in (PERIODS[0], PERIODS[2]):
        assert folder in refused("retrain", second, "--until", WEEKS[2], "-q", code=3)
        shutil.rmtree(second / "retrains" / folder)
    (second / "train.py").write_text(TRAIN)
    assert retrain(second, WEEKS[2]).decision == "promoted"


@pytest.mark.parametrize(
    ("words", "file"),
    [
        (("retrain", "--until", WEEKS[1], "--json"), "project.toml"),
        (("retrain", "--until", WEEKS[1], "--json"), "gate.toml"),
        (("retrain", "--until", WEEKS[1], "--json"), "data/week-0.csv"),
        (("project", "history", "--html"), "registry/deployed.json"),
        (("project", "history", "--markdown"), f"retrains/{PERIODS[0]}/result.json"),
    ],
)
def test_no_output_replaces_what_a_project_holds(second, words, file):
    before = (second / file).read_bytes()
    assert file in refused(*words, second / file, second, code=2)
    assert (second / file).read_bytes() == before


def test_a_rule_about_rows_that_the_deployed_model_cannot_score_is_refused_before_training(
    tmp_path,
):
    alone = re.sub("predict = .*\n", "", COMMANDS)
    newest = (
        '[[rule]]\nmetric = "lost"\nat_most = 0.5\nslice = {column = "rows", value = "newest"}\n'
    )
    made = make(tmp_path / "small", retrain=alone, rules=newest)
    retrain(made, WEEKS[0])
    for more in (("--dry-run",), ("-q",)):
        said = refused("retrain", made, "--until", WEEKS[1], *more, code=2)
        assert re.search(naming("newest", "predict"), said)
    assert not (made / "retrains" / PERIODS[1]).exists()
    assert retrain(made, WEEKS[0], again=True).decision == "promoted"  # these it has scored


NEWEST = 'slice = {column = "rows", value = "newest"}'


def asking(about, count):
    """A rule about some of the inputs that asks for so many of them."""
    return f'[[rule]]\nmetric = "churn"\nat_most = 0.99\nmin_count = {count}\n{about}\n'


@pytest.mark.parametrize(
    ("about", "weeks"),
    [
        (NEWEST, (1,)),
        ("", (0, 1)),
        ('class = "late"', None),
        ('class = "*"', None),
        ('slice = {column = "rows", value = "*"}', None),
    ],
    ids=["newest", "all", "class", "classes", "slices"],
)
def test_a_rule_about_too_few_rows_is_refused_before_training_and_exactly_then(
    second, about, weeks
):
    rules = second / "gate.toml"
    rules.write_text(RULES + asking(about, 1000))
    for more in (("--dry-run",), ("-q",)):
        said = refused("retrain", second, "--until", WEEKS[1], *more, code=2)
        assert re.search(naming("churn", "1,000", "min_count", "cadence", "test_size"), said)
    count = int(re.search(r"([\d,]+) held-out", said)[1])
    if weeks:
        texts = [(second / f"data/week-{each}.csv").read_text() for each in weeks]
        ids = [line.partition(",")[0] for text in texts for line in text.splitlines()[1:]]
        assert count == held_out(np.array(ids, dtype=object), 0.4).sum()
    rules.write_text(RULES + asking(about, count + 1))
    refused("retrain", second, "--until", WEEKS[1], "-q", code=2)
    assert not (second / "retrains" / PERIODS[1]).exists()
    assert projects.FolderRegistry(second / "registry").numbers() == [1]
    rules.write_text(RULES + asking(about, count))  # the gate counts the same ones
    assert dynsnap("retrain", second, "--until", WEEKS[1], "--dry-run").exit_code == 0
    assert retrain(second, WEEKS[1]).decision == "promoted"


def test_the_gate_of_a_project_asks_for_its_own_count_of_all_rows_under_every_part(tmp_path):
    every = '[[rule]]\nmetric = "churn"\nat_most = 0.99\nclass = "*"\n'
    made = make(tmp_path / "small", rules=every)
    retrain(made, WEEKS[0])
    config = made / "project.toml"
    few = config.read_text()
    config.write_text(few.replace("min_count = 1", "min_count = 1000"))
    said = refused("retrain", made, "--until", WEEKS[1], "-q", code=2)
    count = int(re.search(r"([\d,]+) held-out", said)[1])
    config.write_text(few.replace("min_count = 1", f"min_count = {count}"))
    assert retrain(made, WEEKS[1]).measured.evaluated == count


def test_without_predict_the_gate_counts_what_the_deployed_model_has_scored(tmp_path):
    alone = re.sub("predict = .*\n", "", COMMANDS)
    made = make(tmp_path / "small", retrain=alone, rules=asking("", 1000))
    scored = retrain(made, WEEKS[0]).measured.evaluated
    said = refused("retrain", made, "--until", WEEKS[1], "-q", code=2)
    most = int(re.search(r"([\d,]+) held-out", said)[1])
    assert scored < most
    (made / "gate.toml").write_text(asking("", scored))
    assert retrain(made, WEEKS[1]).decision == "promoted"


def test_the_way_to_more_held_out_rows_is_one_that_leads_there(second):
    config, rules = second / "project.toml", second / "gate.toml"
    rules.write_text(asking(NEWEST, 1000))

    def count(share):
        text = re.sub("test_size = .*", f"test_size = {share}", config.read_text())
        config.write_text(text)
        said = refused("retrain", second, "--until", WEEKS[1], "-q", code=2)
        return int(re.search(r"([\d,]+) held-out", said)[1]), said

    now, said = count(0.4)
    assert "new project" in said
    assert count(0.8)[0] == now  # the others were trained on
    fewer, said = count(0.2)
    assert fewer < now
    assert re.search(naming("raise", r"0\.4"), said)
    config.write_text(config.read_text().replace("[data]", '[data]\ncadence = "2 weeks"'))
    assert count(0.4)[0] > now


def test_no_first_retrain_and_none_that_has_its_verdict_is_refused_for_few_rows(tmp_path):
    made = make(tmp_path / "small", rules=asking(NEWEST, 1000))
    assert retrain(made, WEEKS[0]).decision == "first"
    made = make(tmp_path / "killed", rules=asking(NEWEST, 1000))

    def killed(loop, folder, plan, measured, registry):
        registry.deploy(measured.generation, way="retrain", why=plan.name)
        raise KeyboardInterrupt  # after the pointer moved, and before the result is kept

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(projects.Retrain, "_decide", killed)
        with pytest.raises(KeyboardInterrupt):
            retrain(made, WEEKS[0])
    assert deployed(made) == 1
    assert not (made / "retrains" / PERIODS[0] / "result.json").exists()
    assert dynsnap("retrain", made, "--until", WEEKS[0], "--dry-run").exit_code == 0
    assert retrain(made, WEEKS[0]).decision == "first"


@pytest.mark.parametrize("gone", ["deployed.json", "."], ids=["pointer", "registry"])
def test_a_pointer_that_is_gone_is_no_first_retrain(second, gone):
    kept = second / "kept"
    shutil.copytree(second / "registry", kept)
    lost = second / "registry" / gone
    lost.unlink() if lost.is_file() else shutil.rmtree(lost)
    for words in (("retrain", "--until", WEEKS[1], "-q"), ("project", "status")):
        assert re.search(naming(PERIODS[0], "promote"), refused(*words, second, code=3))
    refused("retrain", "--until", WEEKS[1], "--dry-run", second, code=3)
    refused("project", "rollback", second, code=3)
    shutil.rmtree(second / "registry", ignore_errors=True)  # only root could overwrite its files
    shutil.copytree(kept, second / "registry")
    (second / "registry/deployed.json").unlink()
    assert dynsnap("project", "promote", second, "1").exit_code == 0
    assert retrain(second, WEEKS[1]).decision == "promoted"


def test_rows_that_a_generation_was_trained_on_are_not_scored_after_test_size_grew(second):
    config = second / "project.toml"
    config.write_text(config.read_text().replace("test_size = 0.4", "test_size = 0.8"))
    result = retrain(second, WEEKS[1])
    work = projects.FolderRegistry(second / "registry").checked(2)[1] / "predictions.parquet"
    ids = np.array(dynsnap_api.read(work).ids, dtype=object)
    assert len(ids) == result.measured.evaluated
    assert held_out(ids, 0.4).all()
    assert any("test_size" in note for note in result.plan.notes)
    retrain(second, WEEKS[2])  # what the second generation goes on from has seen the others
    third = projects.FolderRegistry(second / "registry").get(3)
    assert third.about["test_size"] == 0.4


def test_a_project_does_not_change_the_column_of_ids(second):
    for number in range(3):
        file = second / f"data/week-{number}.csv"
        head, *rows = file.read_text().splitlines()
        kept = [f"{row},k{row.partition(',')[0]}" for row in rows]
        file.write_text("\n".join([f"{head},key", *kept]) + "\n")
    config = second / "project.toml"
    config.write_text(config.read_text().replace("[data]", '[data]\nid = "key"'))
    for more in (("--dry-run",), ("-q",)):
        said = refused("retrain", second, "--until", WEEKS[1], *more, code=2)
        assert re.search(naming("'key'", "'id'"), said)
