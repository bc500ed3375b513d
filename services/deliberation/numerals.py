"""Numbers as a text writes them: digits with a unit, words, fractions, how exact they are, and of what."""

import re
from dataclasses import dataclass, replace

from services.evidence.catalogue import CATALOGUE

# Units that stand behind a number.
R_UNIT = r"R\b"
SHARE_UNIT = r"%|percent\b|per cent\b|pct\b"
MONEY_UNIT = r"dollars?\b|USD\b"
OTHER_UNIT = (
    r"(?:minutes?|hours?|weeks?|months?|seconds?|ticks?|basis points?|bps|cents?|euros?|pounds?|shares"
    r"|contracts|points?|percentage points?|pips?|ms)\b"
)
COUNT_UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
)
TENS = "twenty thirty forty fifty sixty seventy eighty ninety hundred"
COUNT_WORDS = (
    {word: number for number, word in enumerate(COUNT_UNITS.split())}
    | {word: 10 * number for number, word in enumerate(TENS.split(), start=2)}
    | {"dozen": 12, "thousand": 1_000}
)
PARTS = {
    "half": 2,
    "third": 3,
    "quarter": 4,
    "fourth": 4,
    "fifth": 5,
    "sixth": 6,
    "seventh": 7,
    "eighth": 8,
    "tenth": 10,
}
DIGITS = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?"
WRITTEN_DIGITS = re.compile(DIGITS)
UNIT = rf"{R_UNIT}|{SHARE_UNIT}|{MONEY_UNIT}|{OTHER_UNIT}"
SIGN = r"(?:[-+−–]|(?:minus|plus|negative) )"
NUMBER = rf"(?<![\w.]){SIGN}?[$€£]?{DIGITS}(?:k\b| thousand\b| million\b)?(?:[ -]?(?:{UNIT}))?(?!\w)"
WRITTEN = re.compile(
    rf"(?P<sign>{SIGN}?)(?P<money>[$€£]?)(?P<digits>{DIGITS})(?P<kilo>(?:k\b| thousand\b"
    rf"| million\b)?)(?P<unit>[ -]?(?:{UNIT}))?",
    re.I,
)
EDGE = rf"(?:open|{SIGN}?{DIGITS}(?:\s?R)?)"
BRACKETED = rf"[\[(]\s*{EDGE}\s*(?:,|to)\s*{EDGE}\s*[\])]"
ONE_R = rf"{DIGITS} ?R\b"
OF_NO_R = rf"(?! ?(?:{SHARE_UNIT}|{MONEY_UNIT}|{OTHER_UNIT})|\w)"
FROM_TO = (
    rf"(?:(?:from|between) (?:{SIGN}{DIGITS}(?: ?R)?|{ONE_R}) (?:to|and|up to) (?:as high as )?{SIGN}?"
    rf"{DIGITS}(?: ?R\b)?{OF_NO_R}|(?:of )?{SIGN}?{ONE_R} (?:to|up to) (?:as high as )?{SIGN}?{ONE_R})"
)
WORD = rf"(?:{'|'.join(COUNT_WORDS)})"
# Followed by a noun of a unit, a word of a number has it: "eleven percent".
WORD_NUMBER = (
    rf"\b(?:half an|a full|a whole) R\b|"
    rf"\b(?:(?:minus|plus) )?(?:a (?=hundred|dozen))?{WORD}(?:(?:[ -]| and | hundred and ){WORD}){{0,5}}"
    rf"(?: point {WORD}(?: {WORD}){{0,6}})?(?: (?:{UNIT}))?\b"
)
SMALL = r"(?:one|two|three|four|five|six|seven|eight|nine|ten|\d{1,2})"
NOUN = r"(?:(?:trades?|positions?|episodes?|times?|of (?:them|its|the)(?: trades)?) )?"
FRACTION = (
    rf"\b(?:(?:a|one|two|three|four|five|seven|nine)[ -](?:(?:{'|'.join(PARTS)})s?)(?: of(?: all)?)?"
    rf"|{SMALL} {NOUN}(?:in|out of) (?:every )?(?:two|three|four|five|ten|[2-5]|10)(?! (?:of|regimes?"
    rf"|years?|months?|weeks?|days?|bars?|blocks?|windows?|symbols?|playbooks?))"
    r"|[1-9]/(?:[2-9]|10)(?: of(?: all)?)?)(?![\w/-])"
)
FRACTION_WRITTEN = re.compile(
    rf"(?P<above>a|{SMALL})[ -]?(?:{NOUN}(?P<joint>in|out of) (?:every )?|/)?(?P<below>[a-z]+?"
    rf"|\d+)s?(?: of(?: all)?)?",
    re.I,
)
RATIO = (
    rf"\b(?:{SMALL}|\d+(?:\.\d+)?)(?:[ -]to[ -]|:)(?:one|two|three|four|five"
    rf"|\d(?:\.\d+)?)(?![\w:])(?! (?:R|%))"
)
# What says before a number how exact it is.
EXACTNESS = re.compile(
    r"\b(?:(?P<about>about|around|roughly|approximately|some|circa|close to|more or less|in the region of"
    r"|or so)"
    r"|(?P<under>nearly|almost|just (?:under|below|short of)|not quite|a (?:little|touch|shade"
    r"|bit) (?:under|below|less than)"
    r"|slightly (?:under|below|less than)|close to)"
    r"|(?P<over>just (?:over|above)|a (?:little|touch|shade|bit) (?:over|above|more than)"
    r"|slightly (?:over|above|more than)|barely (?:over|above|more than)))(?: (?:an?|the|by|of|at|to))*\s*$",
    re.I,
)
# By which words a hold is one of these.
HOLD_WORDS = {
    "p50": r"\bmedian|\bp50|\btypical",
    "p90": r"p90|90th",
    "mean": r"\bmean|\baverag",
    "max": r"\blongest|\bmaximum|\bat most",
    "min": r"\bshortest|\bminimum",
}
# What says of a figure that it was expected, or lost.
EXPECTED = re.compile(
    r"\b(?:expect\w*|design\w*|instead of|planned|assum\w+|against)"
    r"(?: (?:an?|of|the|expected|was|were|is))*\s*$",
    re.I,
)
# Words that say nothing but that a figure was expected.
EXPECTED_ONLY = re.compile(
    r"\b(?:expect\w*|design\w*|instead of|planned|assum\w+)(?: (?:an?|of|the|expected|was|were|is))*\s*$",
    re.I,
)
# Between a bound and the figure that was expected: "below the expected 1.00R".
OF_EXPECTED = re.compile(
    r" (?:(?:an?|the|its|their) )?(?:expected|planned|designed|assumed) (?:level of )?", re.I
)
EXPECTED_BEHIND = re.compile(
    r"\s*(?:bars?|days?)?\s*(?:(?:it|they|that|which) )?(?:were|was|had been|is|are) "
    r"(?:expected|planned|designed|assumed)",
    re.I,
)
LOSS_BEFORE = re.compile(
    r"\bloss(?:es)?(?: of [a-z_]+)? (?:of|was|is|at|came to|stood at)(?: (?:about|roughly|some"
    r"|only|just))?\s*$",
    re.I,
)
LOSS_BEHIND = re.compile(r"\s*(?:loss\b|in losses|down\b|in the red|to the bad|below (?:zero|water))", re.I)
LOST_BEFORE = re.compile(r"\blost (?:about |some |roughly |only |just )?$", re.I)
ONE_OR_HALF = {"half an": 0.5, "a full": 1.0, "a whole": 1.0}
THOUSANDS = {"k": 1_000, "thousand": 1_000, "million": 1_000_000}
NEARNESS = {"about": 0.02, "under": 0.08, "over": 0.08}
TINY = 1e-9
MOST_PLACES = 15  # before the point and behind it: no figure of a run has more
SLACK = 0.035
FLAT_R = 0.06  # a trade: no more than this is neither a gain nor a loss to speak of
OF_AN_EXCURSION = frozenset({"mfe_p50", "mae_p80", "hold_p50"})
SIGNLESS = frozenset({"mae_p80", "mean_mae", "worst_mae", "worst_r", "worst_pnl"})
OF_MONEY = frozenset({"pnl", "fees", "gross_pnl", "mean_pnl", "mean_fees", "best_pnl", "worst_pnl"})
UNITS = {"R": "r", "r": "r", "%": "share", "$": "money", "€": "money", "£": "money"}


