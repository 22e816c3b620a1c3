"""What a study that varies its windows says of them: planned, run, reported, and on its page."""

import itertools
import sys

import pytest

from tests.cli.studies import TINY, dynsnap

VARIED = (
    TINY
    + """
[methods.singlebase]
replicates = 2

[[sweep]]
over = "snapshots"
values = [1, 2]
window = 1
members = "snapshots"
beta = 1.0

[[ablation]]
name = "no-schedule"
schedule = "constant"
epochs = 4
"""
)
OFTEN = "1 replicate (2 of singlebase)"
WINDOWS = "windows of 1 epoch"
ROUNDS = (
    "A round of dynsnap-cyc has 2 windows of 4 epochs. Others: no-schedule: the best 2 of 4 epochs "
    "at a constant rate."
)


@pytest.fixture(scope="module")
def varied(tmp_path_factory):
    folder = tmp_path_factory.mktemp("varied")
    (folder / "varied.toml").write_text(VARIED)
    ended = dynsnap("run", folder / "varied.toml", "--out", folder / "run")
    assert ended.exit_code == 0, ended.stderr
    return folder, " ".join(ended.stdout.split())


def points(text):
    """The points of the sweep in a terminal's text, each with its cost."""
    _, _, rest = text.partition(f"Sweep: snapshots, {WINDOWS} ")
    words = rest.partition("Reading it")[0].split()
    return [
        (word, after)
        for word, after in itertools.pairwise(words)
        if word in ("1", "2") and "." in after
    ]


def test_the_plan_tells_costs_and_replicates(varied):
    folder, _ = varied
    said = " ".join(dynsnap("run", folder / "varied.toml", "--plan").stdout.split())
    assert f"2 generations, {OFTEN}." in said
    assert "snapshots=1 1 1 1 1 0.125 1 cyclic" in said


def test_a_run_and_its_report_tell_windows_costs_and_replicates(varied):
    folder, said = varied
    reported = dynsnap("report", folder / "run", "--html", folder / "page.html").stdout
    for text in (said, " ".join(reported.split())):
        assert points(text) == [("1", "0.125"), ("2", "0.25")]
        assert ROUNDS in text
    assert f"of training. {OFTEN}." in said


def test_the_page_tells_windows_costs_and_replicates(varied):
    folder, _ = varied
    assert not dynsnap("report", folder / "run", "--html", folder / "page.html", "-q").stdout
    page = (folder / "page.html").read_text()
    assert f"Sweep over snapshots, {WINDOWS}" in page
    assert "1 (0.125κ)" in page and "2 (0.25κ)" in page
    assert ROUNDS in page
    assert ">2 × 4<" in page and ">2 best of 4<" in page  # in the table of ablations
    assert OFTEN in page
    # The tables of sweeps and ablations, the frontier, and every metric of every method.
    assert page.count(">0.125<") >= 1 and page.count(">0.5<") >= 3


def test_stored_rounds_tell_what_they_cost(varied):
    folder, _ = varied
    said = dynsnap("runs", folder / "run").stdout
    assert "0.25" in said and "0.5" in said


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "mlp"', 'name = "mpl"', "There is no model 'mpl'"),
        ("hidden = [8]", "hiden = [8]", '`hiden`. Did you mean "hidden"?'),
        ("batch_size", "batchsize", "[training] has no setting `batchsize`"),
        ("replicates = 2", "replicates = 0", "`replicates` of singlebase must be at least 1"),
        ("values = [1, 2]", "values = [1, 2, 1]", "1 is more than once among the `values`"),
    ],
)
def test_a_plan_is_refused_where_the_study_would_be(tmp_path, old, new, message):
    file = tmp_path / "wrong.toml"
    file.write_text(VARIED.replace(old, new))
    ended = dynsnap("run", file, "--plan")
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert message in ended.stderr


def test_what_is_not_installed_does_not_hide_a_plan(varied, monkeypatch):
    folder, _ = varied
    monkeypatch.setitem(sys.modules, "dynsnap.train", None)
    ended = dynsnap("run", folder / "varied.toml", "--plan")
    assert ended.exit_code == 0
    said = " ".join(ended.stdout.split())
    assert "The model cannot be made yet: This needs " in said
    assert "pip install 'dynsnap[torch]'" in said
