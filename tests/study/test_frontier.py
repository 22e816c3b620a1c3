import pytest

from dynsnap.study import Row, frontier


def rows(method, *, late=0.9, last=0.88, consistency=0.92, how="average"):
    values = {
        "accuracy": 0.88,
        "accuracy_1": 0.87,
        "accuracy_10": last,  # the tenth comes after the second, whatever letters say
        "accuracy_2": 0.88,
        "consistency": consistency,
        "late_accuracy": late,
    }
    return [
        Row(method=method, combination=how, metric=metric, value=value, cost=3.0)
        for metric, value in values.items()
    ]


def summaries(*others):
    return {one.method: one for one in frontier([*rows("dynsnap-cyc"), *others])}


@pytest.mark.parametrize(
    ("late", "last", "qualifies"),
    [(0.9, 0.88, True), (0.811, 0.88, True), (0.809, 0.88, False), (0.9, 0.8771, True),
     (0.9, 0.8769, False), (1.0, 0.95, True)],
)  # fmt: skip
def test_a_method_qualifies_if_it_has_learned_new_data(late, last, qualifies):
    one = summaries(*rows("rolling", late=late, last=last))["rolling"]
    assert one.judged
    assert one.qualifies is qualifies
    assert bool(one.shortfall) is not qualifies


def test_what_is_lacking_is_said():
    one = summaries(*rows("never-retrain", late=0.0, last=0.86))["never-retrain"]
    assert one.shortfall == (
        "new classes 0.0 %, below 0.9 of dynsnap-cyc's 90.0 %; "
        "last generation 2.0 points below dynsnap-cyc's"
    )


def test_the_fresh_ensemble_and_the_noise_floor_are_not_judged():
    found = summaries(*rows("noise-floor", late=0.0))
    assert not found["noise-floor"].judged
    assert not found["dynsnap-cyc"].judged
    assert found["noise-floor"].qualifies


def test_without_a_fresh_ensemble_nobody_is_judged():
    (one,) = frontier(rows("rolling", late=0.0))
    assert not one.judged
    assert one.qualifies


def test_generations_are_in_order_and_other_combinations_are_left_out():
    (one,) = frontier([*rows("rolling"), *rows("rolling", last=0.1, how="majority")])
    assert [row.metric for row in one.accuracies] == ["accuracy_1", "accuracy_2", "accuracy_10"]
    assert one.accuracies[-1].value == 0.88
    assert one.cost == 3.0


def test_the_cost_is_that_of_a_retrain_where_it_is_known():
    more = Row(
        method="never-retrain", combination="average", metric="retrain_cost", value=0.0, cost=1.0
    )
    assert summaries(*rows("never-retrain"), more)["never-retrain"].cost == 0.0
