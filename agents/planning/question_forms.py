"""Forms of words in a question that mean more than each of them: regimes, hours, limits, what goes before."""

import re

from schemas.vocabulary import Trend, VolatilityBand

ID = re.compile(r"\b(?=[0-9a-f]*\d)(?=\d*[a-f])[0-9a-f]{6,64}\b", re.IGNORECASE)
TRENDS, BANDS = "|".join(Trend), "|".join(VolatilityBand)
REGIME = re.compile(
    rf"\b({TRENDS})(?:trend)?\s*[/,-]?\s*({BANDS})(?:[\s-]+vol(?:atility)?)?\b", re.IGNORECASE
)
HALF_REGIME = re.compile(
    rf"\b(?:{TRENDS})[\s-]?(?:trend(?:s|ing)?|markets?|regimes?|moves?)\b"
    rf"|\b(?:{BANDS})[\s-]+vol(?:atility)?\b",
    re.IGNORECASE,
)
HOUR = re.compile(r"[T ,]+(?:at\s+)?(\d{1,2}):(\d{2})(?::(\d{2}))?\s*(?:Z|UTC)?", re.IGNORECASE)
BEFORE = re.compile(r"\b(?:before|prior to)\s*$", re.IGNORECASE)
SINCE = re.compile(r"\b(?:since|after)\s*$", re.IGNORECASE)
AFTER = re.compile(r"\b(?:after|since|from|between)\s*$", re.IGNORECASE)
YEAR = re.compile(r"\b(?:19|20)\d\d\b")
INNER_POINT = re.compile(r"(?<=\w)\.(?=\w)")  # as in BRK.B: it ends no sentence
WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_'/.-]*")
SUPERLATIVES = "best|worst|biggest|largest|greatest|costliest|smallest|longest|shortest|most|least"
LIMITS = (
    re.compile(r"\b(?:last|latest|newest|recent|past|previous|top)\s+(\w+)\b"),
    re.compile(r"\b(\w+)\s+(?:most\s+)?(?:recent|latest|newest|last)\b"),
    re.compile(rf"\b(\w+)\s+(?:{SUPERLATIVES})\b"),
    re.compile(rf"\b(?:{SUPERLATIVES})\s+(\w+)\b"),
)
ONE = re.compile(
    r"\b(?:last|latest|newest|most recent|previous)\s+(?:\S+\s+){0,3}?"
    r"(?:trade|fill|exit|entry|episode|order|report|verdict|review|reflection|loss|loser|win|winner|stop|position|long|short)\b"
)
# "the worst trade" is one, "the worst trades" are some.
SOME = re.compile(
    r"\b(?:trades|fills|exits|entries|episodes|losses|losers|wins|winners|gains|positions|ones|longs|shorts)\b"
)
DIRECTION = re.compile(r"(?<!how )\b(long|short)\b")
EARLIER = re.compile(
    r"\b(?:that|this|the same)\s+(symbol|ticker|stock|instrument|playbook|strategy|fill|trade|exit|loss)\b"
)
EARLIER_KINDS = {
    "ticker": "symbol",
    "stock": "symbol",
    "instrument": "symbol",
    "strategy": "playbook",
    "exit": "fill",
    "trade": "fill",
    "loss": "fill",
}
FOLLOWS = re.compile(r"^\W*(?:and\b|(?:and |but )?(?:what|how) about\b|same for\b)", re.IGNORECASE)
HOW_DID = re.compile(r"\bhow\s+(?:good|bad|well|badly|did|does|do|has|have|is|are|was|were)\b")
RATE = re.compile(r"\bhow often\b|\b(?:rate|share|percent|percentage|ratio|fraction|who)\b")
BY_EXIT = re.compile(
    r"\b(?:hit|by|at|on|through|via)\s+(?:(?:the|a|an|its|their)\s+)?"
    r"(?:time[ -]?stops?|stops?|targets?|invalidation)\b"
)
SHOULD = re.compile(r"\bshould (?:i|we)\b")
BOOKS = re.compile(r"\b(?:playbooks?|strategy|strategies)\b")
RANKED = re.compile(r"\b(?:best|worst|most|least|better|compare)\b")
OPENS = (
    r"what|how(?! come\b)|why(?!\W*$)|which|who|when|where|show|list|tell|give|is|are|was|were|did|does|do"
    r"|explain|would|should|has|have|can"
)
PART = re.compile(
    rf"(?:,\s*(?:and|also|then)?|\b(?:and|then|also|plus)\b)\s+(?=(?:(?:also|then)\s+)?(?:{OPENS})\b)",
    re.IGNORECASE,
)
ASKS = re.compile(rf"^\W*(?:please\s+)?(?:{OPENS})\b|\?", re.IGNORECASE)
