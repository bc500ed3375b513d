"""Debian's Chromium, headless and without a network: for the tests of the pages and for their picture."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Page, sync_playwright

NAME = "chromium-headless-shell"
MISSING = f"{NAME} is missing: as root, `apt-get install {NAME}`"
PROGRAM = shutil.which(NAME)
DEADLINE_MS = 20_000


@contextmanager
def tab(width: int = 1280, height: int = 900, *, online: bool = False) -> Iterator[Page]:
    """An empty tab that reaches files and nothing else, `online` also servers; closed with its browser.

    Playwright's loop runs in the thread until then: nothing else can be awaited meanwhile.
    """
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=PROGRAM)
        try:
            context = browser.new_context(offline=not online, viewport={"width": width, "height": height})
            page = context.new_page()
            page.set_default_timeout(DEADLINE_MS)
            yield page
        finally:
            browser.close()
