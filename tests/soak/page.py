"""The page of the soak, docs/reference/soak.md: written from what was measured, never by hand."""

from collections.abc import Sequence

from tests.soak.elsewhere import ELSEWHERE
from tests.soak.findings import ROOT, Finding

PAGE = ROOT / "docs" / "reference" / "soak.md"
HEAD = """# Faults and load: targets and figures

Written by `make soak` (`python -m tests.soak`; rows by name: `python -m tests.soak F13 L5`). Each figure was
measured by that command and stands beside the machine it was measured on; a row that missed its target says
so. Small versions of the same checks run with every `uv run pytest`.

| row | what is done | target | measured | | machine |
| --- | --- | --- | --- | --- | --- |
"""
TAIL = """

## Where the other rows are measured

| row | what | where |
| --- | --- | --- |
"""


def rendered(found: Sequence[Finding]) -> str:
    """The page."""
    return HEAD + "\n".join(map(_line, found)) + TAIL + "\n".join(_places()) + "\n"


def _line(one: Finding) -> str:
    on = "{cores} cores at load {load}, Python {python}".format(**one.machine)
    verdict = "held" if one.held else "**missed**"
    cells = (one.row, one.check, one.target, one.measured, verdict, on)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _places() -> list[str]:
    return [f"| {row} | {what} | {where} |" for row, what, where in ELSEWHERE]
