"""What does a text say outright against its plan: an order for the other side, or a verdict against it?

Only what is nearly always right is read here: "sell short" in a long plan, "I would not take this trade". A
clause counts as a whole and only as a claim of the writer (`claims`): what depends on a condition or a price,
is quoted, reported, denied, or taken back by a "but" says nothing. Everything finer is the second reader's.
"""

import re
from functools import lru_cache

from schemas.vocabulary import Direction
from services.text.claims import Clause, Sentence, read_claims

WORD = re.compile(r"[a-z][a-z']*")
CLAUSE = re.compile(r"[^.!?;:,()\n–—]+")
SHORTEST = 3
# Joints behind which somebody else may be the one who acts: "sellers press and go short".
OWN_OPENINGS = frozenset(("", "so", "but", "yet", "then", "however", "("))
REPORTED = frozenset(('"', "who", "which", "that", "as", "when", "where", "after", "before", "while"))
NEGATORS = frozenset(("not", "no", "never", "without", "nor", "neither", "hardly", "barely", "lack", "lacks"))
# A sentence that opens with one of these says where, or in which case, the rest would hold.
CONDITION_FIRST = frozenset(
    ("below", "above", "under", "over", "on", "at", "with", "without", "beyond", "past", "in", "through")
)
NEGATED_WITHIN = 4  # words between a negation and the term that it takes back

_OPENER = r"(?:(?:so|then|now|please|just|instead|rather|here|today|clearly|frankly|honestly) )*"
_FIRST_PERSON = (
    r"(?:i|we|you|i'd|we'd|i'll|we'll)"
    r"(?: (?:would|will|should|must|am|are|rather|better|now|want to|going to|have to|need to|prefer to))*"
)
_ADVICE = r"(?:let us|let's|better to|my advice is to|the (?:right |only )?(?:trade|play|call|move) is to)"
_THIS = r"(?:this|the) (?:trade|plan|setup|position|idea|proposal|entry|order)"
_TAIL = r"(?: (?:here|now|today|at all|myself|yet|at (?:this|these) (?:level|levels|price|prices)))*"
_THE_MARKET = (
    r"(?:it|this|here|now|into (?:this|the) (?:rally|strength|weakness|dip|market)|the market|this market)"
)
_SIDES: dict[Direction, str] = {
    "long": r"(?:sell(?:ing)?(?: it| this| the \w+)? short|(?:go|going|be|get|stay) short"
    rf"|short(?:ing)? {_THE_MARKET}|(?:open|opening|enter|entering|take|taking) (?:a|the) short"
    r"(?: position| side| trade)?)",
    "short": r"(?:(?:go|going|be|get|stay) long|buy(?:ing)? (?:it|this|here|now|the dip|this dip|the market)"
    r"|(?:open|opening|enter|entering|take|taking) (?:a|the) long(?: position| side| trade)?)",
}
_VERDICTS = (
    r"(?:do|would|will|wo|should|must|can|ca) not (?:be )?(?:want to )?"
    r"(?:tak(?:e|ing)|enter(?:ing)?|mak(?:e|ing)|plac(?:e|ing)|touch(?:ing)?|do(?:ing)?|recommend(?:ing)?)"
    rf" (?:{_THIS}|this one)",
    r"(?:(?:would|will|should|must) )?"
    rf"(?:skip|avoid|reject|refuse|cancel|pass on|stay out of|stay away from) {_THIS}",
    rf"(?:would |must )?(?:recommend|advise|argue|vote) against (?:taking )?{_THIS}",
)
_ABOUT_THE_TRADE = (
    rf"{_THIS} is (?:not worth (?:taking|the risk|it)|a (?:bad|poor|terrible) (?:trade|idea|plan|one))",
    rf"{_THIS} (?:should|must|ought to) (?:not be (?:taken|made|placed|entered)"
    r"|be (?:skipped|avoided|rejected|refused|cancelled))",
    r"(?:this|there) is (?:a bad trade|a poor trade|no trade(?: here)?)",
    r"no trade here",
)


def _whole(*forms: str) -> re.Pattern[str]:
    return re.compile(rf"(?:{'|'.join(forms)}){_TAIL}")


_ORDERS = {
    direction: (
        _whole(rf"{_OPENER}{side}"),
        _whole(rf"{_OPENER}(?:{_FIRST_PERSON}|{_ADVICE}) {side}"),
    )
    for direction, side in _SIDES.items()
}
_OWN_VERDICT = _whole(*(rf"{_OPENER}(?:please )?{form}" for form in _VERDICTS), *_ABOUT_THE_TRADE)
_FIRST_PERSON_VERDICT = _whole(*(rf"{_OPENER}{_FIRST_PERSON} {form}" for form in _VERDICTS))


@lru_cache(maxsize=1024)
def words_against(text: str, direction: Direction) -> tuple[str, ...]:
    """The clauses in which a text tells to do the opposite of a plan of `direction`, or not to do it."""
    return tuple(
        " ".join(clause.words)
        for sentence in read_claims(text)
        for clause in sentence.clauses
        if _counts(clause, sentence) and _is_against(clause, direction)
    )


@lru_cache(maxsize=1024)
def terms_stated(text: str, terms: tuple[str, ...]) -> tuple[str, ...]:
    """The terms that a text names in any form, not behind a negation of its clause; in their order."""
    plain = text.casefold().replace("’", "'").replace("n't", " not")
    parts = [_stems(part) for part in CLAUSE.findall(plain)]
    return tuple(term for term in terms if any(_names(stems, _stems(term.casefold())) for stems in parts))


def _counts(clause: Clause, sentence: Sentence) -> bool:
    if sentence.denied or clause.conditional or clause.hedged:
        return False
    last = max(other.turn for other in sentence.clauses)
    return clause.turn == last and sentence.clauses[0].words[0] not in CONDITION_FIRST


def _is_against(clause: Clause, direction: Direction) -> bool:
    said = " ".join(clause.words)
    order, own_order = _ORDERS[direction]
    if clause.joint not in REPORTED and (own_order.fullmatch(said) or _FIRST_PERSON_VERDICT.fullmatch(said)):
        return True
    return clause.joint in OWN_OPENINGS and bool(order.fullmatch(said) or _OWN_VERDICT.fullmatch(said))


def _names(stems: tuple[str, ...], term: tuple[str, ...]) -> bool:
    places = [at for at in range(len(stems)) if stems[at : at + len(term)] == term]
    return any(NEGATORS.isdisjoint(stems[max(0, at - NEGATED_WITHIN) : at]) for at in places)


def _stems(text: str) -> tuple[str, ...]:
    return tuple(_stem(word) for word in WORD.findall(text))


@lru_cache(maxsize=8192)
def _stem(word: str) -> str:
    """The word without a plural or verb ending: rallies, rallied and rally share theirs."""
    base = word.removesuffix("'s").removesuffix("'")
    for suffix in ("ing", "ed", "es", "s"):
        rest = base.removesuffix(suffix)
        if rest != base and len(rest) >= SHORTEST and not (suffix == "s" and rest.endswith("s")):
            base = rest
            break
    if len(base) > SHORTEST and base[-1] == base[-2]:
        base = base[:-1]
    base = base.removesuffix("e") if len(base) > SHORTEST else base
    return base[:-1] + "i" if base.endswith("y") and len(base) >= SHORTEST else base