@dataclass(frozen=True)
class Figure:
    """A number as it is written: in its unit, with the step of its last digit.

    Attributes:
        sign: what is written before it, empty where nothing is.
        exact: about, under, over, or empty where the words before it do not loosen it.
        worded: whether it is in words.
    """

    value: float
    step: float
    sign: str
    unit: str
    exact: str = ""
    worded: bool = False

    def negate(self) -> "Figure":
        """The same below zero."""
        return replace(self, value=-abs(self.value), sign="-")


@dataclass(frozen=True)
class Portion:
    """A part of a whole: from one share to another, both included; `count` where a number is said."""

    low: float
    high: float
    count: int | None = None

    def holds(self, count: int, total: int) -> bool:
        """Whether so many of so many are this part."""
        if self.count is not None:
            return count == self.count
        return total > 0 and self.low <= count / total <= self.high


PORTIONS = {
    "all": Portion(1.0, 1.0),
    "none": Portion(0.0, 0.0),
    "most": Portion(0.5 + TINY, 1.0),
    "minority": Portion(0.0, 0.5 - TINY),
    "half": Portion(0.45, 0.55),
    "some": Portion(TINY, 1.0),
}


def bound_portion(portion: Portion, bound: str, exact: str) -> Portion:
    """A portion with what stands before it: more than, less than, almost."""
    middle = (portion.low + portion.high) / 2
    if exact == "under":
        return Portion(middle - 0.1, middle + 0.01)
    if exact == "over":
        return Portion(middle + TINY, middle + 0.1)
    if bound == ">":
        return Portion(middle + TINY, 1.0)
    if bound == "<":
        return Portion(0.0, middle - TINY)
    return portion


