"""What narrows a sentence must be held by one of its claims: a name, a time, a side, a measure.

"Since 2011", "for AAPL", "among losers" and "before fees" say of which trades, or in what, the rest is meant.
A sentence whose claims were all checked without it says something else, and nothing has borne that out; nor
can any row bear out some words: bases, times, signs and denials of what is told.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from services.deliberation.claim import NAMING, Claim
from services.deliberation.layout import Mention
from services.deliberation.numerals import PORTIONS
from services.deliberation.sentence_reading import SentenceReading
from services.evidence.catalogue import CATALOGUE
from services.evidence.facts import Subject
from services.evidence.observed import ACCOUNT
from services.evidence.run_facts import TRADED
from services.text.claim_words import words

DASH = "\\-−–—―‒‐‑⸺﹣－"
TRADES = (
    r"(?:(?:resolved|closed|long|short|winning|losing) )?"
    r"(?:trades?|positions?|episodes?|longs?|shorts?|entries|deals|bets)\b"
)
GRADES = r"(?:insufficient_sample|count_only|suggestive|significant)"
WHOM = r"[\w/]{1,40}(?: in \w{1,20}/\w{1,20})?"
FORMS = (
    # a share of what no run counts wins of: "won 42 % of its signals"
    r"\b(?:won|wins?|lost|loses?) [^,;.]{0,16}(?:%|percent) of (?:its|their|the|all)(?: own)?"
    rf" (?!{TRADES}|them\b|time\b)\w{{1,30}}",
    # failure modes are counted of losers
    r"(?:%|percent) of (?:all |the |its |all the )?trades (?:were|was|are|ended as)"
    r" \w{1,20}(?:_\w{1,20}|classified)",
    # a sign that no figure is written with
    rf"(?<![\w.])[{DASH}] ?[(+] ?\d|\b(?:averaged|of|is|was|made|at) [{DASH}] \d|(?<![\w.)])[—―‒‐‑⸺﹣－]\d",
    # times that no row names
    r"\b(?:this|the current) (?:week|month|quarter|year)\b|\btoday\b|\byesterday\b|\blately\b|\bearly on\b"
    r"|\bsince the (?:last|previous|first) (?:report|review)\b",
    # of what kind of trading
    r"\bon paper\b|\b(?:averaged|made|won|lost|earned)\b[^,;.]{0,40}\bin shadow\b|\bout of sample\b"
    r"|\bin sample\b|\bon (?:each|every) trade\b|\ba trade (?:recently|live|again|now|once)\b",
    # a grade that a second one leaves out
    rf"\b{GRADES}\b[^;]{{0,80}}(?:,| and) (?:in )?{WHOM} with (?:an? )?(?:E\b|\d)",
    # advice against something, and what takes back what was said
    r"\brecommend\w{0,6} (?:\w{1,20} )?against\b|\badvis\w{0,4} against\b|\ba (?:lie|fiction|fabrication)\b",
)
UNBORNE = tuple(re.compile(form, re.IGNORECASE) for form in FORMS)
TAKEN_BACK = re.compile(
    r"^\W*(?:(?:it|this|that|they|he|she|which|no)\b,?\s*)?(?:(?:is|was|are|were|did|does|do|has|have|had)\s*)?"
    r"(?:not|n['’]t|never|false|untrue|wrong)\W*$",
    re.IGNORECASE,
)
EDGES = ("known_at", "window_end")
# Measures that name a kind of thing, and claim nothing where they stand alone.
NOUNS = words(
    "trades profit playbooks symbols regimes clusters recommendations reports version failures exits years"
    " winners losers longs shorts"
)
AFTER_COSTS = re.compile(r"after|net of", re.I)
IN_R = words("mean_r median_r total_r best_r worst_r account_return")
KINDS = NOUNS - {"winners", "losers", "longs", "shorts"}
MONEY = words("pnl mean_pnl gross_pnl fees mean_fees best_pnl worst_pnl equity cash")
HOLDS = words(
    "hold_p50 hold_p90 hold_mean hold_max hold_min days_p50 days_p90 days_mean days_max days_min"
    " expected_hold_p50 expected_hold_p90 parameter"
)
COUNTS = frozenset(name for name, asked in CATALOGUE.items() if asked.unit == "count")
# Measure -> questions, beside itself, of which a claim holds its word: "the median" of a hold.
FAMILIES: dict[str, frozenset[str]] = {
    "median_r": words("hold_p50 days_p50 mfe_p50 expected_hold_p50 expected_mfe_p50"),
    "total_r": MONEY | COUNTS,
    "pnl": MONEY,
    "fees": words("mean_fees"),
    "mean_r": words("mean_pnl mean_fees hold_mean days_mean mean_mfe mean_mae total_r risk_fraction"),
    **{f"hold_{of}": words(f"days_{of} expected_hold_{of}") for of in ("p50", "p90", "mean", "max", "min")},
    "bars": HOLDS, "days": HOLDS,
    "mfe_p50": words("expected_mfe_p50 mean_mfe best_mfe"),
    "mae_p80": words("expected_mae_p80 mean_mae worst_mae"),
    "e_value": words("e_gaining e_losing e_needed"),
    "price": words("feature"),
    "equity": words("account_return start_cash cash"),
}  # fmt: skip
BUT = re.compile(r"(?:'s|’s)?,? but (?:rather |the )?", re.I)
NOT = re.compile(r"\bnot (?:the )?$", re.I)
WORDS_OF_REST = re.compile(r"others|rest|remain|else", re.I)  # tried first: it is quick
REST = re.compile(
    r"\b(?:(?:the |all |any )?others|the rest|(?:the )?remainder|(?:the )?remaining"
    r"|(?:everything|everyone|everybody|anything|anyone|nothing|nobody|all|no one|none) else)\b",
    re.I,
)
BEGINS = re.compile(
    r"\b(?:beg[aiu]n\w*|start\w*|ceas\w+|stop(?:s|ped)?|end(?:s|ed)|finish\w*|quit|launch\w*|introduc\w*"
    r"|resum\w*|paus\w*|debut\w*|first|last|only|until|since|idle)\b",
    re.I,
)
PHASE = re.compile(
    r"\b(?:(?:beg[aiu]ns?|beginning|start(?:s|ed|ing)?|ceas(?:ed|es|ing)|stop(?:s|ped)?|quit|resum(?:ed|es|ing)"
    r"|continu(?:ed|es|ing)|ke(?:pt|eps?|eping)) (?:to |(?:on )?(?=\w+ing\b))"
    r"|(?P<moved>(?:went|go(?:es|ing|ne)?|c[ao]me|coming|moved?) (?:back )?(?:up|down) to\b"
    r"|drop(?:ped|s|ping)? (?:back )?(?:down )?to\b))",
    re.I,
)
RATE = re.compile(
    r"\b(?:per|each|every|an?|single|one) (?:bar|day|week|month|quarter|year|hour|minute|session|share|block"
    r"|dollar|symbol|playbook|regime|account)\b(?! (?:of|on|in|with|that|which|for|later|earlier))"
    r"|\b(?:dai|week|month|year|hour)ly\b|\bannual\w*\b",
    re.I,
)


def unborne(text: str) -> Iterator[tuple[int, int]]:
    """Where a sentence says such words."""
    for form in UNBORNE:
        yield from (found.span() for found in form.finditer(text))
    if taken := TAKEN_BACK.search(text):
        yield taken.span()


def unheld(reading: SentenceReading, claims: Sequence[Claim]) -> Iterator[Claim]:
    """Claims, which nothing verifies, for what narrows the sentence and stands in none of its claims."""
    telling = [claim for claim in claims if claim.said not in NAMING]
    yield from _groups(reading, telling, claims)
    yield from _sides_and_measures(reading, claims)
    yield from _moments(reading, telling)
    yield from _rates(reading)
    yield from _begins(reading, claims)
    yield from _phases(reading)
    yield from _rest(reading, telling)
    for place in unborne(reading.layout.text):
        yield reading.claim("comparison", place, ((Subject(),), 0.6), "unread")


def _groups(reading: SentenceReading, telling: Sequence[Claim], claims: Sequence[Claim]) -> Iterator[Claim]:
    """Names and times of which no claim is."""
    held = [subject for claim in telling or claims for subject in _subjects_of(claim)]
    for claim in (*_of_lists(reading, telling), *_instead(reading, telling)):
        held += _subjects_of(claim)
        yield claim
    for group in reading.subjects.groups:
        fields = group.own.fields - {"basis"}
        if not telling and fields <= {"period", "episode"}:
            continue
        loose = [name for name in sorted(fields) if not _is_held(name, getattr(group.own, name), held)]
        if loose and (telling or len(reading.subjects.groups) > 1):
            yield reading.claim("name", (group.start, group.end), ((Subject(),), 0.7), "unread")


def _of_lists(reading: SentenceReading, telling: Sequence[Claim]) -> Iterator[Claim]:
    """What a list of names claims: "three regimes lost money: A, B and C", "the two symbols are X and Y"."""
    listed = [group for group in reading.subjects.groups if group.listed is not None]
    fields = {name for group in listed for name in group.own.fields}
    if len(fields) != 1:
        return
    every, place = tuple(group.own for group in listed), (listed[0].start, listed[-1].end)
    for claim in telling:
        if claim.said == "members" and {claim.domain} == fields and isinstance(claim.value, tuple):
            said, value = claim.value
            if said in ("direction", "grade"):
                asked = ("mean_r",) if said == "direction" else ()
                yield reading.claim(
                    claim.kind, place, (every, 0.9), said, questions=asked, value=value, every=every,
                    negated=claim.negated != (claim.portion == PORTIONS["none"]),
                )  # fmt: skip
        counts = claim.said == "figure" and len(telling) == 1 and claim.relation == "="
        counts = counts and [TRADED.get(question) for question in claim.questions] == [*fields]
        if counts and claim.value.value == len(set(every)):
            yield reading.claim("name", place, (every, 0.9), "absent", every=every, negated=True)


def _instead(reading: SentenceReading, telling: Sequence[Claim]) -> Iterator[Claim]:
    """Of whom it is not so in "not A but B made most of it"."""
    groups, text = reading.subjects.groups, reading.layout.text
    for group, following in zip(groups, groups[1:], strict=False):
        turns = BUT.fullmatch(text, group.end, following.start) is not None
        claim = next((c for c in telling if c.subjects == (following.subject,) and c.said != "figure"), None)
        if turns and NOT.search(text[: group.start]) and claim is not None:
            yield replace(claim, subjects=(group.subject,), negated=not claim.negated)


def _subjects_of(claim: Claim) -> list[Subject]:
    further = [] if claim.other is None else [claim.other]
    told = [claim.value[2]] if claim.said == "version" else []
    times = [Subject(period=period) for period in told if period is not None]
    if claim.said == "name" and claim.value[0] in ("playbook", "symbol", "regime"):
        further.append(Subject().having(*claim.value))
    return [*claim.subjects, *claim.every, claim.filters, *further, *times]


def _is_held(name: str, value: Any, held: Sequence[Subject]) -> bool:
    found = [getattr(subject, name) for subject in held]
    if name in ("period", "order"):
        return value in found
    names = {str(value), str(value).removeprefix("!")}
    return any(item is not None and not names.isdisjoint(str(item).split("|")) for item in found)


def _sides_and_measures(reading: SentenceReading, claims: Sequence[Claim]) -> Iterator[Claim]:
    """A side that narrows no name and no count, and a measure that no claim is of."""
    groups = reading.subjects.groups
    asked = frozenset(question for claim in claims for question in (*claim.questions, *_list_implied(claim)))
    failed = any(subject.failure_mode for claim in claims for subject in _subjects_of(claim))
    for mention in reading.mentions if claims else ():
        if reading.is_used(mention) or (failed and mention.value == "losers"):  # no other trade has one
            continue
        if mention.kind == "side" and not any(
            g.start - 1 <= mention.end and mention.start <= g.end + 1 and g.own.direction for g in groups
        ):
            yield reading.claim("name", mention.place, ((Subject(),), 0.7), "unread")
        if mention.kind == "measure" and not _is_asked(reading, mention, asked):
            yield reading.claim("comparison", mention.place, ((Subject(),), 0.6), "unread")


def _list_implied(claim: Claim) -> tuple[str, ...]:
    """Measures that a claim is of without a question."""
    if claim.said in ("interval", "zero"):
        return ("mean_r", "lower_r", "upper_r")
    signed = claim.said == "members" and isinstance(claim.value, tuple) and claim.value[0] != "grade"
    return ("mean_r",) if signed else ()


def _is_asked(reading: SentenceReading, mention: Mention, asked: frozenset[str]) -> bool:
    """Whether a claim asks for a measure, or its word claims nothing."""
    measure = str(mention.value)
    if measure == "pnl" and AFTER_COSTS.match(mention.text) and not asked.isdisjoint(IN_R):
        return True  # R is after costs
    if measure in KINDS or not asked.isdisjoint({measure} | FAMILIES.get(measure, frozenset())):
        return measure not in NOUNS - KINDS
    return any(g.start <= mention.start < g.end for g in reading.subjects.groups)


def _moments(reading: SentenceReading, telling: Sequence[Claim]) -> Iterator[Claim]:
    """A time up to which something is so is that of the report, unless it is one of the account."""
    groups = reading.subjects.groups
    of_account = any(set(claim.questions) & set(ACCOUNT) for claim in telling)
    versions = any(claim.said == "version" for claim in telling)
    if not telling or of_account or versions:
        return
    for mention in reading.mentions:
        if mention.kind in ("date", "period") and not any(g.start <= mention.start < g.end for g in groups):
            what = {"questions": EDGES, "value": mention.value}
            yield reading.claim("date", mention.place, ((Subject(),), 0.8), "day", **what)


def _begins(reading: SentenceReading, claims: Sequence[Claim]) -> Iterator[Claim]:
    """That something began or ended at a time is more than that it was so then."""
    times = [claim for claim in claims if claim.said in ("day", "period") and not claim.questions]
    found = BEGINS.search(reading.layout.text) if times else None
    alone = all(claim.said in (*NAMING, "absent") for claim in claims)  # that it traded then says no more
    of_one = any(group.subject.order or group.subject.episode for group in reading.subjects.groups)
    if found and times and alone and not of_one:
        yield reading.claim("date", found.span(), ((Subject(),), 0.6), "unread")


def _phases(reading: SentenceReading) -> Iterator[Claim]:
    """That something began, went on or ended, or moved, is more than that it is so."""
    told = {m.start for m in reading.mentions if m.kind in ("direction", "result")}
    for found in PHASE.finditer(reading.layout.text):
        if found["moved"] or found.end() in told:
            yield reading.claim("comparison", found.span(), ((Subject(),), 0.6), "unread")


def _rest(reading: SentenceReading, telling: Sequence[Claim]) -> Iterator[Claim]:
    """What is said of all others, where nothing is compared with them."""
    compared = any(claim.said == "extreme" or claim.alone for claim in telling)
    said = telling and not compared and WORDS_OF_REST.search(reading.layout.text)
    for found in REST.finditer(reading.layout.text) if said else ():
        yield reading.claim("comparison", found.span(), ((Subject(),), 0.6), "unread")


def _rates(reading: SentenceReading) -> Iterator[Claim]:
    """By what a figure is reckoned, where no measure says it."""
    for found in RATE.finditer(reading.layout.text):
        inside = any(m.start <= found.end() - 1 < m.end and reading.is_used(m) for m in reading.mentions)
        if not inside and reading.mentions:
            yield reading.claim("comparison", found.span(), ((Subject(),), 0.6), "unread")
