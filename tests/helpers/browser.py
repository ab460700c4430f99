"""Open pages in an installed Chromium, without a network."""

import os
import shutil
from contextlib import contextmanager

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
# With these options, a page that requests an address of another machine gets an error.
OFFLINE = [
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--no-proxy-server",
]


def find_chromium():
    """Return the path of Chromium, or None if there is none.

    The environment variable CHROMIUM comes first, then the usual names in PATH.
    """
    names = [os.environ.get("CHROMIUM", ""), *NAMES]
    return next((path for name in names if (path := shutil.which(name))), None)


@contextmanager
def open_browser():
    """Start a browser, or skip the test if none is installed."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    path = find_chromium()
    if path is None:
        pytest.skip("needs Chromium; its path can be given in CHROMIUM")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=OFFLINE)
        yield browser
        browser.close()


class Visit:
    """A page that is open in a browser.

    address (Path | str): The file of the page, or its address on this machine.
    ready (str): The selector of an element that exists as soon as the page is drawn.
    said (list[str]): The messages and errors that the page wrote to the console.
    asked (list[str]): The addresses that the page requested.
    """

    def __init__(
        self,
        browser,
        address,
        width=1280,
        scheme="light",
        touch=False,
        locale="en-US",
        ready="body[data-drawn]",
    ):
        self.said = []
        self.asked = []
        self.context = browser.new_context(
            viewport={"width": width, "height": 800},
            color_scheme=scheme,
            has_touch=touch,
            locale=locale,
            offline=not isinstance(address, str),
        )
        self.page = self.context.new_page()
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(address if isinstance(address, str) else address.as_uri())
        self.page.wait_for_selector(ready)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.context.close()

    def scroll_to(self, place):
        """Scroll to an element, and wait until the page has drawn itself again."""
        place.scroll_into_view_if_needed()
        frame = "requestAnimationFrame(() => setTimeout(done))"
        self.run(f"() => new Promise((done) => {frame})")

    def run(self, code, *args):
        """Run a JavaScript function, and return its result."""
        return self.page.evaluate(code, *args)
