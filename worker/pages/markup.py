"""Elements of a picture that can hold text and nothing else where text was meant.

The tree is built and written by the standard library, which escapes every text and attribute; characters that
cannot be seen are written out first. No picture is put together from strings.
"""

from collections.abc import Iterable
from xml.etree.ElementTree import Element, tostring

from services.model_calls.quoting import visible

Child = Element | str | None


def tag(name: str, /, *children: Child, **attributes: str | float | None) -> Element:
    """One element; children in order, None left out.

    Attributes are written with `-` for `_`, without one at the end (`class_`, `aria_label`); None leaves one
    out, and numbers are written with two digits at most.
    """
    element = Element(name)
    for key, value in attributes.items():
        if value is not None:
            element.set(key.rstrip("_").replace("_", "-"), _attribute(value))
    return fill(element, children)


def fill(element: Element, children: Iterable[Child]) -> Element:
    """Append children to an element and give it back."""
    for child in children:
        if isinstance(child, str):
            _append_text(element, visible(child, lines=True))
        elif child is not None:
            element.append(child)
    return element


def written(element: Element) -> str:
    """The element as HTML."""
    return tostring(element, encoding="unicode", method="html")


def _attribute(value: str | float) -> str:
    if isinstance(value, str):
        return visible(value)
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def _append_text(element: Element, text: str) -> None:
    if len(element):
        element[-1].tail = (element[-1].tail or "") + text
    else:
        element.text = (element.text or "") + text
