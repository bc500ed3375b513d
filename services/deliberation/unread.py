"""What of a sentence about a run was not read? Words that no claim took up, and words that nobody here knows.

They are claims that nothing can verify: silence would pass them.
"""

import re
import tomllib
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path

from schemas.fact_check import ClaimKind
from services.deliberation.claim import NAMING, Claim
from services.deliberation.layout import Mention
from services.deliberation.scopes import unheld
from services.deliberation.sentence_reading import SentenceReading
from services.evidence.facts import Subject
from services.text.claim_words import words

_WORDS = tomllib.loads(Path(__file__).with_name("plain_words.toml").read_text("utf-8"))
PLAIN, SPARSE, ABOUT_A_RUN = (words(_WORDS[name]) for name in ("plain", "sparse", "about_a_run"))
WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*|(?<!\w)\d+(?!\w)|[^\w\s!-~]")
PLAIN_SIGNS = frozenset("−")
# Kinds of mentions that claim something, with the kind of the claim.
CLAIMING: dict[str, ClaimKind] = {
    "number": "number", "count_word": "count", "fraction": "quantifier", "ratio": "comparison",
    "quantifier": "quantifier", "direction": "direction", "result": "direction", "extreme": "comparison",
    "compared": "comparison", "factor": "comparison", "grade": "grade", "not_graded": "grade",
    "exit": "quantifier", "failure": "quantifier", "zero": "comparison", "only": "comparison",
    "future": "direction", "rank": "comparison", "order": "comparison", "evaluation": "direction",
    "change": "comparison", "out_of_reach": "number", "degree": "comparison",
}  # fmt: skip
SCOPED = frozenset({"some"})
UNCLAIMED = frozenset({"best_r", "worst_r", "hold_max", "hold_min", "best_pnl", "worst_pnl"})
PREPOSITIONS = words("over under beyond above below") | {"up to"}
EXPECTED_INSTEAD = re.compile(r"instead of (?:(?:an?|the|its|expected|planned) )*[-+−]?\d", re.I)
# A sentence without a claim that tells plainly how the account or a position stands, or what was found.
FOUND = r"(?:effect|edge|lesson|pattern|signal)s?"
STATE = re.compile(
    r"\b(?:account|portfolio|equity|capital|balance|cash|exposure|positions?|drawdowns?|trades?)"
    r"(?: (?!that\b|which\b)[\w-]+){0,3}? (?:is|are|was|were|stands?|stood|sits?|sat|remains?|remained|has"
    r"|have|had|hit|reached|ended|closed)(?:n['’]t)?\b"
    rf"|\b{FOUND}\b.*?\b(?:is|are|was|were|has|have|had|can|could|emerged|holds?|held|works?|worked)\b"
    rf"|\bthere (?:is|are|was|were)(?: [\w-]+){{0,3}}? {FOUND}\b",
    re.I,
)
# What is as expected is so of a figure that is expected; "expected to" is of what will be.
EXPECTED = re.compile(r"\b(?:expected|planned|(?:its|the|with|all|their) expectations?)\b(?! to\b)", re.I)
NOWHERE = re.compile(r"\bnowhere\b", re.I)
TURNED = re.compile(r"\b(?:but|rather)\b")
# Plain words that say more together: trades one behind the other, and a month or day of the week.
IN_A_ROW = re.compile(
    r"\b(?:in (?:a|one) (?:row|line|stretch)|on end|at a stretch|back[- ]to[- ]back|end to end"
    r"|(?:trades|times|losses|wins|losers|winners) running(?=\s*(?:[.,;:!)]|$)))\b",
    re.I,
)
TIMES = words("May Sat")
OF_A_TIME = re.compile(
    r"\b(?:in|of|on|during|since|until|by|for|from|before|after|through|throughout|each|every|last|this|early"
    r"|mid|late) $",
    re.I,
)
REACH = 40  # characters behind a piece in which what is denied may stand: "not X but Y"
PRONOUN = re.compile(r"\b(?:it|its|they|their|them|this|these|those|that)\b", re.I)
Places = Sequence[tuple[int, int]]


