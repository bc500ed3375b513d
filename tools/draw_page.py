"""Makes the README's picture of the page of a run.

    uv run python -m tools.draw_page PAGE PICTURE

PAGE is written by `thinktwice page RUN --html PAGE` or `thinktwice backtest --html PAGE`. The picture is a
PNG of what a browser shows of it: the figures, the curves, and the candles around one trade.
"""

import sys
from pathlib import Path

from schemas.errors import ConfigError
from tools.chromium import MISSING, PROGRAM, tab

WIDTH, HEIGHT = 1180, 1400
SHOWN_TRADE = 3  # of the table, whose first is the newest
DRAWN = "html[data-drawn=true]"


def draw_page(source: Path, target: Path) -> None:
    """Write the picture of a page.

    Raises:
        ConfigError: there is no browser.
    """
    if PROGRAM is None:
        raise ConfigError(MISSING)
    with tab(WIDTH, HEIGHT) as page:
        page.emulate_media(color_scheme="light")
        page.goto(source.resolve().as_uri())
        page.wait_for_selector(DRAWN)
        page.locator("#trades tbody tr").nth(SHOWN_TRADE).click()
        page.evaluate("document.querySelector('#months').hidden = true")
        page.wait_for_selector("#why details")
        page.evaluate("window.scrollTo(0, 0)")
        target.parent.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=target, animations="disabled")


if __name__ == "__main__":
    draw_page(Path(sys.argv[1]), Path(sys.argv[2]))
