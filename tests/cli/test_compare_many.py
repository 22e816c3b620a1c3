"""`dynsnap compare` over many Parquet files, by many workers."""

import json
import re

import pyarrow.parquet as pq
import pytest

from tests.cli.helpers import NEW, OLD, TWIN, dynsnap, refused
from tests.messages import naming

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """The example, each generation in four files."""
    folder = tmp_path_factory.mktemp("parts")
    for file in (OLD, NEW, TWIN):
        table = pq.read_table(file)
        name = file.rpartition("/")[2].removesuffix(".parquet")
        (folder / name).mkdir()
        for start in range(0, len(table), 200):
            pq.write_table(table.slice(start, 200), folder / name / f"part-{start}.parquet")
    return folder


def compared(tmp_path, *arguments):
    result = dynsnap("compare", *arguments, "-q", "--json", tmp_path / "found.json")
    assert result.exit_code == 0, result.output
    return json.loads((tmp_path / "found.json").read_text())


def test_directories_patterns_and_addresses_give_what_single_files_give(parts, tmp_path):
    names = ("--names", "old,new")
    expected = compared(tmp_path, OLD, NEW, *names)
    for place in ("{}", "{}/*.parquet", "file://{}"):
        places = [place.format(parts / name) for name in ("old", "new")]
        assert compared(tmp_path, *places, *names) == expected
    assert compared(tmp_path, *places)["generations"][0]["name"] == "old"


def test_worker_processes_give_the_same_and_flips_too(parts, tmp_path):
    places = [parts / "old", parts / "new", "--noise-floor", parts / "twin"]
    expected = compared(tmp_path, *places)
    flips = tmp_path / "flips.parquet"
    workers = ("--engine", "processes", "--workers", 2)
    assert compared(tmp_path, *places, *workers, "--flips", flips) == expected
    assert len(pq.read_table(flips)) > 0


def test_what_is_wrong_is_one_line(parts, tmp_path):
    (tmp_path / "empty").mkdir()
    said = refused("compare", parts / "old", tmp_path / "empty", code=3)
    assert re.search(naming("empty", "Parquet"), said)
    assert "matches no file" in refused("compare", parts / "old", "nothing/*.parquet", code=3)
    assert "s4://" in refused("compare", parts / "old", "s4://bucket/new", code=3)
    said = refused("compare", OLD, NEW, "--workers", 2, code=2)
    assert re.search(naming("serial", "workers"), said)
    said = refused("compare", OLD, NEW, "--engine", "processes", "--address", "here:1", code=2)
    assert re.search(naming("--address", "--engine ray"), said)
