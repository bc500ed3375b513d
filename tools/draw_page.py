"""Makes the README's picture of the page of a run.

    uv run python -m tools.draw_page PAGE PICTURE

PAGE is written by `thinktwice page RUN --html PAGE` or `thinktwice backtest --html PAGE`. The picture is a
PNG of what a browser shows of its top.
"""

import sys
from pathlib import Path

from schemas.errors import ConfigError
from tools.chromium import MISSING, PROGRAM, tab

WIDTH, HEIGHT = 1180, 1240
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
        target.parent.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=target, animations="disabled")


if __name__ == "__main__":
    draw_page(Path(sys.argv[1]), Path(sys.argv[2]))