def unread(
    reading: SentenceReading, said: tuple[int, int], quoted: Places, claims: Sequence[Claim]
) -> Iterator[Claim]:
    """Claims for what was not read, between two places of the sentence; what is quoted is read."""
    silent = not claims
    for claim in _find_left(reading, said, quoted, claims):
        silent = False
        yield claim  # one by one: what is left to read may rest on it
    state = STATE.search(reading.layout.text, *said) if silent else None
    offset = reading.layout.sentence.start
    if state is not None and not any(start <= state.start() + offset < end for start, end in quoted):
        yield reading.claim("name", state.span(), ((Subject(),), 0.5), "unread")


def _find_left(
    reading: SentenceReading, said: tuple[int, int], quoted: Places, claims: Sequence[Claim]
) -> Iterator[Claim]:
    """Mentions, denials, narrowing words and strange words that no claim has taken up."""
    for mention in reading.mentions:
        kind = _kind(reading, mention)
        if kind is not None:
            yield reading.claim(kind, mention.place, ((Subject(),), 0.8), "unread")
    yield from _denials(reading, claims)
    yield from unheld(reading, claims)
    offset = reading.layout.sentence.start
    expected = EXPECTED.search(reading.layout.text, *said)
    of_figures = any(question.startswith("expected") for claim in claims for question in claim.questions)
    stated = expected and any(start <= expected.start() + offset < end for start, end in quoted)
    if expected is not None and not of_figures and not stated:
        yield reading.claim("comparison", expected.span(), ((Subject(),), 0.5), "unread")
    outside = list(_words_outside(reading, *said))
    strange = [found for found in outside if _is_strange(found)]
    strange = [*IN_A_ROW.finditer(reading.layout.text, *said), *strange]
    strange = [word for word in strange if not any(b <= word.start() + offset < e for b, e in quoted)]
    names_only = all(claim.said in NAMING and not claim.questions for claim in claims)
    if not strange and claims and names_only:
        strange = [found for found in outside if found[0].casefold() not in SPARSE]
    if strange and _is_about_a_run(reading):
        first = strange[0]
        yield reading.claim("name", first.span(), ((Subject(),), 0.5), "unread")


def _denials(reading: SentenceReading, claims: Sequence[Claim]) -> Iterator[Claim]:
    """A "not" that denies nothing of what was read denies something else."""
    layout = reading.layout
    offset = layout.sentence.start
    read = [claim for claim in claims if claim.said not in NAMING]
    alone = [place for place in layout.denials if not _is_of_a_pair(reading, place)]
    for number, place in enumerate(alone if reading.mentions else ()):
        left, right = layout.piece(place, place)
        if any(m.start <= place < m.end and reading.is_used(m) for m in reading.mentions):
            continue
        near = [c for c in read if c.end - offset > place and c.start - offset < right + REACH]
        others = (*alone[max(0, number - 1) : number], *alone[number + 1 : number + 2])
        doubled = any(left <= d < right for d in others) or NOWHERE.search(layout.text, left, right)
        turned = TURNED.search(layout.text, place) is not None
        if not doubled and near and (turned or any(_denies(claim) for claim in near)):
            continue
        group = next((g for g in reading.subjects.groups if left <= g.start < right), None)
        before = [claim for claim in read if claim.said == "direction" and claim.end - offset <= place]
        if group is not None and before and group.end <= place:
            said, spot = before[-1], (group.start, place + 3)
            what = {"questions": said.questions, "value": said.value, "negated": not said.negated}
            yield reading.claim("direction", spot, ((group.subject,), 0.8), "direction", **what)
        else:
            yield reading.claim("direction", (place, min(right, place + 3)), ((Subject(),), 0.6), "unread")


