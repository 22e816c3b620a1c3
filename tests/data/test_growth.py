import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynsnap.data import (
    GrowthPlan,
    Pool,
    cifar10_growth,
    cifar100_growth,
    digits,
    digits_stream,
    from_arrivals,
    from_generations,
    grow,
    split,
    yahoo_growth,
)
from dynsnap.errors import DataError, InputError, PlanError
from tests.data.real import sizes
from tests.messages import naming

CIFAR100_OTHERS = [f"other {i}" for i in range(90)]


def labelled(classes, per_class, name, order_seed=0):
    """A pool in which the input is the row's place in the file."""
    labels = np.repeat(np.arange(len(classes)), per_class)
    labels = np.random.default_rng(order_seed).permutation(labels)
    rows = len(labels)
    return Pool(
        name=name,
        inputs=np.arange(rows)[:, np.newaxis],
        labels=labels,
        classes=tuple(classes),
        ids=np.char.add(f"{name}-", np.arange(rows).astype(str)),
    )


def trained(stream, generation):
    """Rows of D_i that come from the training set, and how many are validated on."""
    rows = stream.generations[generation - 1]
    return [row for row in rows if str(stream.pool.ids[row]).startswith("train")]


def test_cifar_10_has_the_papers_sizes():
    plan = cifar10_growth()
    train, test = (labelled(plan.shares, n, s) for n, s in ((5000, "train"), (1000, "test")))
    stream = grow(train, plan, test=test)
    assert sizes(stream) == [24_400, 30_500, 32_500]
    assert [int(counts.sum()) for counts in stream.validation] == [4_500] * 3
    assert len(stream.pool) == 54_500
    assert len(stream.evaluation["test"]) == 4_500
    assert stream.evaluation["test"].count("frog") == 0
    assert len(stream.evaluation["late"]) == stream.evaluation["late"].count("frog") == 1_000
    frog = stream.pool.classes.index("frog")
    frogs = [int(np.sum(stream.pool.labels[rows] == frog)) for rows in stream.generations]
    assert frogs == [0, 0, 2_000]
    assert all(counts[frog] == 0 for counts in stream.validation)


def test_cifar_100_has_the_papers_sizes():
    plan = cifar100_growth()
    classes = [*plan.shares, "bowl", *CIFAR100_OTHERS]
    train, test = (labelled(classes, n, s) for n, s in ((500, "train"), (100, "test")))
    stream = grow(train, plan, test=test)
    assert sizes(stream) == [37_500, 46_875, 47_375]
    assert len(stream.evaluation["test"]) == 4_950
    assert [int(counts.sum()) for counts in stream.validation] == [4_950] * 3
    assert stream.evaluation["late"].count("bowl") == len(stream.evaluation["late"]) == 100


def test_yahoo_answers_has_the_papers_sizes_in_thousandths():
    plan = yahoo_growth()
    train, test = (labelled(plan.shares, n, s) for n, s in ((1400, "train"), (60, "test")))
    stream = grow(train, plan, test=test)
    assert sizes(stream) == [6_832, 7_686, 9_100]
    assert [int(counts.sum()) for counts in stream.validation] == [100] * 3
    assert len(stream.evaluation["test"]) == 500
    assert stream.evaluation["late"].count("Business & Finance") == 50
    late = stream.pool.classes.index("Business & Finance")
    for generation in (1, 2):
        train_rows, _ = split(stream, generation, np.random.default_rng(0))
        assert not np.any(stream.pool.labels[train_rows] == late)


def test_a_class_brings_its_first_rows_in_file_order():
    train, test = labelled("ab", 50, "train"), labelled("ab", 10, "test")
    stream = grow(train, GrowthPlan(fractions=(0.5, 1), shares={"b": 0.4}), test=test)
    for label, wanted in ((0, [25, 50]), (1, [10, 20])):
        own = np.flatnonzero(train.labels == label)
        for generation, count in enumerate(wanted, start=1):
            rows = [r for r in trained(stream, generation) if train.labels[r] == label]
            assert rows == own[:count].tolist()


