"""Words that say more than any row of a run can bear out: bases, times, signs and denials of what is told."""

import re
from collections.abc import Iterator

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


def unborne(text: str) -> Iterator[tuple[int, int]]:
    """Where a sentence says such words."""
    for form in UNBORNE:
        yield from (found.span() for found in form.finditer(text))
    if taken := TAKEN_BACK.search(text):
        yield taken.span()
