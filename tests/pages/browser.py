"""What holds for every page in a browser. A file of tests awaits what it needs before it opens one."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import ConsoleMessage, Page, Route

from tools.chromium import MISSING, PROGRAM, tab

WIDTHS = (1280, 400)
SCHEMES = ("light", "dark")

# Every piece of text that is less readable than WCAG 2 AA asks: 4.5 to 1, and 3 to 1 where it is large.
FAINT = """() => {
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const known = new Map();
  const rgba = (color) => {
    if (!known.has(color)) {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = color;
      canvas.fillRect(0, 0, 1, 1);
      known.set(color, [...canvas.getImageData(0, 0, 1, 1).data]);
    }
    return known.get(color);
  };
  const light = ([r, g, b]) => [r, g, b]
    .map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, k) => sum + c * [0.2126, 0.7152, 0.0722][k], 0);
  const paper = rgba(matchMedia('(prefers-color-scheme: dark)').matches ? 'black' : 'white');
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement ?? at.getRootNode().host) {
      const found = rgba(getComputedStyle(at).backgroundColor);
      if (found[3] === 255) return found;
    }
    return paper;
  };
  const faint = [];
  const walk = (root) => {
    const texts = document.createTreeWalker(root, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT);
    for (let node = texts.nextNode(); node; node = texts.nextNode()) {
      if (node.shadowRoot) walk(node.shadowRoot);
      const parent = node.parentElement;
      if (node.nodeType !== Node.TEXT_NODE || !parent || !/[\\p{L}\\p{N}]/u.test(node.data)) continue;
      if (!parent.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true })) continue;
      const style = getComputedStyle(parent);
      const color = parent.closest('svg') ? style.fill : style.color;
      const [a, b] = [light(rgba(color)), light(behind(parent))].sort((x, y) => y - x);
      const size = parseFloat(style.fontSize);
      const large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
      const ratio = (a + 0.05) / (b + 0.05);
      if (ratio < (large ? 3 : 4.5)) faint.push(`${ratio.toFixed(2)}: ${node.data.trim().slice(0, 60)}`);
    }
  };
  walk(document.documentElement);
  return faint;
}"""

needs_browser = pytest.mark.skipif(PROGRAM is None, reason=MISSING)


class Window:
    """One tab: opens files, and notes each request for anything else, and each error."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.faults: list[str] = []
        page.route(lambda address: not address.startswith(("file:", "data:", "blob:")), self._refuse)
        page.on("pageerror", lambda error: self.faults.append(f"script: {error}"))
        page.on("console", self._heard)

    def open(self, file: Path, width: int, scheme: Any) -> Page:
        """The page of a file with everything folded in it unfolded."""
        self.page.set_viewport_size({"width": width, "height": 900})
        self.page.emulate_media(color_scheme=scheme)
        self.page.goto(file.as_uri())
        self.page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        return self.page

    def overflow(self) -> int:
        """How many pixels of the document lie beyond the right edge of the window."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - innerWidth"))

    def faint(self) -> list[str]:
        """Texts that are hard to read, each with its contrast."""
        return [str(item) for item in self.page.evaluate(FAINT)]

    def _refuse(self, route: Route) -> None:
        self.faults.append(f"request: {route.request.url}")
        route.abort()

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.faults.append(f"console: {message.text}")


@contextmanager
def window() -> Iterator[Window]:
    """A tab whose faults are noted; closed with its browser."""
    with tab() as page:
        yield Window(page)
