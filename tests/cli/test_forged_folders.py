"""Run folders and published results of strangers: what they say is checked before it is shown."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from dynsnap.cli._report import FILE, Training
from dynsnap.cli._stored import read_about
from dynsnap.errors import FileError
from tests.cli.helpers import dynsnap, refused
from tests.cli.studies import TINY

RESULTS = Path(__file__).parents[2] / "results"
PUBLISHED = sorted(path.parent for path in RESULTS.glob("*/about.json"))


@pytest.mark.parametrize("folder", PUBLISHED, ids=lambda folder: folder.name)
def test_what_was_published_is_read(folder):
    assert read_about(folder)["study"]
    if (folder / FILE).exists():
        assert Training.read(folder / FILE).curves


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"study": ' * 100_000,
        '{"rounds": ' + "9" * 5_000 + "}",
        '{"study": "a", "study": "b"}',
        '{"training_seconds": NaN}',
        '{"training_rows": {"a": []}}',
        '{"training_rows": {"a": ["x"]}}',
        '{"generations": 3}',
        '{"environment": {"device": {"a": "b"}}}',
        '{"factory": "os:system"}',
        "[]",
        "",
        "\ud800".encode("utf-8", "surrogatepass"),
    ],
)
def test_what_a_run_says_about_itself_is_checked(tmp_path, text):
    (tmp_path / "about.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(FileError, match="damaged"):
        read_about(tmp_path)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A small run, and what is published of it."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "study.toml").write_text(TINY)
    for command in (
        ["run", folder / "study.toml", "--out", folder / "run", "-q"],
        ["publish", folder / "run", folder / "published"],
    ):
        ended = dynsnap(*command)
        assert ended.exit_code == 0, ended.stderr
    return folder


def test_a_forged_about_file_is_left_out_of_a_report_and_named(finished, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(finished / "run", run)
    (run / "about.json").write_text("[" * 100_000)
    for command in (["report", run], ["size", run]):
        ended = dynsnap(*command)
        assert ended.exit_code == 0, ended.stderr
        assert "about.json" in "".join(ended.stdout.split())


def with_header(path, change):
    arrays = dict(np.load(path))
    header = json.loads(arrays["header"].tobytes())
    change(header)
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    np.savez_compressed(path, **arrays)


@pytest.mark.parametrize(
    "change",
    [
        lambda header: header.update(extra=1),
        lambda header: header["curves"][0].update(accuracy=[]),
        lambda header: header["curves"][0].update(epochs=[10**9] * 2),
        lambda header: header["curves"][0].update(snapshots=[0.5]),
        lambda header: header["curves"][0].update(threshold="x"),
        lambda header: header["curves"][0].update(method={"a": 1}),
        lambda header: header["audits"][0].update(effects=[]),
        lambda header: header["audits"][0].update(order=0),
        lambda header: header["audits"][0]["bounds"].append({"name": "T9", "claim": "x"}),
        lambda header: header.pop("audits"),
    ],
)
def test_what_was_seen_of_the_training_is_checked(finished, tmp_path, change):
    file = tmp_path / FILE
    shutil.copy(finished / "published" / FILE, file)
    assert Training.read(file).audits
    with_header(file, change)
    with pytest.raises(FileError, match="damaged"):
        Training.read(file)


@pytest.mark.parametrize(
    "side", [np.zeros((5, 5)), np.array(["x"] * 5), np.full(5, np.nan), np.zeros(5, np.int8)]
)
def test_the_sides_of_theorems_are_numbers(finished, tmp_path, side):
    arrays = dict(np.load(finished / "published" / FILE))
    np.savez(tmp_path / FILE, **{**arrays, "lefts0-0": side})
    with pytest.raises(FileError, match="damaged"):
        Training.read(tmp_path / FILE)


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("members = 2", "members = 1_000_000_000", "size"),
        ("members = 2", "members = 9_999_999", "`members`"),
        ("epochs = 8", "epochs = 1_000_000_000_000", "epochs"),
        ("resamples = 30", "resamples = 1_000_000_000", "resamples"),
        ('name = "tiny"', 'name = "tiny"\nreplicates = 1_000_000_000', "`replicates`"),
    ],
)
def test_a_study_of_more_rounds_than_can_be_listed_is_refused(tmp_path, old, new, named):
    file = tmp_path / "wild.toml"
    file.write_text(TINY.replace(old, new))
    assert named in refused("run", file, "--plan", code=2)
