"""What every page is made of: its head, sections, tables, and numbers that say where they come from."""

from collections.abc import Sequence
from xml.etree.ElementTree import Element

from worker.pages.figures import DASH
from worker.pages.markup import Child, fill, tag, written
from worker.pages.style import POLICY, STYLE

Cell = Element | str
WIDE = ("reason",)  # columns of prose, which must not be squeezed by the names beside them


def page(title: str, *children: Child) -> str:
    """A whole page: the same children give the same bytes; it loads nothing and runs nothing."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", title),
    )
    # The style goes in as it is: its hash is the one thing that the policy allows.
    style = Element("style")
    style.text = STYLE
    head.append(style)
    body = tag("body")
    for child in children:
        fill(body, (child, "\n"))
    return "<!DOCTYPE html>\n" + written(tag("html", head, "\n", body, lang="en")) + "\n"


def section(title: str, *children: Child) -> Element:
    """A part of the page with its heading."""
    return tag("section", tag("h2", title), *children)


def value(found: float | None, shown: str) -> Cell:
    """A number of the report: `value` holds it unrounded, the text is what a reader sees."""
    return DASH if found is None else tag("data", shown, value=repr(found))


def table(
    caption: str, head: Sequence[str], rows: Sequence[Sequence[Cell]], numbers: Sequence[str] = ()
) -> Element | None:
    """A table, or None without rows; the named columns hold numbers and stand to the right."""
    if not rows:
        return None
    kinds = ["number" if name in numbers else name if name in WIDE else None for name in head]
    titles = [tag("th", name, class_=kind, scope="col") for name, kind in zip(head, kinds, strict=True)]
    body = [
        tag("tr", *(tag("td", cell, class_=kind) for cell, kind in zip(row, kinds, strict=True)))
        for row in rows
    ]
    made = tag("table", tag("caption", caption), tag("thead", tag("tr", *titles)), tag("tbody", *body))
    return tag("div", made, class_="scroll")


def bullets(items: Sequence[str]) -> Element | None:
    """A list, or None without items."""
    return tag("ul", *(tag("li", item) for item in items)) if items else None


def folded(title: str, *children: Child) -> Element:
    """Something that a reader opens when it is wanted."""
    return tag("details", tag("summary", title), *children)
