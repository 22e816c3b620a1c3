"""docs/reproduction.md says what the results say, and nothing else."""

import importlib.util
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"


@pytest.fixture(scope="module")
def script():
    place = RESULTS / "make_reproduction.py"
    spec = importlib.util.spec_from_file_location("make_reproduction", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def results(tmp_path):
    """The paper's tables, and results of one study under another name."""
    shutil.copy(RESULTS / "paper.csv", tmp_path)
    return tmp_path


def section(page, title):
    return page.split(f"## {title}\n")[1].split("\n## ")[0]


def test_the_page_is_what_the_script_writes(script):
    page = (ROOT / "docs/reproduction.md").read_text(encoding="utf-8")
    assert page == script.page(RESULTS), "run: python results/make_reproduction.py"


def test_what_was_not_run_says_so_beside_the_paper(script, results):
    part = section(script.page(results), "CIFAR-10, ResNet-20")
    assert "| dynsnap-cyc | AVG | paper | 88.47 | 93.04 | 85.60 | 3.0 |" in part
    assert "| dynsnap-cyc | | ours | not run yet | | | |" in part
    assert "Table 4" in part
    assert "| singlebase | WAVG | paper | 6.60 | 5.38 | 80.79 |" in part


def test_a_study_is_picked_up_when_its_results_are_there(script, results):
    shutil.copytree(RESULTS / "20news", results / "cifar10-paper")
    page = script.page(results)
    part = section(page, "CIFAR-10, ResNet-20")
    assert "not run yet" not in part
    assert "| dynsnap-cyc | AVG | paper | 88.47 | 93.04 | 85.60 | 3.0 |" in part
    assert "| dynsnap-cyc | AVG | ours | 79.91 ± 0.2 | 90.39 ± 0.2 | 76.53 ± 0.3 | 3.0 |" in part
    assert "`results/cifar10-paper`, n = 3,571 test inputs, 3 replicates" in part
    claims = section(page, "The paper's claims, one by one")
    assert "* CIFAR-10, ResNet-20: dynsnap-cyc (3.0κ) against singlebase (1.0κ)" in claims
    assert "Holds here: CIFAR-10, ResNet-20." in claims
    assert "**beta**, `cifar10-paper`" in section(
        page, "Figure 2: m, β, N and the window, and the two ablations"
    )


def test_the_paper_s_study_of_cifar_10_was_run(script):
    part = section(script.page(RESULTS), "CIFAR-10, ResNet-20")
    assert "not run yet" not in part
    assert "n = 4,500 test inputs, 1 replicate of each method, 7 of singlebase (34 rounds" in part
    lines = [line for line in part.splitlines() if line.startswith("| singlebase | all |")]
    assert [line.count("±") for line in lines[:2]] == [0, 3]  # the paper's, and ours
    (line,) = (one for one in part.splitlines() if one.startswith("| dynsnap-cyc | AVG | ours | 8"))
    assert "±" not in line  # of one replicate nothing is said


STUDIES = ["cifar10-paper", "20news", "20news-sensitivity", "digits"]


@pytest.mark.parametrize("name", STUDIES)
def test_results_were_run_from_the_study_that_is_shipped(name):
    shipped = ROOT / f"src/dynsnap/studies/{name}.toml"
    assert (RESULTS / name / "study.toml").read_text() == shipped.read_text()


@pytest.mark.parametrize("name", STUDIES)
def test_results_are_small_and_complete(name):
    files = [path for path in (RESULTS / name).rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 10_000_000
    assert (RESULTS / name / "about.json").exists()
    assert list((RESULTS / name / "predictions").glob("dynsnap-cyc-average-g3-r0.parquet"))
