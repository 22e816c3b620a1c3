import re

import pytest

from dynsnap.report import MOST_BYTES
from dynsnap.study import read_table
from tests.browser.pages import CIFAR10, HOSTILE, PAGES, SECTIONS

TABLE = CIFAR10 / "table.csv"


@pytest.fixture(scope="session")
def pages(tmp_path_factory):
    """Where each page lies; a page is made when it is first asked for."""
    folder = tmp_path_factory.mktemp("pages")

    def path_of(name):
        path = folder / f"{name}.html"
        if not path.exists():
            path.write_text(PAGES[name]().html)
        return path

    return path_of


def test_there_is_a_page_of_every_kind():
    assert PAGES.keys() == SECTIONS.keys()
    assert len(PAGES) == 15


@pytest.mark.parametrize("name", PAGES)
def test_every_section_is_there_and_nothing_leaves_the_page(pages, visit, name):
    path = pages(name)
    assert path.stat().st_size < MOST_BYTES
    seen = visit(path)
    for section in SECTIONS[name]:
        assert seen.page.locator(f"section#{section} > h2").is_visible()
    assert len(seen.texts("nav a")) == seen.page.locator("main > section").count()
    seen.check()


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_no_page_is_wider_than_its_window(pages, visit, name, scheme, width):
    seen = visit(pages(name), width, scheme)
    wide = "() => document.documentElement.scrollWidth"
    assert seen.page.evaluate(wide) <= width
    for details in seen.page.locator("details").all():
        details.evaluate("one => { one.open = true; }")
    assert seen.page.evaluate(wide) <= width
    ground = seen.page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(20, 23, 27)")
    seen.check()


def test_a_table_is_sorted_by_any_column_and_back(pages, visit):
    seen = visit(pages("two"))
    head = seen.page.locator("#class-table thead th", has_text=re.compile(r"^gained"))
    column = f"#class-table tbody tr > :nth-child({head.evaluate('one => one.cellIndex') + 1})"
    head.locator("button").click()
    down = [int(text) for text in seen.texts(column)]
    assert head.get_attribute("aria-sort") == "descending"
    assert down == sorted(down, reverse=True)
    head.locator("button").press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    assert [int(text) for text in seen.texts(column)] == sorted(down)
    sorted_heads = "#class-table thead th[aria-sort]"
    assert seen.page.locator(sorted_heads).count() == 1
    names = seen.page.locator("#class-table thead th").first
    names.locator("button").click()
    assert names.get_attribute("aria-sort") == "ascending"
    seen.check()


def test_a_table_is_searched(pages, visit):
    seen = visit(pages("two"))
    rows = seen.page.locator("#flipped-table tbody tr:visible")
    whole = rows.count()
    field = seen.page.get_by_label("Search").last
    field.fill("heavy")
    assert 0 < rows.count() < whole
    assert all("heavy" in text for text in rows.all_inner_texts())
    assert f"of {whole} rows" in seen.page.locator("output").last.inner_text()
    field.fill("no such thing")
    assert rows.count() == 0
    field.fill("")
    assert rows.count() == whole
    seen.check()


def test_a_name_that_rows_share_is_said_once_however_they_are_sorted(pages, visit):
    seen = visit(pages("study"))
    rows = seen.page.locator("#methods-table tbody tr")
    said = "rows => rows.map(row => [row.cells[0].textContent, row.classList.contains('again')])"

    def check():
        names = rows.evaluate_all(said)
        before = [None, *(name for name, _ in names)]
        assert [again for _, again in names] == [
            name == other for (name, _), other in zip(names, before, strict=False)
        ]
        return [name for name, _ in names]

    first = check()
    seen.page.locator("#methods-table thead th", has_text="ACC-CON").locator("button").click()
    assert check() != first
    seen.check()


