import dataclasses
import inspect

import pytest

from dynsnap import metrics
from dynsnap.errors import PlanError
from dynsnap.metrics import aliases, catalogue, metric
from tests.messages import naming

TRANSITIONS = {"kept", "gained", "lost", "never", "composite"}


def test_every_entry_goes_by_its_own_name():
    assert all(entry.name == name for name, entry in catalogue.items())


@pytest.mark.parametrize("name", catalogue)
def test_every_entry_has_a_function_that_asks_for_what_it_says(name):
    entry = catalogue[name]
    if entry.of_cases is not None and name not in metrics.__all__ and name not in TRANSITIONS:
        pytest.skip("its entry has all that it takes")
    if entry.change_of is not None:
        assert entry.needs == catalogue[entry.change_of].needs
        assert entry.direction == catalogue[entry.change_of].direction
        return
    function = getattr(
        metrics,
        "transitions"
        if name in TRANSITIONS
        else name.replace("top_2", "top_k").removesuffix("_macro").removesuffix("_weighted"),
    )
    asks = set(inspect.signature(function).parameters)
    assert ("truth" in asks) == ("truth" in entry.needs)
    assert any("scores" in word for word in asks) == ("scores" in entry.needs)
    assert ({"old", "new"} <= asks or {"old_scores", "new_scores"} <= asks) == (
        entry.scope == "pair"
    )
    assert "weights" in asks


def test_every_entry_says_what_it_means_in_one_sentence():
    for entry in catalogue.values():
        assert entry.meaning.endswith(".")
        assert "\n" not in entry.meaning
        assert entry.symbol
        assert entry.direction in {"higher", "lower", "neither"}


@pytest.mark.parametrize("k", [1, 2, 5, 100])
def test_top_k_metrics_exist_for_every_k(k):
    assert metric(f"top_{k}_accuracy").scope == "generation"
    assert metric(f"top_{k}_consistency").symbol == f"CCON-{k}"
    assert metric(f"top_{k}_consistency").name == f"top_{k}_consistency"


def test_the_listed_top_2_is_the_one_found_by_name():
    assert metric("top_2_accuracy") == catalogue["top_2_accuracy"]


@pytest.mark.parametrize("alias", aliases)
def test_other_words_lead_to_the_canonical_name(alias):
    assert metric(alias).name == aliases[alias]
    assert metric(alias) is catalogue[aliases[alias]]
    assert alias not in catalogue


def test_a_misspelt_metric_is_answered_with_the_nearest():
    with pytest.raises(PlanError, match=naming("'consistancy'", '"consistency"')):
        metric("consistancy")


def test_a_word_like_no_metric_is_answered_with_the_page_that_lists_them():
    with pytest.raises(PlanError, match=naming("'zzzzzz'", r"docs/glossary\.md")):
        metric("zzzzzz")


@pytest.mark.parametrize(("symbol", "name"), [("CtoI", "lost"), ("acc-con", "correct_consistency")])
def test_a_symbol_is_answered_with_the_name(symbol, name):
    with pytest.raises(PlanError, match=naming(repr(symbol), f'"{name}"')):
        metric(symbol)


@pytest.mark.parametrize(
    "name", ["top_0_accuracy", "top_k_accuracy", "top_02_accuracy", "", "a\nb"]
)
def test_names_that_do_not_exist_are_refused_in_one_line(name):
    with pytest.raises(PlanError, match="no metric") as caught:
        metric(name)
    assert "\n" not in str(caught.value)


def test_the_catalogue_cannot_be_changed():
    with pytest.raises(TypeError):
        catalogue["mine"] = catalogue["lost"]
    with pytest.raises(dataclasses.FrozenInstanceError):
        catalogue["lost"].name = "won"


def test_every_public_name_exists_and_is_documented():
    for name in metrics.__all__:
        thing = getattr(metrics, name)
        if inspect.isfunction(thing) and thing.__module__.startswith("dynsnap.metrics"):
            assert ">>>" in inspect.getdoc(thing), name
