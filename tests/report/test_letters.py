import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dynsnap import report
from dynsnap.comparison import Estimate, compare
from dynsnap.gate import Rule, judge
from dynsnap.report.document import Part, Strip
from dynsnap.report.render.letters import spark, stack, strip
from tests.comparison.made import generations

shares = st.floats(0, 1)


@given(st.tuples(*[st.integers(0, 10**7)] * 4).filter(any), st.integers(8, 90))
def test_the_bar_of_the_four_cases_is_as_long_as_asked_and_hides_none(inputs, cells):
    names = ("kept", "gained", "lost", "never")
    drawn, said = stack([Part(name, n, name) for name, n in zip(names, inputs, strict=True)], cells)
    assert sum(len(cell.text) for cell in drawn) == cells
    assert all(cell.text for cell in drawn)
    assert len(drawn) == len(said) == sum(number > 0 for number in inputs)


@given(shares, shares, shares, shares)
def test_a_strip_marks_its_value_whatever_the_scale(value, low, high, threshold):
    low, value, high = sorted((low, value, high))
    plot = Strip(estimate=Estimate(value, low, high), threshold=threshold)
    line = strip(plot, cells=20)
    assert len(line) == 20
    assert line.count("●") == 1
    assert line.index("●") == round(value * 19)


def test_what_would_fail_is_shaded_on_its_side():
    found = Estimate(0.5)
    above = strip(Strip(estimate=found, threshold=0.6, fails_above=True))
    below = strip(Strip(estimate=found, threshold=0.4))
    assert above.endswith("░")
    assert below.startswith("░")
    assert "░" not in above[:10]
    assert "░" not in below[10:]


@given(st.lists(st.floats(-10, 10) | st.sampled_from([np.nan, np.inf]), max_size=30))
def test_a_spark_has_a_level_for_each_value(values):
    drawn = spark(values)
    assert len(drawn) == (len(values) if np.isfinite(values).any() else 0)


def test_a_comparison_has_its_plots_where_there_is_room_and_in_no_markdown():
    told = report.comparison_document(compare(*generations(), resamples=20))
    wide, narrow = report.to_terminal(told), report.to_terminal(told, width=60)
    assert "●" in wide
    assert "▼" in wide
    assert "●" not in narrow
    assert "kept" in narrow
    assert not {"●", "▼", "█"} & set(report.to_markdown(told))


def test_many_generations_are_told_over_time():
    found = compare(*generations(count=5), resamples=20)
    told = report.to_terminal(report.comparison_document(found))
    part = told[told.index("Over time") :]
    line = next(line for line in part.splitlines() if line.startswith("ambiguity so far"))
    assert line.split()[3] == "0.0000"
    assert f"{found.ambiguity_so_far[-1]:.4f}" in line
    assert spark(found.ambiguity_so_far) in line


def test_without_truth_there_is_no_bar_of_cases():
    told = report.to_terminal(
        report.comparison_document(compare(*generations(truth=False), resamples=20))
    )
    assert "▼" not in told


def test_every_rule_of_a_gate_is_drawn_beside_its_threshold():
    found = compare(*generations(), resamples=20)
    rules = [Rule(metric="lost", at_most=0.001), Rule(metric="consistency", at_least=0.1)]
    told = report.to_terminal(report.verdict_document(judge(found, rules)))
    failed, passed = (line for line in told.splitlines() if "│" in line)
    assert "◆" in failed
    assert "●" in passed
