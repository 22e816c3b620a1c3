import json
import pickle
import re

import numpy as np
import pytest

from tests.cli.helpers import EXAMPLES, dynsnap, refused
from tests.messages import naming

OLD, NEW = EXAMPLES / "old-members.npz", EXAMPLES / "new-members.npz"


@pytest.fixture
def save(tmp_path):
    def saved(name, **arrays):
        np.savez(tmp_path / name, **arrays)
        return tmp_path / name

    return saved


def test_the_theorems_hold_on_real_members_and_the_report_is_honest():
    result = dynsnap("audit", OLD, NEW)
    assert result.exit_code == 0
    assert result.stdout.startswith("old-members → new-members\n5 members, 797 inputs, 10 classes")
    for told in ("T1 ", "T2 ", "T3 ", "T4 ", "T5", "best member", "member 4", "worst input"):
        assert told in result.stdout
    assert re.search(naming("ensemble", "best member"), result.stdout)
    assert "\x1b" not in result.stdout


def test_json_holds_both_sides_and_the_worst_input(tmp_path):
    result = dynsnap("audit", OLD, NEW, "--json", tmp_path / "out.json", "-q")
    assert (result.exit_code, result.stdout) == (0, "")
    found = json.loads((tmp_path / "out.json").read_text())
    assert found["schema"] == "dynsnap.audit/1"
    assert found["holds"] is True
    first = found["bounds"][0]
    assert first["name"] == "T1"
    assert first["slack"] == pytest.approx(first["right"] - first["left"])
    assert first["worst"]["slack"] <= first["slack"]
    assert {standing["metric"] for standing in found["standings"]} == {
        "accuracy",
        "consistency",
        "correct_consistency",
    }
    assert len(found["effects"]["members"]) == 5
    assert dynsnap("audit", OLD, NEW, "--json", "-").stdout == (tmp_path / "out.json").read_text()


def test_a_page_has_every_theorem_and_escapes_names(tmp_path):
    page, hostile = tmp_path / "page.html", tmp_path / "<b>old.npz"
    hostile.write_bytes(OLD.read_bytes())
    result = dynsnap("audit", hostile, NEW, "--html", page, "--json", tmp_path / "out.json", "-q")
    assert (result.exit_code, result.stdout) == (0, "")
    text, found = page.read_text(), json.loads((tmp_path / "out.json").read_text())
    for bound in found["bounds"]:
        assert f"{bound['left']:.4f}" in text
        assert f"{bound['right']:.4f}" in text
    assert "&lt;b&gt;old" in text
    assert "<b>old" not in text
    assert dynsnap("audit", OLD, NEW, "--html", OLD).exit_code == 2


def test_a_page_explains_every_symbol_of_its_claims(tmp_path):
    page = tmp_path / "page.html"
    assert dynsnap("audit", OLD, NEW, "--html", page, "-q").exit_code == 0
    found = json.loads(dynsnap("audit", OLD, NEW, "--json", "-").stdout)
    claims = " ".join(bound["claim"] for bound in [*found["bounds"], found["accuracy_bounds"]])
    symbols = set(re.findall(r"\b[^\W\d]\b\u0303?", claims))
    assert {"d", "o", "s", "r", "õ", "s\u0303"} <= symbols
    explained = set(re.findall(r"<li>([^:<]+):", page.read_text()))
    assert symbols | {"ACC", "ACC-CON"} <= explained


@pytest.mark.parametrize("order", ["1", "3.5", "inf"])
def test_any_order_from_one_up_will_do(order):
    found = json.loads(dynsnap("audit", OLD, NEW, "--order", order, "--json", "-").stdout)
    assert found["order"] == ("inf" if order == "inf" else float(order))
    assert found["holds"] is True


@pytest.mark.parametrize("order", ["0.5", "nan", "two", "-1"])
def test_other_orders_are_wrong_use(order):
    assert "--order" in refused("audit", OLD, NEW, "--order", order, code=2)


def test_inputs_are_called_by_their_ids_and_markup_in_them_is_plain(save):
    rng = np.random.default_rng(0)
    old, new = rng.dirichlet(np.ones(3), (2, 4, 2))
    ids = ["[red]a[/]", "b|c"]
    files = [save("old.npz", scores=old, ids=ids), save("new.npz", scores=new, ids=ids)]
    told = dynsnap("audit", *files).stdout
    assert "[red]a[/]" in told or "b|c" in told
    page = dynsnap("audit", *files, "--markdown", "-").stdout
    assert r"\[red\]a" in page or r"b\|c" in page
    assert "no truth" in told


def test_a_regression_can_be_audited(save):
    rng = np.random.default_rng(0)
    old, new = rng.normal(size=(2, 4, 30, 1))
    truth = rng.normal(size=30)
    result = dynsnap(
        "audit", save("old.npz", scores=old, truth=truth), save("new.npz", scores=new, truth=truth)
    )
    assert result.exit_code == 0
    assert "1 output" in result.stdout


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was loaded",))


def test_a_pickle_is_never_loaded(save):
    array = np.empty((2, 3, 4), dtype=object)
    array.fill(Bomb())
    assert "old.npz" in refused("audit", save("old.npz", scores=array), NEW, code=3)


@pytest.mark.parametrize(
    "content",
    [b"", b"PK\x03\x04 and no more", pickle.dumps([1, 2]), OLD.read_bytes()[:5000]],
    ids=["empty", "no archive", "pickle", "cut off"],
)
def test_a_damaged_file_is_named(tmp_path, content):
    broken = tmp_path / "broken.npz"
    broken.write_bytes(content)
    assert "broken.npz" in refused("audit", OLD, broken, code=3)


def test_files_that_do_not_exist_or_are_folders_are_named(tmp_path):
    assert "absent.npz" in refused("audit", OLD, tmp_path / "absent.npz", code=3)
    assert str(tmp_path) in refused("audit", tmp_path, NEW, code=3)


def test_ensembles_that_do_not_fit_each_other_are_refused(save):
    rng = np.random.default_rng(0)
    few, many = rng.dirichlet(np.ones(3), (2, 5)), rng.dirichlet(np.ones(3), (3, 5))
    files = save("few.npz", scores=few), save("many.npz", scores=many)
    assert "as many members" in refused("audit", *files, code=3)


def test_nan_scores_are_refused(save):
    assert "old.npz" in refused(
        "audit", save("old.npz", scores=np.full((2, 3, 4), np.nan)), NEW, code=3
    )


def test_an_output_that_cannot_be_written_leaves_things_as_they_were(tmp_path):
    assert "directory" in refused("audit", OLD, NEW, "--json", tmp_path, code=2)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_argument_is_wrong_use():
    assert "'NEW'" in refused("audit", OLD, code=2)
