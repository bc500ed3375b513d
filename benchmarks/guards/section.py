"""The page docs/reference/guards.md: each command writes between its own markers."""

from tools.docs_pages import ROOT

PAGE = ROOT / "docs" / "reference" / "guards.md"


def write_section(name: str, text: str) -> None:
    """Put a text between `<!-- NAME -->` and `<!-- NAME: end -->`."""
    begin, end = f"<!-- {name} -->", f"<!-- {name}: end -->"
    before, _, rest = PAGE.read_text("utf-8").partition(begin)
    _, _, after = rest.partition(end)
    PAGE.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}", "utf-8")
