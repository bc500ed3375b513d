"""Figures in a stranger's text: sentences that are figures with their measure and whom they are of.

A sentence is read whole, in one of four orders of words, or not at all: any other word may turn what the rest
says. So a verdict is given only where subject, measure and unit are all named, and free English is left to a
model. Each sentence stands for itself; what the ones before say of it is not read.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

from schemas.claims import ValueClaim
from services.claims.check import Refusal, check
from services.claims.measures import MEASURES, OF_TRADES, Measure
from services.claims.subjects import regimes
from services.evidence.facts import Unit
from services.evidence.run_facts import RunFacts

# Up to a stop before white space, an empty line, or a line that begins an item or a heading.
PIECE = re.compile(r"(?:[^.!?\n]|[.!?](?=[^\s.!?])|\n(?![ \t]*(?:\n|[-*#]+[ \t])))+(?P<stop>[.!?]*)")
ITEM = re.compile(r"[-*] ")
ENDS_SENTENCE = re.compile(r"[\d%]|\w{4}")  # unlike "i.e." and "vs."
UNITS: dict[str, Unit] = {
    "R": "r", "%": "share", "percent": "share", "bar": "bars", "bars": "bars", "bp": "bps"
}  # fmt: skip
COUNT = r"(?:[1-9]\d{0,2}(?:,\d{3}){1,3}|0|[1-9]\d{0,11})"
FIGURE = rf"(?P<number>[+-]?{COUNT}(?:\.\d{{1,9}})?) ?(?P<unit>{'|'.join(UNITS)})?"
OVER = rf"(?: over (?P<counted>{COUNT}) trades?)?"
PERIOD = r"(?:19|20)\d{2}(?:-\d{2}){0,2}"
THOUSANDS = 3  # digits behind a point that may be one between thousands
DIRECTIONS = {"longs": "long", "shorts": "short"}
# Figures that the program shows under the same words: none of them is contradicted by the other.
SAME_WORDS = {"mean_r": ("gate_mean_r",), "trades": ("gate_trades", "report_trades")}
NOUNS = {
    measure.noun.casefold(): name
    for name, measure in MEASURES.items()
    if " and " not in measure.noun  # a sentence with "and" may say two things
}
OF_THE_RUN = MEASURES.keys() - OF_TRADES.keys() | DIRECTIONS.keys()  # they name whom they are of
COUNTED = {
    noun.removeprefix("number of "): name
    for noun, name in NOUNS.items()
    if noun.startswith("number of ") and name not in DIRECTIONS  # those are whom a sentence is of
}


@dataclass(frozen=True)
class ReadSentence:
    """A sentence with a figure: its place in the text, and what it claims; no claims: it was not read."""

    start: int
    end: int
    text: str
    claims: tuple[ValueClaim, ...] = ()


def read_sentences(text: str, facts: RunFacts) -> Iterator[ReadSentence]:
    """The sentences of a text that hold a digit; one of which any part is not read claims nothing."""
    reader, before, narrowed = _Reader.of(facts), "", False
    for found in PIECE.finditer(text):
        sentence = found[0].removesuffix(found["stop"]).strip()
        is_begun = not before or ENDS_SENTENCE.search(before.split()[-1])
        is_read = is_begun and found["stop"] in ("", ".") and "\n" not in sentence
        claims = reader.read(sentence) if is_read else ()
        if (
            sentence and not found["stop"] and not claims
        ):  # a heading, which holds to the next one, or an item
            narrowed = reader.narrows(sentence) or narrowed and ITEM.match(sentence) is not None
        if any(character.isdigit() for character in sentence):
            start = found.start() + found[0].index(sentence)
            shown = () if narrowed or _is_of_same_words(claims, facts) else claims
            yield ReadSentence(start, start + len(sentence), sentence, shown)
        before = sentence if found["stop"] else ""


def _is_of_same_words(claims: tuple[ValueClaim, ...], facts: RunFacts) -> bool:
    """Whether a claim is not so, and is of another figure that goes by the same words."""
    return any(
        isinstance(check(claim, facts), Refusal)
        and not isinstance(check(claim.model_copy(update={"measure": other}), facts), Refusal)
        for claim in claims
        for other in SAME_WORDS.get(claim.measure, ())
    )


@dataclass(frozen=True)
class _Reader:
    """What a run's names are, and the orders of words that they may stand in."""

    fields: dict[str, str]
    named: re.Pattern[str]
    orders: tuple[re.Pattern[str], ...]

    @classmethod
    def of(cls, facts: RunFacts) -> "_Reader":
        """The reader of a run; a name of two things is none."""
        held = {"playbook": facts.playbook_ids, "symbol": facts.symbols, "regime": regimes(facts)}
        often = Counter(name for names in held.values() for name in names)
        fields = {name: field for field, names in held.items() for name in names if often[name] == 1}
        name = _any_of(fields)
        within = rf"(?: of {name}| in (?:{name}|{PERIOD}))*"
        subject = rf"(?:(?i:the )?(?i:run|trades|longs|shorts)|{name}){within}"
        measure, counted = (f"(?P<measure>(?i:{_any_of(nouns)}))" for nouns in (NOUNS, COUNTED))
        orders = (
            rf"(?i:the )?{measure}(?P<who>(?: of {subject})?{within}) (?:is|are|was|were) {FIGURE}{OVER}",
            rf"(?P<who>{subject})'s {measure} (?:is|are|was|were) {FIGURE}{OVER}",
            rf"(?P<who>{subject}) (?:had|has|have|made) (?:an? )?{measure} of {FIGURE}{OVER}",
            rf"(?P<who>{subject}) (?:had|has|have|made) {FIGURE} {counted}(?P<then> in {PERIOD})?",
        )
        named = re.compile(rf"(?<![\w/.-])(?:{name}|{PERIOD}|(?i:longs|shorts|run))(?![\w/-])")
        begins = rf"(?P<when>(?i:in) {PERIOD} )?"
        return cls(fields, named, tuple(re.compile(begins + order) for order in orders))

    def narrows(self, heading: str) -> bool:
        """Whether what stands under a heading is of a part alone, or something is said of it as a whole."""
        is_sentence = heading.endswith(":") and heading[0].isupper() and " " in heading
        return is_sentence or any(map(str.isdigit, heading)) or self.named.search(heading) is not None

    def read(self, sentence: str) -> tuple[ValueClaim, ...]:
        """What a sentence claims; nothing where a word of it is in no order, or anything is named twice."""
        words = " ".join(re.sub(rf"^{ITEM.pattern}", "", sentence).split())
        found = next((match for order in self.orders if (match := order.fullmatch(words))), None)
        if found is None:
            return ()
        of = self._subject(found.groupdict(default=""))
        noun, counted = found["measure"].casefold(), found.groupdict().get("counted")
        name = NOUNS.get(noun) or COUNTED[noun]
        is_read = of is not None and _suits(MEASURES[name], found["number"], found["unit"])
        if not is_read or counted and not MEASURES[name].of_trades:
            return ()
        shown = [(name, found["number"]), *([("trades", counted)] if counted else [])]
        return tuple(
            ValueClaim.model_validate({"measure": measure, "of": of, "stated": number.replace(",", "")})
            for measure, number in shown
        )

    def _subject(self, parts: Mapping[str, str]) -> dict[str, str] | None:
        """Whom the figure is of; None where a field is named twice, or nobody is for a measure of trades."""
        names = self.named.findall(" ".join(parts.get(part, "") for part in ("when", "who", "then")))
        of: dict[str, str] = {}
        for name in names:
            if (direction := DIRECTIONS.get(name.casefold())) is not None:
                field, value = "direction", direction
            else:
                field, value = self.fields.get(name, "period" if name[0].isdigit() else "run"), name
            if field in of:
                return None
            of[field] = value
        noun = parts["measure"].casefold()
        is_whole = not parts["who"] and NOUNS.get(noun) in OF_THE_RUN
        if not of and not is_whole or "run" in of and of.keys() - {"run", "period"}:
            return None
        of.pop("run", None)
        return of


def _suits(measure: Measure, number: str, unit: str | None) -> bool:
    """Whether a figure is given in the unit of a measure, with its sign, and with at most one digit less.

    Counts, ratios and money are named by the measure itself; in which currency the run does not say.
    """
    own, (_, _, decimals) = measure.unit, number.partition(".")
    is_signed = number[0] in "+-"
    is_zero = not Decimal(number.replace(",", ""))
    return (
        (own == UNITS[unit] if unit else own in ("count", "score", "money"))
        and ("," not in number or own in ("count", "money"))
        and (not decimals or own != "count")
        and len(decimals) != THOUSANDS
        and len(decimals) >= measure.digits - (not is_zero)
        and not (is_zero and is_signed)
        and (measure.signed or is_zero or is_signed == (own == "r"))
    )


def _any_of(words: Iterable[str]) -> str:
    """A pattern for one of some words, the longest first; for nothing where there are none."""
    found = sorted(words, key=lambda word: (-len(word), word))
    return f"(?:{'|'.join(map(re.escape, found)) or '(?!)'})"