def test_validation_and_test_are_the_halves_of_each_class_in_file_order():
    train, test = labelled("ab", 50, "train"), labelled("ab", 10, "test")
    stream = grow(train, GrowthPlan(), test=test)
    held = stream.pool.inputs[len(train) :, 0]
    for label in (0, 1):
        own = np.flatnonzero(test.labels == label)
        assert sorted(held[test.labels[held] == label]) == own[:5].tolist()
        tested = stream.evaluation["test"]
        assert tested.inputs[tested.labels == label, 0].tolist() == own[5:].tolist()


@st.composite
def growths(draw):
    fractions = sorted(draw(st.lists(st.floats(0.2, 1), min_size=1, max_size=4)))
    names = list("abcd")
    shares = draw(st.dictionaries(st.sampled_from(names), st.floats(0.3, 1) | st.just(0.0)))
    shares.pop("a", None)
    arrivals = st.integers(2, len(fractions)) if len(fractions) > 1 else st.nothing()
    late = draw(st.dictionaries(st.sampled_from("cd"), arrivals)) if len(fractions) > 1 else {}
    return GrowthPlan(
        fractions=tuple(fractions),
        shares=shares,
        late={name: when for name, when in late.items() if shares.get(name) != 0},
        validation=draw(st.floats(0.2, 0.8)),
        late_validation=draw(st.sampled_from(["never", "arrival", "always"])),
        late_in_test=draw(st.booleans()),
        test_size=draw(st.floats(0.3, 0.6)),
        seed=draw(st.integers(0, 5)),
    )


@given(growths(), st.booleans())
def test_what_is_held_out_is_never_trained_on(plan, official):
    train = labelled("abcd", 30, "train")
    stream = grow(train, plan, test=labelled("abcd", 12, "test") if official else None)
    held = set(stream.evaluation["test"].ids.tolist())
    late = set(stream.evaluation["late"].ids.tolist()) if plan.late else set()
    assert held.isdisjoint(stream.pool.ids.tolist())
    assert late.isdisjoint(stream.pool.ids.tolist())
    assert late <= held if plan.late_in_test else late.isdisjoint(held)
    assert ("late" in stream.evaluation) == bool(plan.late)


@given(growths(), st.integers(0, 3))
def test_a_class_is_learned_from_its_arrival_on_and_never_if_left_out(plan, seed):
    stream = grow(labelled("abcd", 30, "train"), plan)
    for generation in range(1, plan.generations + 1):
        rows, validated = split(stream, generation, np.random.default_rng(seed))
        learned = {stream.pool.classes[label] for label in stream.pool.labels[rows]}
        here = {
            name
            for name in "abcd"
            if plan.late.get(name, 1) <= generation and plan.shares.get(name, 1) > 0
        }
        assert learned == here
        late = {stream.pool.classes[label] for label in stream.pool.labels[validated]} - here
        assert late <= (set(plan.late) if plan.late_validation == "always" else set())


@given(growths(), st.integers(0, 3))
def test_a_split_is_stratified_whole_and_drawn_anew(plan, seed):
    stream = grow(labelled("abcd", 30, "train"), plan)
    for generation, whole in enumerate(stream.generations, start=1):
        train, validation = split(stream, generation, np.random.default_rng(seed))
        assert sorted([*train, *validation]) == whole.tolist()
        assert train.tolist() == sorted(train)
        counts = np.bincount(stream.pool.labels[validation], minlength=4)
        assert counts.tolist() == stream.validation[generation - 1].tolist()
        again, _ = split(stream, generation, np.random.default_rng(seed))
        assert np.array_equal(train, again)


def test_two_rounds_validate_on_different_rows():
    stream = digits_stream()
    first, second = (split(stream, 1, np.random.default_rng(seed))[1] for seed in (0, 1))
    assert not np.array_equal(first, second)
    with pytest.raises(InputError, match="between 1 and 3, got 0"):
        split(stream, 0, np.random.default_rng(0))


