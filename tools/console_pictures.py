"""Pictures of the console for the docs, `python -m tools.console_pictures`: a plan that waits, and a run."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.chromium import tab
from tools.docs_pages import DOCS

FOLDER = DOCS / "images"
WIDTH, HEIGHT = 960, 720
NAME, PASSWORD = "ann", "correct horse battery"
PROGRAM = (sys.executable, "-m", "thinktwice")
RUN = ("backtest", "--symbols", "IBM", "--from", "2003-01-01", "--to", "2006-12-31")
PLAN = ("plans", "make", "set-risk-fraction", "channel_breakout", "--value", "0.0025", "--into", "books")


def draw(url: str, folder: Path) -> list[Path]:
    """Draw the newest plan and the newest run as an operator sees them who has logged in."""
    places = {"console-plan.png": "/plans", "console-run.png": "/runs/latest"}
    with tab(WIDTH, HEIGHT, online=True) as page:
        page.goto(f"{url}/login")
        page.fill("input[name=name]", NAME)
        page.fill("input[name=password]", PASSWORD)
        page.click("button[type=submit]")
        page.wait_for_selector(f"text={NAME}, operator")
        for name, place in places.items():
            page.goto(url + place)
            if place == "/plans":
                page.click("main a")
                page.wait_for_selector("text=Approve this revision")
            else:
                page.wait_for_selector("#chart[data-drawn]")
                page.click("#previous")
                page.wait_for_selector("#decision li")
                page.evaluate("document.getElementById('chart').scrollIntoView()")
            page.screenshot(path=folder / name)
    return [folder / name for name in places]


def main() -> int:
    """Make a store, and draw its pages over those of the docs."""
    own = os.environ | {"LOGNAME": NAME}
    with tempfile.TemporaryDirectory() as made:
        for words in (RUN, PLAN):
            subprocess.run([*PROGRAM, *words], cwd=made, check=True, capture_output=True, env=own)
        ann = ("console", "user", "add", NAME, "--role", "operator")
        subprocess.run([*PROGRAM, *ann], cwd=made, check=True, input=PASSWORD, text=True)
        console = subprocess.Popen(
            [*PROGRAM, "console", "--port", "0"], cwd=made, stderr=subprocess.PIPE, text=True, env=own
        )
        try:
            found = re.search(r"http://\S+", console.stderr.readline() if console.stderr else "")
            if found is None:
                raise SystemExit("the console did not open")
            draw(found[0], FOLDER)
        finally:
            console.terminate()
            console.communicate()
    return 0


if __name__ == "__main__":
    sys.exit(main())
