"""The list of all reports of a run: what each recommended, and what the judge said."""

from collections.abc import Sequence
from typing import Any

from worker.pages.rendering import render
from worker.pages.shapes import GRADES


def index_html(entries: Sequence[dict[str, Any]]) -> str:
    """The page, oldest report first."""
    return render("index.html", "Reports", entries=entries, grades=GRADES)