def test_the_hold_out_is_stratified_and_follows_the_seed():
    train = labelled("ab", [40, 20], "train")
    streams = [grow(train, GrowthPlan(test_size=0.5, seed=seed)) for seed in (0, 0, 1)]
    ids = [made.evaluation["test"].ids.tolist() for made in streams]
    assert ids[0] == ids[1] != ids[2]
    assert streams[0].evaluation["test"].counts.tolist() == [10, 5]


def test_the_digits_stream_has_nine_nine_and_ten_classes():
    stream = digits_stream()
    classes = [set(stream.pool.labels[rows].tolist()) for rows in stream.generations]
    assert [len(found) for found in classes] == [9, 9, 10]
    assert stream.late == ("6",)
    assert stream.evaluation["late"].count("6") == len(stream.evaluation["late"]) > 50
    assert stream.evaluation["test"].count("6") == 0
    assert len(stream.pool) + sum(map(len, stream.evaluation.values())) == 1797


def test_digits_keep_their_seventeen_levels():
    pixels = digits().train.inputs
    assert pixels.dtype == np.uint8
    assert pixels.max() == 255
    assert len(np.unique(pixels)) == 17


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"fractions": ()}, naming("`fractions`", "generation", r"\(\)")),
        ({"fractions": 0.5}, naming("`fractions`", "a list", r"0\.5")),
        ({"fractions": ["a"]}, naming("at most 1", "got a")),
        ({"shares": ["a"]}, naming("`shares`", "class names", r"\['a'\]")),
        ({"shares": {"a": "b"}}, r"in \[0, 1\], got b"),
        ({"fractions": (0, 1)}, naming("above 0", "got 0")),
        ({"fractions": (0.5, 1.2)}, r"at most 1, got 1\.2"),
        ({"fractions": (1, 0.5)}, naming("`fractions`", "fall", r"\(1, 0\.5\)")),
        ({"shares": {"a": 1.1}}, naming("share of class 'a'", r"\[0, 1\]", r"1\.1")),
        ({"shares": {"a": -0.1}}, r"in \[0, 1\], got -0\.1"),
        ({"shares": {"a": float("nan")}}, "got nan"),
        ({"late": {"a": 1}}, naming("class 'a'", "last of 3", "got 1")),
        ({"late": {"a": 4}}, naming("class 'a'", "last of 3", "got 4")),
        ({"late": {"a": 2}, "shares": {"a": 0}}, naming("class 'a'", "share 0")),
        ({"validation": 1.0}, naming("`validation`", "above 0", "below 1")),
        ({"test_size": "a"}, naming("`test_size`", "above 0", "below 1")),
        ({"test_size": 0.0}, naming("`test_size`", "above 0", "below 1")),
        ({"late_validation": "maybe"}, naming('"never", "arrival" or "always"', "'maybe'")),
    ],
)
def test_a_growth_plan_that_makes_no_sense_is_refused(wrong, message):
    with pytest.raises(PlanError, match=message):
        GrowthPlan(**wrong)


@pytest.mark.parametrize("field", ["shares", "late"])
def test_an_unknown_class_is_refused_with_a_suggestion(field):
    train = labelled(["frog", "horse"], 20, "train")
    with pytest.raises(PlanError, match=naming("'forg'", r"\"frog\"")):
        grow(train, GrowthPlan(**{field: {"forg": 1 if field == "shares" else 2}}))


@pytest.mark.parametrize(
    ("per_class", "plan", "message"),
    [
        ([20, 1], GrowthPlan(), naming("class 'b'", "0 held-out", "too few")),
        ([20, 3], GrowthPlan(), naming("class 'b'", "1 held-out", "too few")),
        (
            [40, 10],
            GrowthPlan(shares={"b": 0.01}),
            naming("generation 1", "class 'b'", "none of its 6", "share"),
        ),
    ],
)
def test_a_class_with_too_few_rows_is_named(per_class, plan, message):
    with pytest.raises(DataError, match=message):
        grow(labelled("ab", per_class, "train"), plan)


