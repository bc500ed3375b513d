"""Pages rendered from the templates beside this module: every text is escaped, what cannot be seen is shown.

A page loads and runs nothing: its policy allows one style, which it names by its hash.
"""

from base64 import b64encode
from functools import cache
from hashlib import sha256
from typing import Any

from jinja2 import Environment, PackageLoader
from markupsafe import Markup

from services.model_calls.quoting import visible
from worker.pages.change_words import change_words
from worker.pages.figures import number, percent, r_multiple, shown_time
from worker.pages.forest_plot import shown_e


def render(template: str, title: str, **given: Any) -> str:
    """A whole page; the same values give the same bytes."""
    style = _environment().get_template("style.css").render()
    policy = (
        "default-src 'none'; base-uri 'none'; form-action 'none'; "
        f"style-src 'sha256-{b64encode(sha256(style.encode()).digest()).decode()}'"
    )
    return _environment().get_template(template).render(given, title=title, style=style, policy=policy)


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader(str(__package__)),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_shown,
    )
    filters = (change_words, number, percent, r_multiple, repr, shown_e, shown_time)
    made.filters.update({filter_.__name__: filter_ for filter_ in filters})
    return made


def _shown(value: object) -> object:
    """What a template writes: text of others with its unseen characters written out."""
    return visible(value, lines=True) if isinstance(value, str) and not isinstance(value, Markup) else value
