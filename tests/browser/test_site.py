"""The docs site that `make docs` builds: links lead somewhere, and it works from a folder."""

import os
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import pytest

SITE = Path(os.environ.get("DYNSNAP_SITE") or Path(__file__).parents[2] / "site")
LOADED = {"script": "src", "img": "src", "iframe": "src", "link": "href"}


class Links(HTMLParser):
    """What a page links to, what it loads by itself, and the places in it."""

    def __init__(self, path):
        super().__init__()
        self.leads, self.loads, self.places = [], [], {""}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        said = dict(attrs)
        self.places |= {said[name] for name in ("id", "name") if said.get(name)}
        if tag == "a" and said.get("href"):
            self.leads.append(said["href"])
        elif said.get(LOADED.get(tag, "")) and said.get("rel") != "canonical":
            self.loads.append(said[LOADED[tag]])


@pytest.fixture(scope="module")
def pages():
    assert (SITE / "index.html").is_file(), "There is no site. `make docs` builds it."
    return {path: Links(path) for path in SITE.rglob("*.html") if path.name != "404.html"}


def test_every_link_leads_somewhere(pages):
    lost = []
    for path, page in pages.items():
        for link in page.leads + page.loads:
            if urlsplit(link).scheme or link.startswith("#__"):
                continue  # elsewhere, or a place that the theme's script makes
            where, place = urldefrag(link)
            target = (path.parent / unquote(where)).resolve() if where else path
            known = pages.get(target)
            if not target.is_file() or (known and unquote(place) not in known.places):
                lost.append((path.relative_to(SITE).as_posix(), link))
    assert lost == []


def test_nothing_is_loaded_from_elsewhere(pages):
    assert [link for page in pages.values() for link in page.loads if urlsplit(link).netloc] == []


def test_the_site_is_read_and_searched_from_a_folder(visit, pages):
    seen = visit(SITE / "index.html")
    seen.page.locator(".md-search__input").fill("churn")
    # Every page that has the word is found; the glossary is one of them.
    found = seen.page.locator(".md-search-result__link[href*='glossary.html']").first
    found.wait_for(state="attached")
    found.click()
    seen.page.wait_for_url("**/glossary.html*")
    assert [url for url in seen.asked if not url.startswith(("file:", "data:", "blob:"))] == []


def test_example_pages_are_the_real_ones(visit, pages):
    seen = visit(SITE / "pages.html")
    for name in ("compare", "gate", "study"):
        frame = seen.page.frame_locator(f'iframe[src="pages/{name}.html"]')
        frame.locator("main > section").first.wait_for()
