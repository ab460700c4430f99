"""The machine's own Chromium without a network, for tests of pages."""

import os
import shutil
from contextlib import contextmanager

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
# Nothing has an address, should a page ask for one.
OFFLINE = ["--host-resolver-rules=MAP * ~NOTFOUND", "--no-proxy-server"]


def find_chromium():
    """The path in CHROMIUM, if that is set, or what is installed."""
    names = [os.environ.get("CHROMIUM", ""), *NAMES]
    return next((path for name in names if (path := shutil.which(name))), None)


@contextmanager
def open_browser():
    """A browser of Playwright's, to open pages in."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    path = find_chromium()
    if path is None:
        pytest.skip("needs Chromium; its path can be given in CHROMIUM")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=OFFLINE)
        yield browser
        browser.close()


class Visit:
    """A page that is open, what it said on the console, and what it asked for."""

    def __init__(self, browser, path, width=1280, scheme="light", touch=False):
        self.said = []
        self.asked = []
        self.context = browser.new_context(
            viewport={"width": width, "height": 800},
            color_scheme=scheme,
            has_touch=touch,
            offline=True,
        )
        self.page = self.context.new_page()
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("body[data-drawn]")

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.context.close()

    def scroll_to(self, place):
        """Scroll, and wait for what the page then does, with the next frame."""
        place.scroll_into_view_if_needed()
        frame = "requestAnimationFrame(() => setTimeout(done))"
        self.run(f"() => new Promise((done) => {frame})")

    def run(self, code, *args):
        """What a JavaScript function returns."""
        return self.page.evaluate(code, *args)