def test_the_shipped_study_shows_the_numbers_of_its_table(pages, visit):
    seen = visit(pages("shipped"))
    assert seen.page.locator("h1").inner_text() == "cifar10-paper"
    about = seen.page.locator(".about").inner_text()
    assert "24,400 → 30,500 → 32,500 training inputs" in about
    assert "1 replicate (7 of singlebase)" in about
    rows = {(row.method, row.combination, row.metric): row for row in read_table(TABLE)}
    shown = seen.page.locator("#methods-table tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
    )
    found = {tuple(cells[:2]): cells for cells in shown}
    for method, by, how in (
        ("singlebase", "all", "average"),
        ("extbagging", "WMV", "weighted_majority"),
        ("dynsnap-cyc", "AVG", "average"),
    ):
        for metric in ("accuracy", "consistency", "correct_consistency"):
            value = rows[method, how, metric].value
            assert f"{100 * value:.2f}" in found[method, by]
    # A picture has every method that costs anything, by name.
    names = seen.page.locator("#figure-correct-consistency-cost svg text").all_text_contents()
    assert {method for method, _, _ in rows} <= set(names)
    # Rounds stay behind, but not what is seen of them.
    assert "dynsnap-cyc" in seen.page.locator("#curves").inner_text()
    assert "generation 2 → 3" in seen.page.locator("#audit").inner_text()
    # All metrics are there to be searched, not the first ones only.
    field = seen.page.locator("#everything-table-search")
    field.fill("dynsnap-step WAVG cohen kappa")
    line = seen.page.locator("#everything-table tbody tr:visible")
    assert line.count() == 1
    assert f"{rows['dynsnap-step', 'weighted_average', 'cohen_kappa'].value:.4f}" in (
        line.inner_text()
    )
    seen.check()


def test_nothing_of_the_shipped_study_is_cut_off_on_a_wide_screen(pages, visit):
    seen = visit(pages("shipped"))
    wide = seen.page.locator(".scroll").evaluate_all(
        "all => all.filter(one => !one.closest('details') && one.scrollWidth > one.clientWidth)"
        ".map(one => one.getAttribute('aria-labelledby') || one.getAttribute('aria-label'))"
    )
    assert wide == []
    widths = seen.page.locator("#frontier figure svg").evaluate_all(
        "all => all.map(one => Math.round(one.getBoundingClientRect().width))"
    )
    assert len(set(widths)) == 1


def test_long_tables_show_where_there_is_more_below_and_beside(pages, visit):
    seen = visit(pages("shipped"), 390)
    shadows = seen.page.locator(".scroll.tall").evaluate_all(
        "all => all.map(one => getComputedStyle(one).backgroundImage.split('gradient(').length - 1)"
    )
    assert set(shadows) == {6}  # two below, two on either side: a shadow, and what covers it


def test_long_tables_are_short_on_paper(pages, visit):
    seen = visit(pages("shipped"), 720)
    rows = seen.page.locator("#everything-table tbody tr")
    assert rows.count() > 1000
    seen.page.emulate_media(media="print")
    assert seen.page.locator("#everything-table tbody tr:visible").count() == 40


def test_pictures_of_inputs_are_seen(pages, visit):
    seen = visit(pages("pictured"))
    images = seen.page.locator("#flipped-table tbody img")
    assert images.count() > 5
    sizes = images.evaluate_all("all => all.map(one => [one.naturalWidth, one.clientHeight])")
    assert {tuple(size) for size in sizes} == {(8, 48), (48, 48)}
    assert all(name for name in images.evaluate_all("all => all.map(one => one.alt)"))
    seen.check()


def test_texts_of_inputs_are_found_by_searching(pages, visit):
    seen = visit(pages("study"))
    field = seen.page.locator("#flipped-table-search")
    field.fill("<b>bold</b>")
    rows = seen.page.locator("#flipped-table tbody tr:visible")
    assert rows.count() == 1
    assert "a <b>bold</b> text" in rows.inner_text()
    seen.check()


def test_the_contents_stay_in_sight_and_links_lead_below_them(pages, visit):
    seen = visit(pages("study"))
    seen.page.locator("nav a", has_text="Theorems").click()
    seen.page.wait_for_function("() => scrollY > 500")
    nav, head = (seen.page.locator(one).bounding_box() for one in ("nav", "#audit > h2"))
    assert nav["y"] == 0
    assert head["y"] >= nav["height"]


