"""Writes what the documentation says about the code from the code: diagrams, commands, settings, states.

`make docs` runs it; `--check` changes nothing and exits 1 when a page is not what the code would write. The
tests call `stale_pages`, so a page cannot fall behind.
"""

import re
import sys
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from typer.main import get_command
from typer.testing import CliRunner

from benchmarks import peer_settings, semantics
from schemas.plan import CHANGE_FORMS, fields_of
from schemas.timeframes import USUAL
from schemas.vocabulary import TickEventKind
from services.journal.kinds import JOURNAL_KINDS
from services.plans.detection import LAST_PLAN, PATTERNS, WEIGHTS
from tools import docs_configuration, docs_diagrams
from tools.docs_pages import ROOT, pages, table, with_blocks
from trading_core.bars import BarSeries
from trading_core.features import FEATURES, compute, resolve
from trading_core.features.nodes import RANK_MINIMUM, RANK_WINDOW
from trading_core.features.registry import HIGHER_TIMEFRAMES
from trading_core.kernel.records import CLAMPS, REFUSALS
from trading_core.kernel.state_machine import TRANSITIONS
from trading_core.regime import RegimeSettings
from trading_core.rules.grammar import MAX_DEPTH, MAX_TEXT
from worker.cli import app

HELP_COLUMNS = "88"
OPTION = re.compile(r"^  -\S.*\n(?: {10,}\S.*\n)*", re.M)  # with the lines that its text goes on
SHARED_BY = 4  # commands


def transitions() -> str:
    """The table of legal transitions."""
    rows = [(f"`{source}`", f"`{target}`", why) for (source, target), why in TRANSITIONS.items()]
    return table(("from", "to", "when"), rows)


def commands() -> list[list[str]]:
    """Words of every command, the program itself first."""
    found: list[list[str]] = [[]]

    def walk(command: Any, words: list[str]) -> None:
        for name, inner in sorted(getattr(command, "commands", {}).items()):
            if not getattr(inner, "hidden", False):
                found.append([*words, name])
            walk(inner, [*words, name])

    walk(get_command(app), [])
    return found


def command_line() -> str:
    """The help of every command, as the program prints it; options that many share stand once, before all."""
    helps = {" ".join(["thinktwice", *words]): _help(words) for words in commands()}
    uses = Counter(" ".join(option.split()) for text in helps.values() for option in OPTION.findall(text))
    shared = {option for option, count in uses.items() if count >= SHARED_BY}
    parts = ["## Options of many commands\n\nLeft out of the texts below.\n\n"]
    parts[0] += table(("option", "means"), [_option_row(option) for option in sorted(shared)])
    for name, text in helps.items():
        own = OPTION.sub(lambda option: "" if " ".join(option[0].split()) in shared else option[0], text)
        parts.append(f"## {name}\n\n```text\n{own.strip()}\n```")
    return "\n\n".join(parts)


def _help(words: list[str]) -> str:
    env = {"COLUMNS": HELP_COLUMNS}
    text = CliRunner().invoke(app, [*words, "--help"], prog_name="thinktwice", env=env).stdout
    return "\n".join(line.rstrip() for line in text.strip().splitlines()) + "\n"


def _option_row(option: str) -> tuple[str, str]:
    """Names with what they take, up to the first word of the sentence; and the sentence."""
    words = option.split()
    taken = next(
        place for place, word in enumerate(words) if word[0].isupper() and not word.rstrip(",").isupper()
    )
    return f"`{' '.join(words[:taken])}`", " ".join(words[taken:]).replace("|", "\\|")


def features() -> str:
    """Every feature family."""
    rows = [
        (
            f"`{family.pattern}`",
            f"`{family.example}`",
            family.unit,
            str(resolve(family.example).lookback),
            family.doc,
        )
        for family in FEATURES.values()
    ]
    return table(("name", "example", "unit", "unknown for", "meaning"), rows)


def higher_timeframes() -> str:
    """The timeframes that a feature may be read from."""
    usual = [name for name in USUAL if name in HIGHER_TIMEFRAMES]
    return f"Timeframes: {_names(usual)}, and other minutes and hours that divide a day."


