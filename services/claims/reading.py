"""Figures in a stranger's text: sentences that are figures with their measure and whom they are of.

A sentence with any word that this reader does not know is not read: the word may turn what the rest says. So
a verdict is given only where subject, measure and unit are all named, and free English is left to a model.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from schemas.claims import Claim, ValueClaim
from services.claims.check import ClaimResult, Refusal, check
from services.claims.measures import MEASURES
from services.claims.subjects import regimes
from services.evidence.facts import Unit
from services.evidence.run_facts import RunFacts

SENTENCE = re.compile(r"(?:[^.;!?\n]|(?<=\d)\.(?=\d))+")
PART = re.compile(r",\s|\sand\s")
FIGURE = re.compile(
    r"(?<![\w.,])(?P<currency>[$€£]?)(?P<number>[+-]?\d[\d,]*(?:\.\d+)?)\s?"
    r"(?P<unit>R|%|percent|bars?|bp)?(?![\w%])"
)
UNITS: dict[str, Unit] = {
    "R": "r", "%": "share", "percent": "share", "bar": "bars", "bars": "bars", "bp": "bps"
}  # fmt: skip
PERIOD = re.compile(r"(?<!\w)in ((?:19|20)\d{2}(?:-\d{2}){0,2})(?![\w.-])", re.IGNORECASE)
OVER = re.compile(r"(?<!\w)over (\d[\d,]*) trades?(?!\w)")
# What may stand between figure, measure and names without changing what they say.
NEUTRAL = frozenset(
    [
        "a",
        "all",
        "an",
        "averaged",
        "for",
        "had",
        "has",
        "have",
        "in",
        "is",
        "made",
        "of",
        "on",
        "per",
        "run",
        "s",
        "the",
        "trade",
        "trades",
        "was",
        "were",
        ":",
        "-",
    ]
)
DIRECTIONS = {"long": "long", "longs": "long", "short": "short", "shorts": "short"}
ALSO = {"mean_r": "gate_mean_r", "trades": "report_trades"}
WHOLE_RUN = frozenset({"run", "all"})
OF_TRADES = frozenset({"trades", "winners", "losers", "longs", "shorts"})
OF_THE_RUN = frozenset(name for name, measure in MEASURES.items() if not measure.of_trades) - OF_TRADES


@dataclass(frozen=True)
class ReadSentence:
    """A sentence with a figure: its place in the text, and what it claims; no claims: it was not read."""

    start: int
    end: int
    text: str
    claims: tuple[ValueClaim, ...] = ()


def check_claim(claim: Claim, facts: RunFacts) -> ClaimResult | Refusal:
    """A claim, or the same of the figure that the report gives by the same words."""
    result = check(claim, facts)
    if isinstance(result, Refusal) and isinstance(claim, ValueClaim) and claim.measure in ALSO:
        again = check(claim.model_copy(update={"measure": ALSO[claim.measure]}), facts)
        return result if isinstance(again, Refusal) else again
    return result


def read_sentences(text: str, facts: RunFacts) -> Iterator[ReadSentence]:
    """The sentences of a text that hold a digit; one of which any part is not read claims nothing."""
    names = _names(facts)
    for found in SENTENCE.finditer(text):
        sentence = found[0].strip()
        if any(character.isdigit() for character in sentence):
            parts = [_read(part, names) for part in PART.split(sentence)]
            claims = tuple(claim for part in parts for claim in part or ())
            start = found.start() + found[0].index(sentence)
            yield ReadSentence(start, start + len(sentence), sentence, claims if all(parts) else ())


def _names(facts: RunFacts) -> dict[str, tuple[str, str]]:
    """Each name of the run with its field and itself, the longest first."""
    known = [("playbook", name) for name in facts.playbook_ids]
    known += [("symbol", name) for name in facts.symbols] + [("regime", name) for name in regimes(facts)]
    return {name: (field, name) for field, name in sorted(known, key=lambda item: (-len(item[1]), item[1]))}


def _read(words: str, names: dict[str, tuple[str, str]]) -> tuple[ValueClaim, ...]:
    """The claims of a part; none where a word of it is not known, or anything is named twice."""
    of: dict[str, str] = {}
    for name, (field, value) in names.items():
        words, count = re.subn(rf"(?<![\w/]){re.escape(name)}(?![\w/])", " ", words)
        if count > 1 or count and field in of:
            return ()
        of |= {field: value} if count else {}
    for pattern, field in ((PERIOD, "period"), (OVER, "counted")):
        found = pattern.findall(words)
        if len(found) > 1:
            return ()
        words, of = pattern.sub(" ", words), of | ({field: found[0]} if found else {})
    figures = list(FIGURE.finditer(words))
    if len(figures) != 1:
        return ()
    figure, counted = figures[0], of.pop("counted", None)
    words = f"{words[: figure.start()]} {words[figure.end() :]}".casefold()
    for word, direction in DIRECTIONS.items():
        words, count = re.subn(rf"(?<!\w){word}(?!\w)", " ", words)
        of |= {"direction": direction} if count else {}
    measure, words = _find_measure(words)
    left = set(re.findall(r"[^\W\d]+|[^\s\w]|\d+", words.replace("'s ", " ")))
    unit = UNITS.get(figure["unit"] or "", "money" if figure["currency"] else None)
    names_subject = of or left & WHOLE_RUN or measure in OF_THE_RUN
    if (
        measure is None
        or not left <= NEUTRAL
        or not names_subject
        or not _suits(MEASURES[measure].unit, unit)
    ):
        return ()
    told = [(measure, figure["number"]), *([("trades", counted)] if counted else [])]
    return tuple(
        ValueClaim.model_validate({"measure": name, "of": of, "stated": number.replace(",", "")})
        for name, number in told
    )


def _find_measure(words: str) -> tuple[str | None, str]:
    """The one measure that the words name, and the words without it; None where they name none, or two."""
    found = []
    for called, name in NOUNS:
        words, count = re.subn(rf"(?<!\w){re.escape(called)}(?!\w)", " ", words)
        found += [name] * count
    of_trades = [name for name in found if name != "trades"] or found[:1]
    return (of_trades[0] if len(of_trades) == 1 else None), words


def _suits(own: Unit, named: Unit | None) -> bool:
    """Whether a unit is that of a measure; counts, ratios and money are named by the measure itself."""
    return own == named or named is None and own in ("count", "score", "money")


def _nouns() -> tuple[tuple[str, str], ...]:
    """What each measure is called, by the table and by its own name, the longest first."""
    called = {measure.noun.casefold(): name for name, measure in MEASURES.items()}
    called |= {name.replace("_", " "): name for name in MEASURES}
    called |= {noun.removeprefix("number of "): name for noun, name in called.items()}
    called["number of"] = "trades"  # of longs or shorts, which are read before
    return tuple(sorted(called.items(), key=lambda item: (-len(item[0]), item[0])))


NOUNS = _nouns()