def share_of(value: float, *, loose: bool = False) -> Portion:
    """A fraction as a portion, as exact as such words are."""
    slack = SLACK + 0.02 * loose
    return Portion(value - slack, value + slack)


def exactness(before: str) -> str:
    """How exact a number is by the words before it."""
    found = EXACTNESS.search(before)
    return "" if found is None else str(found.lastgroup)


def is_out_of_reach(text: str) -> bool:
    """Whether a number in a text is larger, or finer, than a figure of a run can be."""
    return any(_is_out_of_reach(digits) for digits in WRITTEN_DIGITS.findall(text))


def _is_out_of_reach(digits: str) -> bool:
    mantissa, _, exponent = digits.replace(",", "").lower().partition("e")
    whole, _, decimals = mantissa.partition(".")
    if len(exponent.lstrip("+-")) > 2 or max(len(whole), len(decimals)) > MOST_PLACES:
        return True
    power = int(exponent or 0)
    return len(whole.lstrip("0")) + power > MOST_PLACES or len(decimals) - power > MOST_PLACES


def figure(digits: str, sign: str, unit: str) -> Figure:
    """A number from its digits, with the step of the last one that is written."""
    plain = digits.replace(",", "")
    mantissa, _, exponent = plain.lower().partition("e")
    step = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
    value = float(plain)
    return Figure(-value if _is_below(sign) else value, step, "-" if _is_below(sign) else sign.strip(), unit)


def _is_below(sign: str) -> bool:
    return sign.strip().casefold() in ("-", "−", "–", "minus", "negative")


def written_figure(text: str) -> Figure | None:
    """A number in digits; None for no number."""
    found = WRITTEN.fullmatch(text)
    if found is None:
        return None
    unit = (found["unit"] or "").strip(" -") or found["money"]
    held = figure(found["digits"], found["sign"].replace("plus", "+"), unit)
    times = THOUSANDS.get(found["kilo"].strip().casefold(), 1)
    return held if times == 1 else replace(held, value=held.value * times, step=held.step * times)