def test_a_plan_with_new_classes_only_is_refused():
    with pytest.raises(PlanError, match="generation 1 is empty"):
        grow(labelled("ab", 20, "train"), GrowthPlan(late={"a": 2, "b": 2}))


def test_a_test_set_of_other_classes_is_refused():
    with pytest.raises(DataError, match="same classes"):
        grow(labelled("ab", 9, "train"), GrowthPlan(), test=labelled("abc", 9, "test"))


def test_generations_cut_elsewhere_become_a_stream():
    pool, test = labelled("abc", 20, "train"), labelled("abc", 5, "test")
    no_c = pool.labels != 2
    stream = from_generations(pool, [no_c, np.arange(60)[::-1]], test=test, validation=0.25)
    assert [len(rows) for rows in stream.generations] == [40, 60]
    assert [counts.tolist() for counts in stream.validation] == [[5, 5, 0], [5, 5, 5]]
    assert stream.late == ("c",)
    assert stream.evaluation["test"].counts.tolist() == [5, 5, 0]
    assert stream.evaluation["late"].counts.tolist() == [0, 0, 5]
    whole = from_generations(pool, [no_c, np.arange(60)], test=test, late_in_test=True)
    assert len(whole.evaluation["test"]) == 15


def test_arrivals_become_one_generation_per_moment():
    pool, test = labelled("ab", 20, "train"), labelled("ab", 5, "test")
    weeks = np.array([f"2024-W{row // 10 + 8:02}" for row in range(40)])
    stream = from_arrivals(pool, weeks, test=test)
    assert [rows.tolist() for rows in stream.generations] == [
        list(range(n)) for n in (10, 20, 30, 40)
    ]
    with pytest.raises(DataError, match=naming("`arrivals`", "40 rows", r"\(5,\)")):
        from_arrivals(pool, weeks[:5], test=test)


def test_own_generations_that_are_not_nested_or_too_small_are_refused():
    pool, test = labelled("ab", 20, "train"), labelled("ab", 5, "test")
    with pytest.raises(DataError, match="generation 2 lacks"):
        from_generations(pool, [np.arange(20), np.arange(10, 40)], test=test)
    with pytest.raises(DataError, match="generation 1 is empty"):
        from_generations(pool, [np.zeros(40, bool)], test=test)
    lone = np.append(np.flatnonzero(pool.labels == 0), np.flatnonzero(pool.labels == 1)[0])
    with pytest.raises(DataError, match=naming("'b'", "1", "row")):
        from_generations(pool, [lone], test=test)
    with pytest.raises(PlanError, match=naming("`validation`", "0")):
        from_generations(pool, [np.arange(40)], test=test, validation=0)


def test_some_classes_bring_their_rows_in_a_rhythm_of_their_own():
    pool, test = labelled(("cat", "dog"), 40, "train"), labelled(("cat", "dog"), 8, "test")
    plan = GrowthPlan(fractions=(0.5, 0.75, 1), fractions_of={"dog": [0.05, 0.05, 1]})
    stream = grow(pool, plan, test=test)
    learned = [
        np.bincount(stream.pool.labels[rows], minlength=2) - counts
        for rows, counts in zip(stream.generations, stream.validation, strict=True)
    ]
    assert [size.tolist() for size in learned] == [[20, 2], [30, 2], [40, 40]]


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ({"dog": (0.5, 1)}, naming("`fractions_of`", "'dog'", "3 generations", "got 2")),
        ({"dog": (0.5, 0.4, 1)}, naming("`fractions_of`", "'dog'", "fall", r"\(0\.5, 0\.4, 1\)")),
        ({"dog": 0.5}, naming("`fractions_of`", "'dog'", "a list", r"0\.5")),
        ([0.5], naming("`fractions_of`", "class names", r"\[0\.5\]")),
    ],
)
def test_a_rhythm_that_makes_no_sense_is_refused(own, message):
    with pytest.raises(PlanError, match=message):
        GrowthPlan(fractions=(0.5, 0.75, 1), fractions_of=own)
