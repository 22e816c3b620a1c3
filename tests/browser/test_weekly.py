"""The pages of the retrain loop, `history` and `watch`, in a real Chromium."""

import itertools
import re

import pytest

from tests.browser.pages import HOSTILE, PAGES, quiet, traffic, weeks


@pytest.fixture(scope="session")
def pages(tmp_path_factory):
    """Where each page lies; a page is made when it is first asked for."""
    folder = tmp_path_factory.mktemp("weekly")

    def path_of(name):
        path = folder / f"{name}.html"
        if not path.exists():
            path.write_text({**PAGES, "quiet": quiet}[name]().html)
        return path

    return path_of


def cells(seen, table):
    return seen.page.locator(f"#{table} tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.cells].map(cell => cell.innerText))"
    )


def cut_off(seen):
    return seen.page.locator(".scroll").evaluate_all(
        "all => all.filter(one => !one.closest('details') && one.scrollWidth > one.clientWidth)"
        ".map(one => one.getAttribute('aria-labelledby') || one.getAttribute('aria-label'))"
    )


def overlapping(seen, figure):
    """Pairs of words in a figure that lie on each other."""
    return seen.page.locator(f"#{figure} svg text").evaluate_all(
        """all => {
          const boxes = all.map(one => [one.textContent, one.getBoundingClientRect()]);
          const found = [];
          for (const [i, [a, p]] of boxes.entries())
            for (const [b, q] of boxes.slice(i + 1))
              if (p.left < q.right - 1 && q.left < p.right - 1 &&
                  p.top < q.bottom - 1 && q.top < p.bottom - 1) found.push([a, b]);
          return found;
        }"""
    )


def test_the_history_shows_every_week_with_its_outcome(pages, visit):
    seen = visit(pages("history"))
    found = weeks()
    shown = cells(seen, "retrains-table")
    assert [row[0] for row in shown] == [row.period for row in found.rows]
    assert [row[1] for row in shown] == [str(row.generation) for row in found.rows]
    outcomes = [row[2] for row in shown]
    assert outcomes[:4] == ["first", "deployed", "failed", "unresolved"]
    assert "GENERATION 13" in seen.page.locator("body").inner_text()
    assert "2024-03-04" in seen.page.locator("#retrains").inner_text()  # the week without rows
    assert cut_off(seen) == []  # on a wide screen
    seen.check()


def test_the_newest_week_can_be_found_by_sorting(pages, visit):
    seen = visit(pages("history"))
    head = seen.page.locator("#retrains-table thead th").first
    head.locator("button").click()
    head.locator("button").click()
    assert cells(seen, "retrains-table")[0][0] == weeks().rows[-1].period
    seen.check()


@pytest.mark.parametrize("name", ["history", "history_hostile", "watch", "watch_hostile"])
@pytest.mark.parametrize("width", [1280, 390])
def test_words_in_charts_do_not_lie_on_each_other(pages, visit, name, width):
    seen = visit(pages(name), width)
    figures = seen.page.locator("figure").evaluate_all("all => all.map(one => one.id)")
    assert figures
    for figure in figures:
        assert overlapping(seen, figure) == []


@pytest.mark.parametrize("name", ["history", "watch"])
def test_a_date_stays_on_one_line(pages, visit, name):
    seen = visit(pages(name), 390)
    heights = seen.page.locator("tbody th.date").evaluate_all(
        "all => all.map(one => Math.round(one.getBoundingClientRect().height))"
    )
    assert len(heights) > 10 and max(heights) < 45  # pixels; two lines are more


def test_a_watch_page_leads_from_an_alarm_to_its_slice(pages, visit):
    seen = visit(pages("watch"))
    loud = [part for part in traffic(("north", "south", "east")).slices if part.alarm]
    assert [part.value for part in loud] == ["north"]
    link = seen.page.get_by_role("link", name=re.compile("north"))
    assert loud[0].alarm in link.inner_text()
    assert link.get_attribute("href") == "#slices"
    assert seen.page.locator("#slices figure svg").count() == 1
    assert "north" in seen.page.locator("#slices figure").inner_text()
    rows = cells(seen, "slices-table")
    assert rows[0][1] == "north" and rows[0][-1] == loud[0].alarm
    assert "2024-05-21" in seen.page.locator("#notes").inner_text()  # a day without rows
    days = cells(seen, "days-table")
    assert len(days) == 58 and days[0][0] == "2024-06-29"
    seen.check()


def test_a_gap_of_days_is_a_gap_in_the_chart(pages, visit):
    seen = visit(pages("watch"))
    places = seen.page.locator("#figure-disagreement svg circle").evaluate_all(
        "all => all.map(one => +one.getAttribute('cx'))"
    )
    steps = sorted({round(b - a, 1) for a, b in itertools.pairwise(places) if b > a})
    assert len(steps) > 1 and steps[-1] == pytest.approx(3 * steps[0], rel=0.1)


@pytest.mark.parametrize("name", ["history_hostile", "watch_hostile"])
def test_hostile_names_are_shown_as_text(pages, visit, name):
    seen = visit(pages(name))
    assert HOSTILE in seen.page.locator("body").inner_text()
    assert seen.page.locator("script").count() == 1
    assert seen.page.locator("img").count() == 0
    seen.check()


@pytest.mark.parametrize("name", ["history", "watch"])
def test_they_print_in_light_colours_and_whole(pages, visit, name):
    seen = visit(pages(name), 720, "dark")
    assert seen.page.pdf().startswith(b"%PDF")
    seen.page.emulate_media(media="print")
    ground = seen.page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    assert ground == "rgb(255, 255, 255)"
    assert not seen.page.locator("nav").is_visible()
    table = {"history": "retrains-table", "watch": "days-table"}[name]
    assert seen.page.locator(f"#{table} tbody tr:visible").count() >= 14


@pytest.mark.parametrize("name", ["history", "watch"])
def test_figures_and_tables_have_names_and_need_no_script(pages, visit, name):
    seen = visit(pages(name), java_script_enabled=False)
    for svg in seen.page.locator("figure svg").all():
        assert svg.get_attribute("role") == "img"
    tables = seen.page.locator("table")
    assert tables.count() == seen.page.locator("table > caption").count() > 1


def test_a_single_quiet_day_is_a_page(pages, visit):
    seen = visit(pages("quiet"), 390, "dark")
    assert "NO ALARM" in seen.page.locator("body").inner_text()
    assert "NaN" not in seen.page.content()
    assert len(cells(seen, "days-table")) == 1
    seen.check()
