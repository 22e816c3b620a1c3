"""Pages in a real Chromium: `make test-browser` runs these, and `make test` leaves them out."""

import os
import shutil
from pathlib import Path

import pytest

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
# Plain `make test` needs no browser.
collect_ignore_glob = [] if os.environ.get("DYNSNAP_TEST_BROWSER") else ["test_*.py"]
CHROMIUM = os.environ.get("DYNSNAP_CHROMIUM") or shutil.which("chromium")


@pytest.fixture(scope="session")
def chromium():
    """A browser that is started once."""
    from playwright.sync_api import sync_playwright

    assert CHROMIUM, "There is no chromium. `make test-browser` installs it."
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS, timeout=0)
        yield browser
        browser.close()


class Visit:
    """An open page that remembers what it said and what it asked for."""

    def __init__(self, page, address):
        self.page, self.said, self.asked = page, [], []
        page.on("console", lambda message: self.said.append(message.text))
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.on("dialog", lambda dialog: (self.said.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: self.asked.append(request.url))
        page.goto(address)
        self.address = address

    def settle(self):
        """Wait until the page has drawn itself anew, and has heard of all that happened before."""
        self.page.evaluate(
            "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )

    def texts(self, selector):
        return self.page.locator(selector).all_inner_texts()

    def check(self):
        """Nothing was said to the console, and nothing left the page."""
        assert self.said == []
        # Links within the page ask for nothing, pictures lie in the page itself.
        asked = [url for url in self.asked if not url.startswith("data:image/png;")]
        assert asked == [self.address]


@pytest.fixture
def visit(chromium):
    """Opens a file at a width and in a colour scheme."""
    contexts = []

    def opened(path, width=1280, scheme="light", **more):
        context = chromium.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=scheme,
            reduced_motion="reduce",  # a page that glides is not yet where it is looked at
            **more,
        )
        contexts.append(context)
        # Long for a busy machine, and short enough that what never comes is a failure, not a hang.
        context.set_default_timeout(60_000)
        return Visit(context.new_page(), Path(path).as_uri())

    yield opened
    for context in contexts:
        context.close()
