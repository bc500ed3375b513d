"""Three tabs on the live page of a console, open until the standard input ends: a process of L9."""

import sys

from tools.chromium import tab

PAGES = 3


def main(url: str) -> None:
    """Open them, say so, and say at the end how many rows each has shown beyond the first drawing."""
    with tab(online=True) as first:
        pages = [first, *(first.context.new_page() for _ in range(PAGES - 1))]
        drawn = []
        for page in pages:
            page.goto(f"{url}/live?run=latest")
            page.wait_for_selector("#stream:has-text('connected')")
            drawn.append(_newest(page))
        sys.stdout.write("open\n")
        sys.stdout.flush()
        sys.stdin.read()
        shown = [_newest(page) - before for page, before in zip(pages, drawn, strict=True)]
        sys.stdout.write(" ".join(map(str, shown)) + "\n")


def _newest(page) -> int:
    return int(page.evaluate("Number(document.querySelector('#rows tr')?.dataset.seq ?? -1)"))


if __name__ == "__main__":
    main(sys.argv[1])
