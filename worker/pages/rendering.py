"""Pages rendered from the templates beside this module: every text is escaped, what cannot be seen is shown.

A page loads nothing, and runs nothing but the scripts that its policy names by their hashes.
"""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib import resources
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader
from markupsafe import Markup

from services.model_calls.quoting import visible
from worker.pages.figures import number, percent, r_multiple, shown_time


def render(template: str, title: str, scripts: Sequence[str] = (), **given: Any) -> str:
    """A whole page; the same values give the same bytes.

    Args:
        template: beside this module.
        title: of the page.
        scripts: what it runs, in order; they may draw, which needs styles of their own.
        given: what the template shows.
    """
    style = _environment().get_template("style.css").render()
    sources = " ".join(map(_source, scripts))
    drawn = f"img-src data: blob:; script-src {sources}; style-src 'unsafe-inline'"
    policy = "default-src 'none'; base-uri 'none'; form-action 'none'; " + (
        drawn if scripts else f"style-src {_source(style)}"
    )
    return (
        _environment()
        .get_template(template)
        .render(given, title=title, style=style, policy=policy, scripts=scripts)
    )


def render_markdown(template: str, **given: Any) -> str:
    """A page of Markdown from a template that makes text of others harmless itself."""
    return _plain_environment().get_template(template).render(given).rstrip() + "\n"


def template_text(name: str) -> str:
    """A file beside the templates that is none."""
    return (resources.files(str(__package__)) / "templates" / name).read_text("utf-8")


def _source(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def page_environment(*packages: str) -> Environment:
    """Templates of packages, the first that has one, with our filters; every text is escaped."""
    made = Environment(
        loader=ChoiceLoader([PackageLoader(package) for package in packages]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_show,
    )
    filters = (number, percent, r_multiple, repr, shown_time)
    made.filters.update({filter_.__name__: filter_ for filter_ in filters})
    return made


@cache
def _environment() -> Environment:
    return page_environment(str(__package__))


@cache
def _plain_environment() -> Environment:
    made = _environment().overlay(autoescape=False, finalize=None)
    made.filters["plain_words"] = _plain_words
    return made


def _plain_words(words: str) -> str:
    """Names of symbols come from a foreign file: they stay text."""
    words = visible(words)
    for sign in "\\|`*<[":
        words = words.replace(sign, f"\\{sign}")
    return words


def _show(value: object) -> object:
    """What a template writes: text of others with its unseen characters written out."""
    return visible(value, lines=True) if isinstance(value, str) and not isinstance(value, Markup) else value


def change_words(change: Mapping[str, Any]) -> str:
    """`try stop_atr 2 on paper`; what the words leave out follows by name, and nothing is `no change`."""
    shown, names = _sentence(change)
    rest = [f"{name} {change[name]}" for name in sorted(change.keys() - names)]
    return ", ".join([*shown, *rest]) or "no change"


def _sentence(change: Mapping[str, Any]) -> tuple[list[str], set[str]]:
    """The words of a complete change, and the fields that they tell."""
    match change:
        case {"kind": "set_eligibility", "regime": regime, "eligible": bool(eligible)}:
            side = f" {change['direction']}" if change.get("direction") else ""
            verb = "trade again" if eligible else "ban"
            return [f"{verb}{side} in {regime}"], {"kind", "regime", "eligible", "direction"}
        case {"kind": "set_risk_fraction", "value": float(value)}:
            return [f"risk {100 * value:g} % of equity a trade"], {"kind", "value"}
        case {"kind": "open_experiment", "parameter": parameter, "value": int() | float() as value}:
            return [f"try {parameter} {value:g} on paper"], {"kind", "parameter", "value"}
        case {"kind": str(), "parameter": parameter, "value": int() | float() as value}:
            return [f"trade with {parameter} {value:g}"], {"kind", "parameter", "value"}
        case {"kind": "replan"}:
            return ["plan anew"], {"kind"}
    return [], set()
