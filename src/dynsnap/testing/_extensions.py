"""What every metric, method, data source, rule key and page section that code adds must keep to."""

import inspect
import math
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dynsnap._types import AnyArray, Floats, Labels
from dynsnap.comparison import Comparison, Estimate, compare
from dynsnap.data import (
    SOURCES,
    TimeGrowth,
    digits_stream,
    grow,
    grow_by_time,
    load,
    reading_options,
)
from dynsnap.ensemble import METHOD_KINDS, Method, combine, cost, grow_rounds, members, method
from dynsnap.errors import PlanError
from dynsnap.gate import RULE_KEYS, Rule, judge, read_rules, to_json
from dynsnap.metrics import Cases, Metric, catalogue
from dynsnap.predictions import Predictions
from dynsnap.report import MOST_BYTES, SECTIONS, comparison_document, to_html
from dynsnap.study import read_study
from dynsnap.testing._centroids import CentroidTrainer

_ROUNDING = 1e-9
_NARROW = 1e-6
_HOSTILE = "<script>alert('x')</script>"


# --- metrics ----------------------------------------------------------------------------------


def check_metric(name: str) -> None:
    """Fail unless a registered metric keeps its contract.

    Its values and intervals lie in its range, and an interval holds its value; the order of the
    inputs does not matter, and a weight of two is an input twice; a "share" is one of whole inputs;
    without truth it is the same, where it needs none; classes have it, and so do rules.

    Example:
        >>> check_metric("lost")
    """
    assert name in catalogue, f"{name!r} is not registered"
    entry = catalogue[name]
    assert entry.symbol and entry.meaning.endswith("."), f"{name}: a symbol and one sentence"
    assert entry.of_cases is not None, f"{name}: only metrics of cases are checked here"
    _check_elementwise(entry)
    for seed, rows in enumerate((1, 7, 40, 200)):
        labels = _labels(seed, rows)
        found = _measured(labels, name)
        _check_estimate(entry, found, f"{name} of {rows} inputs")
        shuffled = np.random.default_rng(seed).permutation(rows)
        again = _measured(labels, name, rows=shuffled)
        _assert_same(again, found, f"{name}: the order of the inputs matters")
        often = np.where(np.arange(rows) % 2, 2, 1)
        twice = _measured(labels, name, rows=np.repeat(np.arange(rows), often))
        weighed = _measured(labels, name, weights=often / 4)  # their scale means nothing
        counts = "a weight of two is not an input twice (a sum that is not divided by another?)"
        _assert_same(weighed, twice, f"{name}: {counts}")
        _check_share(entry, *labels)
        if "truth" not in entry.needs:
            blind = _measured((*labels[:2], None), name)
            _assert_same(blind, found, f"{name}: it does not say that it needs the truth")
    comparison = _compared(_labels(9, 200))
    for group in comparison.pairs[0].groups:
        assert name in group.metrics, f"{name}: {group.name} does not have it"
        _check_estimate(entry, group.metrics[name], f"{name} of {group.name}")
    side = "at_most" if entry.direction == "lower" else "at_least"
    middle = entry.range[0] + min(entry.range[1] - entry.range[0], 2.0) / 2
    rule = Rule(metric=name, **{side: middle}, allow_odd=True)  # type: ignore[arg-type]
    assert judge(comparison, [rule]).outcomes[0].judged is not None