def _is_of_a_pair(reading: SentenceReading, place: int) -> bool:
    """Whether a "nor" goes on with what a "neither" denies."""
    text = reading.layout.text.casefold()
    return text.startswith("nor", place) and "neither" in text[:place]


def _denies(claim: Claim) -> bool:
    """Whether a claim is of what is not so."""
    first = claim.sentence.text[claim.start - claim.sentence.start]
    below = claim.said == "figure" and claim.relation == "<" and not first.isalpha()  # "did not reach 10"
    return claim.negated or claim.said == "absent" or below


def _kind(reading: SentenceReading, mention: Mention) -> ClaimKind | None:
    """The kind of claim of a mention that was not read; None where it claims nothing."""
    if reading.is_used(mention):
        return None
    if mention.kind == "measure":
        return "comparison" if mention.value in UNCLAIMED else None
    if mention.kind == "quantifier" and (mention.value in SCOPED or len(reading.mentions) == 1):
        return None if mention.value in SCOPED or not _speaks_of_a_run(reading) else "quantifier"
    if mention.kind == "known":
        return None if any(m.kind == "advice" for m in reading.mentions) else "name"
    if mention.kind == "order" and any(g.start <= mention.start < g.end for g in reading.subjects.groups):
        return None
    if mention.kind == "equal":
        before = reading.layout.previous(reading.index(mention))
        is_factor = before is not None and before.kind in ("factor", "fraction", "quantifier")
        return None if is_factor else "comparison"
    if mention.kind == "bound":
        return None if mention.text.casefold() in PREPOSITIONS else "comparison"
    if mention.kind == "future" and any(m.value == "detectable_r" for m in reading.mentions):
        return None
    return CLAIMING.get(mention.kind)


def _is_strange(found: re.Match[str]) -> bool:
    """Whether a word is not plain, or names a month or a day of the week."""
    of_a_time = found[0].title() in TIMES and OF_A_TIME.search(found.string, 0, found.start()) is not None
    return found[0] in TIMES or of_a_time or not _is_plain(found[0].casefold())


def _words_outside(reading: SentenceReading, begins: int, ends: int) -> Iterator[re.Match[str]]:
    """Words outside of all mentions, the one behind "instead of" and parts of names left aside."""
    spans = [m.place for m in reading.mentions]
    number = 0
    for found in WORD.finditer(reading.layout.text, begins, ends):
        while number < len(spans) and spans[number][1] <= found.start():
            number += 1
        if number < len(spans) and spans[number][0] < found.end():
            continue
        text = reading.layout.text
        if found[0].casefold() == "instead" and EXPECTED_INSTEAD.match(text, found.start()):
            continue
        if not found[0][0].isalnum() and not _is_symbol(found[0]):
            continue
        if "_" in (text[found.start() - 1 : found.start()], text[found.end() : found.end() + 1]):
            continue  # of a name, which is read as a whole
        yield found


def _is_symbol(sign: str) -> bool:
    """Whether a sign says something, as ∞ and ≥ do and a dash does not."""
    return unicodedata.category(sign).startswith("S") and sign not in PLAIN_SIGNS


def _is_plain(word: str) -> bool:
    if word in PLAIN:
        return True
    parts = re.split(r"['’-]", word)
    return len(parts) > 1 and all(part in PLAIN or not part for part in parts)


def _speaks_of_a_run(reading: SentenceReading) -> bool:
    return not ABOUT_A_RUN.isdisjoint(WORD.findall(reading.layout.text.casefold()))


def _is_about_a_run(reading: SentenceReading) -> bool:
    """Whether a sentence names something that a run may be asked about."""
    if any(m.kind not in ("plain", "item", "only", "measure") for m in reading.mentions):
        return True
    text = reading.layout.text.casefold()
    if _speaks_of_a_run(reading):
        return True
    return PRONOUN.search(text) is not None and not reading.subjects.carried.is_empty
