"""What of a question is not taken up, as the first line of its answer says it, with what to type instead."""

import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence

from agents.planning.order_answers import order_answer
from agents.planning.question_forms import ASKS
from agents.planning.question_kinds import PLACES, Kind, edits
from agents.planning.question_reading import HALF_SURE, Reading
from agents.planning.row_questions import FIGURES
from agents.planning.unmet_filters import CLAIMS
from services.model_calls.reply_text import quote_beginning
from services.plans.change_wordings import typed_form
from services.plans.text_forms import has_form

LONGEST_SHOWN = 120
POLITE = re.compile(
    r"^\W*(?:(?:please|now|then|and|just|also)\b\s*)+|[\s,]*\b(?:please|now)\b\W*$", re.IGNORECASE
)
ASKING = ("which", "what", "why", "who", "when", "where", "would", "should", "could", "does", "have", "didnt")
PRONOUN = re.compile(r"\b(?:it|that|this)\b", re.IGNORECASE)
AMOUNT = re.compile(r"\d[\d.,]*[a-z%]?", re.IGNORECASE)  # what a claim is held against
# What the answer to a kind of question is told by; a name of any other sort changes nothing.
TOLD_BY: Mapping[Kind, tuple[frozenset[str], str]] = {
    "market": (frozenset({"symbol"}), "a market is told by symbol, as it was"),
    "decisions": (frozenset({"symbol", "playbook"}), "decisions are told by symbol, playbook and time"),
    "definition": (frozenset({"playbook"}), "what a playbook is holds for all that it trades"),
    "gate": (frozenset({"playbook", "regime"}), "what is proven is told by playbook and regime"),
    "report": (frozenset({"playbook"}), "a report is of all that was traded"),
}
# Figures that no tool tells on their own.
UNTOLD = re.compile(r"(?<!after )(?<!before )(?<!net of )\bslippage\b", re.IGNORECASE)


def tell_left_out(read: Sequence[Reading], dropped: Sequence[Reading]) -> str | None:
    """One line on what an answer leaves out; None where it leaves out nothing.

    Args:
        read: the parts that are answered.
        dropped: those that are not, or that go on with one that is.
    """
    told = list(dict.fromkeys([*_tell_dropped(read, dropped), *_unread(read, dropped), *_tell_unused(read)]))
    return f"Not taken up: {' '.join(told)}" if told else None


def _tell_dropped(read: Sequence[Reading], dropped: Sequence[Reading]) -> Iterator[str]:
    times = {part.time.at or part.time.since for part in read}
    for part in dropped:
        said = " ".join(part.text.split())
        if part.is_order and not (part.is_statement and part.kind == "check"):
            yield f"{quote_beginning(said, LONGEST_SHOWN)}. {_change_alone(said, part.playbooks)}"
        elif not part.is_order and _asks_more(part, times):
            yield f"{quote_beginning(said, LONGEST_SHOWN)}, but for what the answer says of it: ask it alone."


def _tell_unused(read: Sequence[Reading]) -> Iterator[str]:
    """Names that a part is not chosen by."""
    for part in read:
        if part.kind not in TOLD_BY or (part.kind == "market" and CLAIMS.match(part.text)):
            continue
        taken = frozenset().union(*(TOLD_BY[kind][0] for kind in part.kinds if kind in TOLD_BY))
        named: dict[str, Sequence[str]] = {
            "symbol": part.symbols,
            "playbook": part.playbooks,
            "regime": part.regimes,
            "direction": [f"{part.rows.direction}s"] if part.rows.direction else [],
        }
        if left := [name for sort, names in named.items() if sort not in taken for name in names]:
            quoted = ", ".join(quote_beginning(name, LONGEST_SHOWN) for name in left)
            yield f"{quoted}: {TOLD_BY[part.kind][1]}."


def _asks_more(part: Reading, times: Collection[str | None]) -> bool:
    """Whether it asks for something of its own."""
    is_whether = part.kind == "check" or (part.asks_if_so and not PLACES & set(part.words))
    is_told = any(form.search(part.text.casefold()) for form in FIGURES.values())
    if is_whether or is_told or part.is_statement or not ASKS.search(part.text):
        return False
    time = part.time.at or part.time.since
    if time is not None or part.regimes:
        return time not in times or bool(part.regimes)
    return part.kind == "outside" or part.score < HALF_SURE


def _change_alone(said: str, playbooks: Sequence[str]) -> str:
    """The command of a change, or what may be asked for; `it` is the one playbook that is meant."""
    plain = POLITE.sub("", said).rstrip(".!")
    change = typed_form(PRONOUN.sub(playbooks[0], plain) if len(playbooks) == 1 else plain)
    if has_form(change) and not PRONOUN.search(change) and set(playbooks) & set(change.split()):
        return f"Ask for it alone: `thinktwice ask {shlex.quote(change)}` makes a change plan, which waits."
    return order_answer(said)


def _says_little(word: str) -> bool:
    """Whether a word that is not known changes nothing: an amount, or a word that asks, written wrong."""
    plain = word.casefold()
    return (
        "'" in plain
        or UNTOLD.search(plain) is not None
        or AMOUNT.fullmatch(plain) is not None
        or any(edits(plain, asking) <= 1 for asking in ASKING)
    )


def _unread(read: Sequence[Reading], dropped: Sequence[Reading]) -> Iterator[str]:
    """Words of no meaning that is known, and figures that are not told."""
    words = (word for part in read for word in part.names.strange)
    strange = dict.fromkeys(word for word in words if not _says_little(word))
    if strange:
        some = ", ".join(quote_beginning(word, LONGEST_SHOWN) for word in strange)
        yield f"{some}, of which nothing is known: say it in other words where it matters."
    texts = [part.text for part in (*read, *dropped) if part.kind == "trades"]
    if found := next((found for text in texts if (found := UNTOLD.search(text))), None):
        yield f"{quote_beginning(found[0])}, of which no figure is told: R is what is left after costs."