def higher_bars() -> str:
    """What `close_1h` shows on some 15-minute bars, one of them missing."""
    labels = pd.date_range("2024-01-02 09:00", periods=11, freq="15min", tz="UTC")
    closes = [float(price) for price in range(101, 112)]
    frame = pd.DataFrame(dict.fromkeys(("open", "high", "low", "close"), closes), index=labels)
    bars = BarSeries.from_frame(frame.drop(labels[7]))
    found = compute(bars, ["close", "close_1h"])
    rows = [
        (
            f"{stamp:%H:%M}",
            f"{stamp + pd.Timedelta(minutes=15):%H:%M}",
            *("unknown" if np.isnan(found[name][row, 0]) else f"{found[name][row, 0]:g}" for name in found),
        )
        for row, stamp in enumerate(pd.to_datetime(bars.times, unit="ns", utc=True))
    ]
    return table(("bar", "closes", *(f"`{name}`" for name in found)), rows)


def regime_settings() -> str:
    """The bounds of the regime labels."""
    rows = [
        (f"`{name}`", f"{float(field.default):.4g}", field.description or name.replace("_", " "))
        for name, field in RegimeSettings.model_fields.items()
    ]
    return table(("name", "value", "meaning"), rows)


def rule_bounds() -> str:
    """How long and how deep a rule may be."""
    return f"A rule has at most {MAX_TEXT:,} characters and {MAX_DEPTH} levels."


def rank_bounds() -> str:
    """Over which bars a rank is taken."""
    return f"A rank is taken over the last {RANK_WINDOW} own bars and is unknown before {RANK_MINIMUM}."


def _names(names: Any) -> str:
    return ", ".join(f"`{name}`" for name in names)


def tick_events() -> str:
    """What each kind of tick event says beside its bar, a row per form, and when it is written."""
    rows = [
        (f"`{kind}`", _names(sorted({*kind.names, *form.companions} - set(form.without))), form.when)
        for kind in TickEventKind
        for form in kind.forms
    ]
    return table(("kind", "payload besides `bar_label`", "when"), rows)


def change_forms() -> str:
    """The kinds of change, with what each does and the fields that it takes."""
    rows = [
        (f"`{kind.replace('_', '-')}`", form.effect, ", ".join(f"`{name}`" for name in fields_of(kind)))
        for kind, form in CHANGE_FORMS.items()
    ]
    return table(("command", "what it does", "fields"), rows)


def detection_patterns() -> str:
    """The patterns of a text that asks for high stakes, with their weights."""
    known = [(found.name, found.category) for found in PATTERNS]
    rows = [
        (f"`{name}`", category.replace("_", " "), f"{WEIGHTS[category]:g}")
        for name, category in [*known, (LAST_PLAN, "context")]
    ]
    return table(("pattern", "category", "weight"), rows)


BLOCKS: dict[str, Callable[[], str]] = {
    "rooms": docs_diagrams.rooms_diagram,
    "services": docs_diagrams.services_diagram,
    "wiring": docs_diagrams.wiring_diagram,
    "states": docs_diagrams.states_diagram,
    "transitions": transitions,
    "command-line": command_line,
    "configuration": docs_configuration.configuration,
    "heartbeats": docs_configuration.heartbeats,
    "features": features,
    "higher-timeframes": higher_timeframes,
    "higher-bars": higher_bars,
    "regime-settings": regime_settings,
    "rule-bounds": rule_bounds,
    "rank-bounds": rank_bounds,
    "journal-kinds": lambda: _names(sorted(JOURNAL_KINDS)),
    "tick-events": tick_events,
    "refusals": lambda: _names(REFUSALS),
    "clamps": lambda: _names(CLAMPS),
    "change-forms": change_forms,
    "detection-patterns": detection_patterns,
    "fill-settings": semantics.settings_table,
    "peer-settings": peer_settings.switches_table,
}


@cache
def written_blocks() -> dict[str, str]:
    """Every block as the code would write it now."""
    return {name: write() for name, write in BLOCKS.items()}


def stale_pages() -> list[Path]:
    """Pages whose generated blocks are not what the code says."""
    found = []
    for page in pages():
        text = page.read_text("utf-8")
        if with_blocks(text, written_blocks()) != text:
            found.append(page)
    return found


def main(arguments: list[str]) -> int:
    """Rewrite the pages, or with `--check` say which are stale."""
    stale = stale_pages()
    for page in stale:
        if "--check" not in arguments:
            page.write_text(with_blocks(page.read_text("utf-8"), written_blocks()), "utf-8")
        sys.stdout.write(f"{page.relative_to(ROOT)}\n")
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