@pytest.mark.parametrize("name", ["two", "hundred", "many", "gate", "pictured", "study", "shipped"])
def test_a_page_fits_on_paper(pages, visit, name):
    seen = visit(pages(name), 720)
    seen.page.emulate_media(media="print")
    assert seen.page.evaluate("() => document.documentElement.scrollWidth") <= 720


def test_a_metric_is_explained_on_hover_on_focus_and_until_escape(pages, visit):
    seen = visit(pages("two"))
    seen.page.locator("details.fold:has(#pair-metrics)").evaluate("one => { one.open = true; }")
    term = seen.page.locator("#pair-metrics tbody .term", has_text="churn").first
    tip = seen.page.locator("#tip")
    assert not tip.is_visible()
    term.scroll_into_view_if_needed()
    seen.settle()  # a late scroll event hides the tip
    term.hover()
    assert tip.inner_text() == "Share of inputs whose label changed."
    seen.page.keyboard.press("Escape")
    assert not tip.is_visible()
    seen.page.mouse.move(0, 0)
    term.focus()
    assert tip.is_visible()
    assert term.get_attribute("aria-description") == tip.inner_text()
    seen.check()


def test_colours_are_switched_by_a_button(pages, visit):
    seen = visit(pages("gate"))
    ground = "() => getComputedStyle(document.body).backgroundColor"
    before = seen.page.evaluate(ground)
    button = seen.page.get_by_role("button", name="Switch to dark colours")
    button.click()
    assert seen.page.evaluate(ground) != before
    seen.page.get_by_role("button", name="Switch to light colours").click()
    assert seen.page.evaluate(ground) == before
    seen.check()


def test_hostile_names_are_shown_as_text(pages, visit):
    seen = visit(pages("hostile"))
    assert HOSTILE in seen.page.title()
    assert HOSTILE in seen.page.locator("h1").inner_text()
    assert HOSTILE in seen.page.locator("#flipped-table").inner_text()
    assert seen.page.locator("script").count() == 1
    assert seen.page.locator("img").count() == 0
    for head in seen.page.locator("#flipped-table th button").all():
        head.click()
    seen.page.get_by_label("Search").last.fill("<script>")
    seen.check()


def test_the_keyboard_reaches_the_content_first(pages, visit):
    seen = visit(pages("two"))
    seen.page.keyboard.press("Tab")
    focused = "() => document.activeElement.textContent"
    assert seen.page.evaluate(focused) == "Skip to the content"
    seen.page.keyboard.press("Enter")
    assert seen.page.evaluate("() => document.activeElement.id") == "content"
    outlined = seen.page.locator(".scroll").first
    outlined.focus()
    assert outlined.evaluate("one => one === document.activeElement")


def test_every_figure_and_table_has_a_name(pages, visit):
    seen = visit(pages("many"))
    for svg in seen.page.locator("figure svg").all():
        assert svg.get_attribute("role") == "img"
        ids = svg.get_attribute("aria-labelledby").split()
        assert all(seen.page.locator(f"[id='{one}']").text_content() for one in ids)
    tables = seen.page.locator("table")
    assert tables.count() == seen.page.locator("table > caption").count() > 5


def test_without_scripts_the_page_is_whole(pages, visit):
    seen = visit(pages("gate"), java_script_enabled=False)
    assert seen.page.locator("#rules-table tbody tr").count() == 2
    assert not seen.page.locator(".search").first.is_visible()
    assert seen.page.get_by_text("FAIL", exact=True).is_visible()


def test_a_page_prints(pages, visit):
    seen = visit(pages("two"), scheme="dark")
    assert seen.page.pdf().startswith(b"%PDF")
    seen.page.emulate_media(media="print")
    assert not seen.page.locator("nav").is_visible()
    ground = seen.page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    assert ground == "rgb(255, 255, 255)"