def _labels(seed: int, rows: int) -> tuple[Labels, Labels, Labels]:
    """Old and new labels, and the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, rows)
    old, new = (np.where(rng.random(rows) < 0.7, truth, rng.integers(0, 3, rows)) for _ in range(2))
    return old, new, truth


def _compared(
    labels: tuple[Labels, Labels, Labels | None],
    *,
    rows: AnyArray | None = None,
    weights: Floats | None = None,
) -> Comparison:
    """A comparison of some rows, which may be there more than once."""
    chosen = np.arange(len(labels[0])) if rows is None else rows
    *both, truth = (None if each is None else each[chosen] for each in labels)
    # A row keeps its id wherever it stands; one that is there again needs another.
    again = np.zeros(len(chosen), int)
    for row in np.unique(chosen):
        again[chosen == row] = np.arange((chosen == row).sum())
    old, new = (
        Predictions(
            ids=chosen + again * 1000,
            classes=["a", "b", "c"],
            labels=each,
            truth=truth,
            weights=weights,
        )
        for each in both
    )
    return compare(old, new, resamples=100)


def _measured(labels: tuple[Labels, Labels, Labels | None], name: str, **how: Any) -> Estimate:
    found = _compared(labels, **how).pairs[0].metrics
    assert name in found, f"{name}: a comparison does not have it"
    return found[name]


def _check_estimate(entry: Metric, found: Estimate, where: str) -> None:
    if math.isnan(found.value):
        return
    low, high = entry.range
    assert low - _ROUNDING <= found.value <= high + _ROUNDING, (
        f"{where} is {found.value}, outside its range {entry.range}"
    )
    if found.low is not None and found.high is not None:
        assert low <= found.low <= found.value <= found.high <= high, (
            f"{where}: the interval {found.low} to {found.high} of {found.value}"
        )


def _check_elementwise(entry: Metric) -> None:
    """Fail unless it gives one value for each group and resample."""
    cases = Cases(*(np.full((2, 3), float(count)) for count in (40, 20, 8, 6, 4, 2)))
    for field, of in (("of_cases", entry.of_cases), ("whole", entry.whole)):
        if of is None:
            continue
        found = of(cases)
        assert isinstance(found, np.ndarray) and found.shape == (2, 3), (
            f"{entry.name}: `{field}` must give an array of the shape of its cases, (2, 3) here, "
            f"got {found!r}. Calculate element by element, without float() and sum()."
        )


def _check_share(entry: Metric, old: Labels, new: Labels, truth: Labels) -> None:
    if entry.interval != "share":
        return
    was, now, same = old == truth, new == truth, old == new
    each = [was & now, ~was & now, was & ~now, ~was & ~now & same, ~was & ~now & ~same]
    cases = Cases(np.array([float(len(old))]), *(np.array([float(one.sum())]) for one in each))
    assert entry.of_cases is not None
    value = float(entry.of_cases(cases)[0])
    whole = float((cases.all if entry.whole is None else entry.whole(cases))[0])
    inputs = value * whole
    whole_inputs = math.isfinite(inputs) and abs(inputs - round(inputs)) < 1e-6
    assert not whole or whole_inputs, (
        f"{entry.name}: {value} of {whole:g} inputs is no whole number of them. Give its `whole`, "
        'or `interval="bootstrap"`.'
    )


def _assert_same(found: Estimate, expected: Estimate, what: str) -> None:
    one, other = found.value, expected.value
    same = one == other or abs(one - other) < _ROUNDING or (math.isnan(one) and math.isnan(other))
    assert same, f"{what}: {one}, not {other}"


# --- methods ----------------------------------------------------------------------------------


def check_method(name: str, *, epochs: int = 12) -> None:
    """Fail unless a registered method keeps its contract.

    It can be made of small and usual settings, and then has the name that was asked for; its
    ensemble is complete, the same when grown again, and has scores for every input; its cost is
    that of its rounds; a study that names it can be read.

    Args:
        name: The method.
        epochs: Epochs of a training, in which it must be able to save two snapshots.

    Example:
        >>> check_method("extbagging")
    """
    assert name in METHOD_KINDS, f"{name!r} is not registered"
    made = method(name, epochs=epochs, members=2, snapshots=2)
    assert made.name == name, f"{name}: it calls itself {made.name!r}"
    usual = method(name, epochs=200)
    assert isinstance(usual, Method)
    assert usual.plan.snapshots == usual.recipe.members
    stream = digits_stream()
    found = [_grown(made, CentroidTrainer(stream)) for _ in range(2)]
    (kept, rounds), (again, _) = found
    assert len(kept) == made.plan.size, f"{name}: {len(kept)} members, not {made.plan.size}"
    np.testing.assert_array_equal(kept.scores["test"], again.scores["test"])
    scores = combine(kept.scores["test"], how=made.combinations[0], weights=kept.accuracy)
    assert scores.shape == (len(stream.evaluation["test"]), len(stream.pool.classes))
    price = cost(made.recipe, rounds=rounds, epochs=epochs)
    assert price == rounds * made.recipe.networks * made.recipe.epochs / epochs
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "study.toml"
        keep = '[study]\nkeep = "weights"\n'  # which some methods need
        methods = f'[model]\nname = "mlp"\n[methods]\nnames = ["{name}"]\n'
        file.write_text(keep + methods, encoding="utf-8")
        assert read_study(file).method(name).name == name


def _grown(made: Method, trainer: CentroidTrainer) -> tuple[Any, int]:
    rounds = grow_rounds(made.plan, trainer, recipe=made.recipe, generation=1, seed=3)
    return members(made.plan, rounds), len(rounds)


# --- data sources -----------------------------------------------------------------------------


def check_source(
    name: str, path: str | Path | None = None, *, options: Mapping[str, Any] | None = None
) -> None:
    """Fail unless a registered data source keeps its contract.

    It gives the same rows when it is read again; ids are unique, over both of its sets; both sets
    have the same classes; it grows; an option that it does not have is refused.

    Args:
        name: The source.
        path: What to read, where it takes a path. Two rows of each class are the least.
        options: Its options.

    Example:
        >>> check_source("digits")
    """
    assert name in SOURCES, f"{name!r} is not registered"
    given = dict(options or {})
    found, again = (load(name, path, **given) for _ in range(2))
    pools = [pool for pool in (found.train, found.test) if pool is not None]
    assert [pool.fingerprint for pool in pools] == [
        pool.fingerprint for pool in (again.train, again.test) if pool is not None
    ], f"{name}: read again, it gives other rows"
    ids = [one for pool in pools for one in np.asarray(pool.ids).tolist()]
    assert len(set(ids)) == len(ids), f"{name}: ids are not unique"
    assert len({pool.classes for pool in pools}) == 1, f"{name}: the test set has other classes"
    growth = SOURCES[name].growth()
    if isinstance(growth, TimeGrowth):
        assert found.train.times is not None, f"{name}: it grows by time, and its rows have none"
        assert len(grow_by_time(found.train, growth).generations) > 0
    else:
        stream = grow(found.train, growth, test=found.test)
        assert len(stream.generations) == growth.generations
    assert isinstance(reading_options(name, None if path is None else Path(path), given), dict)
    wrong = "no_such_option"
    assert wrong not in inspect.signature(SOURCES[name].read).parameters
    try:
        load(name, path, **given, **{wrong: 1})
    except PlanError:
        return
    raise AssertionError(f"{name}: an option that it does not have was taken")


# --- rule keys --------------------------------------------------------------------------------


def check_rule_key(name: str, value: Any) -> None:
    """Fail unless a registered key of rules keeps its contract.

    A file of rules may hold it; a value of another type is refused; the rule's title and its JSON
    name it; it leaves alone which rule, part and inputs an outcome is about, and what was judged
    stays judged. Outcomes that pass, that fail and that nearly do either are all judged with it.

    Args:
        name: The key.
        value: A value that TOML can hold.
    """
    assert name in RULE_KEYS, f"{name!r} is not registered"
    comparison = _compared(_labels(5, 200))
    lost = comparison.pairs[0].metrics["lost"].value
    # A key that changes only narrow outcomes would never be run by wide ones.
    for threshold in (0.01, lost - _NARROW, lost + _NARROW, 0.5):
        plain = Rule(metric="lost", at_most=threshold)
        try:
            (rule,) = _from_file(threshold, {name: value})
        except PlanError as error:
            raise AssertionError(f"{name}: the value {value!r} is refused: {error}") from error
        assert rule.keys == {name: value}, f"{name}: read as {dict(rule.keys)}"
        assert name in rule.title, f"{name}: the title {rule.title!r} does not name it"
        (before,) = judge(comparison, [plain]).outcomes
        try:
            verdict = judge(comparison, [rule])
        except PlanError as error:
            raise AssertionError(f"{name}: {error}") from error
        (after,) = verdict.outcomes
        about = [(one.part, one.inputs, one.judged) for one in (before, after)]
        assert about[0] == about[1], f"{name}: the outcome is about something else: {about}"
        assert after.rule == rule, f"{name}: the outcome is of another rule"
        assert to_json(verdict)["outcomes"][0]["rule"]["keys"] == {name: value}
    for wrong in _other_kinds(RULE_KEYS[name].kinds):
        try:
            Rule(metric="lost", at_most=0.1, keys={name: wrong})
        except PlanError:
            continue
        raise AssertionError(f"{name}: {wrong!r} was taken")


def _from_file(threshold: float, keys: Mapping[str, Any]) -> tuple[Rule, ...]:
    lines = ["[[rule]]", 'metric = "lost"', f"at_most = {threshold}"]
    for key, value in keys.items():
        text = str(value).lower() if isinstance(value, bool) else repr(value)
        lines.append(f"{key} = {text}")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rules.toml"
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return read_rules(file)


def _other_kinds(kinds: tuple[type, ...]) -> Iterator[Any]:
    """Values of TOML that are of none of these types."""
    for value in ("text", 3, 0.5, True, [1], {"a": 1}):
        if not isinstance(value, kinds) or (value is True and bool not in kinds):
            yield value


# --- page sections ----------------------------------------------------------------------------


def check_section(name: str) -> None:
    """Fail unless a registered section of a page keeps its contract.

    The page has it once, under its name, and its contents lead to it; the page stays within its
    size; markup in the names of classes, files and slices is shown and never obeyed. Comparisons
    with and without truth, scores and slices are all taken, if only to leave the section out.
    """
    assert name in SECTIONS, f"{name!r} is not registered"
    shown = 0
    for comparison in _comparisons():
        made = SECTIONS[name](comparison)
        html = to_html(comparison_document(comparison))
        assert len(html.encode()) <= MOST_BYTES, f"{name}: the page is too large"
        assert _HOSTILE not in html, f"{name}: markup in a name is obeyed"
        if made is None:
            continue
        shown += 1
        assert made.name == name, f"{name}: the section calls itself {made.name!r}"
        assert html.count(f' id="{name}"') == 1, f"{name}: the page has it more than once, or not"
        assert f'href="#{name}"' in html, f"{name}: the contents do not lead to it"
    assert shown, f"{name}: no comparison has it"


def _comparisons() -> Iterator[Comparison]:
    rng = np.random.default_rng(0)
    classes, rows = [_HOSTILE, "b", "c"], 60
    truth = rng.integers(0, 3, rows)
    scores = rng.dirichlet(np.ones(3), (3, rows))
    pool: dict[str, Any] = {"ids": [f"{_HOSTILE}{row}" for row in range(rows)], "classes": classes}
    slices = {_HOSTILE: np.where(np.arange(rows) % 2, _HOSTILE, "other")}
    full = [Predictions(**pool, scores=each, truth=truth, slices=slices) for each in scores]
    bare = [Predictions(**pool, labels=each.argmax(axis=1)) for each in scores]
    names = [_HOSTILE, "two", "three"]
    yield compare(*full[:2], names=names[:2], resamples=100)
    yield compare(*full, names=names, resamples=100)
    yield compare(*bare[:2], names=names[:2], resamples=100)
