import re
import time

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dynsnap.comparison import Settings, compare, compare_blocks
from dynsnap.errors import InputError, PlanError
from dynsnap.gate import Rule, judge
from dynsnap.metrics import catalogue
from dynsnap.predictions import Predictions
from dynsnap.report import MOST_BYTES
from dynsnap.report.render.signature import signature
from tests.comparison.made import Blocks, generations
from tests.messages import naming
from tests.report.html.reader import read
from tests.report.pages import comparison_page, gate_page

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</table></main><h1>",
    "' onmouseover='alert(1)",
    "&lt;b&gt;",
    "</style><style>*{display:none}",
    "\u202eabc",
    "]]>",
]
SECTIONS = ["transitions", "metrics", "classes", "answers", "slices", "inputs"]


def made(**settings):
    slices = {"place": ["north", "south"] * (settings.get("rows", 200) // 2)}
    return generations(**{"slices": slices, **settings})


def page_of(*said, **more):
    return comparison_page(compare(*said, resamples=30, **more))


def test_two_generations_have_every_section():
    page = page_of(*made())
    found = read(page.html)
    for name in SECTIONS:
        assert name in found.ids
    assert [figure.name for figure in page.figures] == ["transitions", "classes", "lost-to"]
    assert "Holm" in found.text


def test_the_page_says_the_same_as_the_result():
    old, new = made(rows=400)
    comparison = compare(old, new, resamples=30)
    pair = comparison.pairs[0]
    text = read(comparison_page(comparison).html).text
    assert f"{pair.transitions.lost} inputs" in text
    for name, estimate in pair.metrics.items():
        assert (catalogue[name].change_of or name) in text
        if np.isfinite(estimate.value):
            assert f"{estimate.value:.4f}" in text
    for one in pair.flipped:
        assert one.id in text


def test_lost_and_gained_of_each_class_have_intervals():
    comparison = compare(*made(rows=400), resamples=30)
    html = comparison_page(comparison).html
    table = html[html.index('id="class-table"') :]
    lines = table[: table.index("</table>")].split("<tr")
    for group in comparison.pairs[0].groups:
        if group.kind == "class":
            (line,) = (one for one in lines if f">{group.name}</th>" in one)
            for metric in ("lost", "gained"):
                found = group.metrics[metric]
                assert f"[{found.low:.4f}, {found.high:.4f}]" in line


def test_every_metric_says_what_it_means():
    html = page_of(*made()).html
    for name, entry in catalogue.items():
        if entry.scope != "many" and name in html.replace(" ", "_"):
            assert f'title="{entry.meaning}"'.replace("'", "&#x27;") in html


def test_many_generations_have_matrices_and_unstable_inputs():
    page = page_of(*made(count=4))
    found = read(page.html)
    names = [figure.name for figure in page.figures]
    assert names[:4] == ["over-time", "lost-over-time", "consistency", "correct-consistency"]
    assert "unstable-table" in found.ids
    assert "ambiguity" in found.text


def test_a_verdict_comes_first_and_says_where_to_look():
    found = compare(*made(), resamples=30)
    rules = [Rule(metric="lost", at_most=0.001), Rule(metric="consistency", at_least=0.1)]
    page = gate_page(judge(found, rules), found)
    text = read(page.html).text
    assert text.index("FAIL") < text.index("Rules") < text.index("What to look at next")
    assert "1 of 2 checks failed" in text
    assert page.figures[0].name == "rules"
    passing = gate_page(judge(found, rules[1:]), found)
    assert "PASS" in read(passing.html).text
    assert "Nearest to its threshold" in passing.html


def test_without_truth_nothing_is_called_lost():
    old, new = generations(truth=False)
    page = page_of(old, new)
    found = read(page.html)
    assert "transitions" not in found.ids
    assert "Inputs changed" in found.text
    assert "lost" not in [figure.name for figure in page.figures]


def test_without_flips_the_page_says_so():
    old, _ = made()
    text = read(page_of(old, old).html).text
    assert re.search(naming("No input", "No right answer"), text)


def test_labels_alone_are_enough():
    text = read(page_of(*generations(scores=False)).html).text
    assert "confidence now" not in text


@pytest.mark.slow
def test_a_hundred_classes_with_long_names_fit():
    rng = np.random.default_rng(0)
    classes = [
        f"a class with a very long name indeed, number {i}, " + "x" * 200 for i in range(100)
    ]
    truth = rng.integers(0, 100, 2000)
    said = [np.where(rng.random(2000) < 0.7, truth, rng.integers(0, 100, 2000)) for _ in range(2)]
    old, new = (
        Predictions(ids=range(2000), classes=classes, labels=one, truth=truth) for one in said
    )
    page = page_of(old, new)
    read(page.html)
    assert len(page.html.encode()) < MOST_BYTES
    for figure in page.figures:
        assert figure.width < 900
        assert len(figure.shapes) < 400


@pytest.mark.slow
def test_a_million_inputs_fit_and_the_cap_is_said():
    rng = np.random.default_rng(0)
    rows = 1_000_000
    truth = rng.integers(0, 10, rows)
    said = [np.where(rng.random(rows) < 0.8, truth, rng.integers(0, 10, rows)) for _ in range(2)]
    old, new = (
        Predictions(ids=range(rows), classes=list("abcdefghij"), labels=one, truth=truth)
        for one in said
    )
    comparison = compare(old, new, resamples=10)
    html = comparison_page(comparison).html
    assert len(html.encode()) < MOST_BYTES
    assert f"Showing 500 of {comparison.pairs[0].transitions.lost:,}." in html
    assert "--flips" in html


@pytest.mark.slow
def test_a_page_that_would_be_too_large_has_shorter_tables():
    rows = 1200
    ids = [f"{row} " + "<" * 400 for row in range(rows)]
    slices = {
        f"{column} " + "<" * 300: ["<" * 200, "&" * 200] * (rows // 2) for column in range(20)
    }
    old = Predictions(ids=ids, classes=["<" * 99, "&" * 99], labels=[0] * rows,
                      truth=[0] * rows, slices=slices)  # fmt: skip
    new = Predictions(ids=ids, classes=["<" * 99, "&" * 99], labels=[1] * rows)
    html = page_of(old, new).html
    assert len(html.encode()) < MOST_BYTES
    shown = int(re.search(r"Showing (\d+) of 1,200.", html)[1])
    assert 10 < shown < 500
    read(html)


names = st.one_of(st.sampled_from(HOSTILE), st.text(min_size=1, max_size=20))


@given(
    classes=st.lists(names, min_size=2, max_size=4, unique=True),
    ids=st.lists(names, min_size=6, max_size=6, unique=True),
    column=names,
)
def test_whatever_things_are_called_they_are_text(classes, ids, column):
    truth = np.array([0, 0, 1, 1, 0, 1])
    try:
        said = [
            Predictions(ids=ids, classes=classes, labels=labels, truth=truth, slices={column: ids})
            for labels in (truth, 1 - truth, truth)
        ]
    except InputError:
        return  # a name that predictions refuse never comes to a page
    known = comparison_page(
        compare(*said, names=[f"{name}{i}" for i, name in enumerate(ids[:3])], resamples=5)
    )
    reader = read(known.html)
    assert set(reader.tags) <= ALLOWED


ALLOWED = frozenset(
    re.findall(
        r"\w+",
        "html head meta title style body a header div p button h1 nav ul li main section h2 h3 "
        "span table caption thead tbody tr th td figure figcaption svg desc text rect polyline "
        "polygon circle path details summary label input output footer script strong",
    )
)


def test_hostile_names_are_shown_as_they_are():
    name = HOSTILE[0]
    old = Predictions(ids=[name, "b"], classes=[name, "d"], labels=[0, 1], truth=[0, 1])
    new = Predictions(ids=[name, "b"], classes=[name, "d"], labels=[1, 1])
    found = read(page_of(old, new, names=["</title>", name]).html)
    assert found.text.count(name) > 5


def test_only_the_pages_own_script_may_run():
    html = page_of(*made()).html
    assert re.search(
        r"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-",
        html.replace("&#x27;", "'"),
    )
    assert "http://" not in html
    assert "https://" not in html


def test_blocks_make_the_same_page():
    said = made(rows=60)
    whole = comparison_page(compare(*said, names=["a", "b"], resamples=5)).html
    parts = comparison_page(
        *compare_blocks(Blocks(*said, step=7, names=["a", "b"]), Settings(resamples=5))
    ).html
    assert whole == parts


@pytest.mark.parametrize("weighted", [False, True])
def test_weighted_inputs_are_counted_once(weighted):
    weights = np.linspace(1, 3, 200) if weighted else None
    page = page_of(*made(weights=weights))
    assert ("Inputs are weighted" in read(page.html).text) == weighted


@pytest.fixture(scope="module")
def judged():
    found = compare(*generations(rows=400, classes=6), names=["old", "new"], resamples=20)
    rules = [
        Rule(metric="lost", at_most=0.001, name="hardly any"),
        Rule(metric="lost", at_most=0.002, class_name="*", min_count=1),
        Rule(metric="accuracy", at_least=0.01, allow_odd=True),
    ]
    verdict = judge(found, rules)
    return verdict, found, gate_page(verdict, found)


def test_the_banner_names_failed_rules_and_leads_to_their_checks(judged):
    verdict, _, page = judged
    banner = re.search(r'<div class="verdict fail".*?</div>', page.html, flags=re.DOTALL)[0]
    links = re.findall(r'href="#([^"]+)">([^<]+)', banner)
    rules = {outcome.rule for outcome in verdict.failed}
    assert len(links) == len(rules)
    assert "hardly any" in links[0][1]
    for place, words in links:
        row = re.search(rf'<tr id="{place}">(.*?)</tr>', page.html, flags=re.DOTALL)[1]
        assert "failed" in row
        assert re.search(r"0\.\d{4}", words)[0] in row


def test_bars_have_a_scale_the_name_of_the_rule_and_a_narrow_twin(judged):
    (bars,) = (figure for figure in judged[2].figures if figure.name == "rules")
    for figure in (bars, bars.narrow):
        texts = [shape.text for shape in figure.shapes if hasattr(shape, "text")]
        assert any("hardly any" in text for text in texts)
        assert sum(re.fullmatch(r"[\d.]+", text) is not None for text in texts) >= 4
    assert bars.narrow.width < 0.5 * bars.width


def test_a_page_has_shares_and_no_percent(judged):
    assert "%" not in read(judged[2].html).text
    assert "%" not in read(comparison_page(judged[1]).html).text


def test_chart_and_table_have_the_classes_in_one_order(judged):
    (chart,) = (figure for figure in judged[2].figures if figure.name == "classes")
    html = judged[2].html
    start = html.index('id="class-table"')
    body = html[html.index("<tbody", start) : html.index("</table>", start)]
    table = re.findall(r"<th[^>]*>([^<]+)<", body)
    drawn = [row[0] for row in chart.rows]
    assert drawn == [name for name in table if name in drawn]


def test_counts_stand_beside_counts(judged):
    html = judged[2].html
    head = html[html.index('id="class-table"') :]
    head = read_heads(head[: head.index("</thead>")])
    first = head.index("inputs")
    assert head[first : first + 4] == ["inputs", "lost", "gained", "net"]


def read_heads(part):
    return [re.sub(r"<[^>]+>", "", cell).strip() for cell in re.findall(r"<th .*?</th>", part)]


def test_metrics_are_folded_and_the_footer_tells_where_it_is_from(tmp_path, monkeypatch):
    from dynsnap import __version__
    from dynsnap.predictions import write

    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    folder = tmp_path / ("deep" * 40)  # a footer has no room for all of it
    folder.mkdir()
    files = [folder / "one.parquet", folder / "two.parquet"]
    for made, file in zip(generations(), files, strict=True):
        write(made, file)
    html = comparison_page(compare(*files, resamples=5)).html
    fold = re.search(r'<details class="fold">.*?</details>', html, flags=re.DOTALL)[0]
    assert "pair-metrics" in fold
    footer = html[html.index("<footer") :]
    for part in ("1970-01-02", __version__, "one.parquet", "two.parquet", "200"):
        assert part in footer


def test_every_page_ends_with_its_date_and_versions(monkeypatch):
    from dynsnap import __version__, report

    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    bare = report.Document.of("Anything", report.document.Prose("Words."))
    footer = report.to_html(bare).partition("<footer")[2]
    assert "1970-01-02" in footer and __version__ in footer


@given(moment=st.integers(-62_135_596_800, 253_402_300_799))  # from year 1 to year 9999
@example(moment=2**31)
@example(moment=1_835_481_599)  # the last second of a leap day
def test_a_page_has_the_date_in_utc_whatever_the_clock(moment):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", str(moment))
        assert f"on {np.datetime64(moment, 's').astype('datetime64[D]')} (UTC)" in signature()
        patch.delenv("SOURCE_DATE_EPOCH")
        patch.setattr(time, "time", lambda: moment + 0.5)
        assert f"on {np.datetime64(moment, 's').astype('datetime64[D]')} (UTC)" in signature()


@pytest.mark.parametrize("asked", ["yesterday", "1.5", "1e9", "9" * 12, "9" * 20, "-" + "9" * 15])
def test_a_date_that_is_none_is_refused_in_one_line(asked, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", f"{asked}")
    with pytest.raises(PlanError, match=naming("SOURCE_DATE_EPOCH", re.escape(asked))) as found:
        signature()
    assert "\n" not in str(found.value)


@pytest.mark.parametrize("count", [13, pytest.param(30, marks=pytest.mark.slow)])
def test_many_generations_are_readable(count):
    from dynsnap import report

    made = generations(rows=60, classes=3, count=count, scores=False)
    found = compare(*made, names=[f"model-{n:02d}" for n in range(count)], resamples=2)
    document = report.comparison_document(found)
    lines = report.to_terminal(document).splitlines()
    assert len(lines) < 300
    worst = max(found.pairs, key=lambda pair: pair.metrics["lost"].value)
    assert any(worst.old in line and worst.new in line for line in lines)
    for newer in range(1, count):
        assert any(f"model-{newer - 1:02d} → model-{newer:02d}" in line for line in lines)
    page = comparison_page(found)
    figures = {figure.name: figure for figure in page.figures}
    assert len(figures["consistency"].rows) == count
    assert {"lost", "gained"} <= {one.name for one in figures["lost-over-time"].series}
    assert f"{len(found.pairs) - 10} more" in "\n".join(lines)  # what is not printed is counted