def worded_figure(text: str) -> Figure:
    """A number in words, with the unit behind it."""
    unit = re.search(rf" ({UNIT})$", text, re.I)
    plain = text.casefold() if unit is None else text[: unit.start()].casefold()
    if plain in ONE_OR_HALF:
        return Figure(ONE_OR_HALF[plain], 0.1, "", "R", worded=True)
    sign = "-" if plain.startswith("minus ") else "+" if plain.startswith("plus ") else ""
    whole, _, decimals = plain.removeprefix("minus ").removeprefix("plus ").partition(" point ")
    value, step = float(count_words(re.split(r"[ -]", whole))), 1.0
    for word in decimals.split():
        step /= 10
        value += step * COUNT_WORDS[word]
    held = Figure(round(value, 9), step, sign, "" if unit is None else unit[1], worded=True)
    return held.negate() if sign == "-" else held


def count_words(parts: list[str]) -> int:
    """The number that words make: "one hundred and twelve"."""
    total = 0
    for part in parts:
        if part not in COUNT_WORDS:
            continue
        number = COUNT_WORDS[part]
        total = total * number if part in ("hundred", "dozen", "thousand") and total else total + number
    return total


def fraction(text: str) -> float:
    """The share that a fraction names."""
    found = FRACTION_WRITTEN.fullmatch(text.casefold())
    if found is None:
        return -1.0
    above, below = found["above"], found["below"]
    numerator = 1 if above == "a" else int(above) if above.isdigit() else COUNT_WORDS[above]
    known = int(below) if below.isdigit() else PARTS.get(below) or COUNT_WORDS.get(below, 0)
    return numerator / known if known else -1.0


def ratio(text: str) -> float:
    """How many times: "two to one"."""
    first, second = re.split(r"[ -]to[ -]|:", text.casefold())
    below = _number(second)
    return _number(first) / below if below else 0.0


def _number(text: str) -> float:
    return float(COUNT_WORDS[text]) if text in COUNT_WORDS else float(text)


def edges(text: str) -> tuple[Figure | None, Figure | None]:
    """The two edges of an interval; None where one is open."""
    found = [None if edge == "open" else edge_of(edge) for edge in re.findall(EDGE, text, re.I)]
    return found[0], found[1]


def edge_of(text: str) -> Figure | None:
    """One edge of an interval."""
    return written_figure(text if text[-1] in "Rr" else f"{text}R")


def round_loose(held: Figure) -> Figure:
    """A loose figure with zeros at its end is rounded to them: "about 3,900"."""
    if not held.exact or held.step != 1 or held.value == 0:
        return held
    step = 1.0
    while abs(held.value) % (step * 10) == 0 and step * 10 < abs(held.value):
        step *= 10
    return replace(held, step=step)


def measure_unit(question: str) -> str:
    """Unit of a measure."""
    if question in CATALOGUE:
        return CATALOGUE[question].unit
    return "r" if question == "profit" else question


def unit_of(held: Figure) -> str:
    """Unit of a figure: r, share, money, other for what no fact has, or empty."""
    lower = held.unit.casefold()
    if not held.unit or held.unit in UNITS:
        return UNITS.get(held.unit, "")
    if lower.startswith(("per", "pct")) and "point" not in lower:
        return "share"
    if lower.startswith(("bp", "basis")):
        return "bps"
    return "money" if lower.startswith(("dollar", "usd")) else "other"


def fits(question: str, unit: str, *, decimal: bool = True) -> bool:
    """Whether a figure in this unit may be a value of the measure; a bare one may be of any."""
    of_measure = measure_unit(question)
    if question == "profit":
        return unit in ("", "r", "money")
    if question in ("mean_r", "best_r", "worst_r") and unit == "money":
        return True
    if question in ("total_r", "mean_r", "median_r") and unit == "":
        return decimal
    return unit in ("", of_measure) or unit == "money" and of_measure == "price"
