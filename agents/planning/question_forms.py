"""Forms of words in a question that mean more than each of them: regimes, rules, limits, what goes before."""

import re

from agents.planning.question_words import NUMBERS
from schemas.vocabulary import Trend, VolatilityBand
from services.text.claim_words import words as words_of

ID = re.compile(
    r"\b(?=[0-9a-f]*\d)(?=\d*[a-f])[0-9a-f]{6,64}\b|\b(?=\d*[a-f])[0-9a-f]{8,64}\b|"
    r"(?<=\bfill )(?=[a-f]*\d)[0-9a-f]{4,64}\b|"
    r"(?<=\breport )(?=[a-f]*\d)[0-9a-f]{4,64}\b|(?<=\bfill )[a-f]{6,64}\b",
    re.IGNORECASE,
)
# An expression over features, such as `crosses_above(sma_10, sma_30)` or `close > sma_50 and rsi_14 < 30`.
TERM = r"(?:[a-z]\w*(?:\([^()]*\))?|-?\d+(?:\.\d+)?)"
COMPARED = rf"{TERM}(?:\s*[-+*/]\s*{TERM})*\s*(?:<=|>=|==|<|>)\s*{TERM}(?:\s*[-+*/]\s*{TERM})*"
CLAUSE = rf"(?:(?:not\s+)?(?:{COMPARED}|[a-z]\w*\([^()]*\)))"
RULE = re.compile(rf"\b{CLAUSE}(?:\s+(?:and|or)\s+{CLAUSE})*", re.IGNORECASE)
RUN = re.compile(
    r"\b(?:(?:in|of|for|from|on|during) )?(?:the )?(?:run |backtest )?(?P<run>r\d{4}(?:-[\w-]+)?)\b",
    re.IGNORECASE,
)
ONLY_RUN = re.compile(r"\b(?:runs?|backtests?|events?)\b.*\br\d{4}\b", re.IGNORECASE)
OF_THE_RUN = re.compile(
    r"\b(?:in|of|for|during|over|by) (?:this|the|our|my)(?: (?:current|whole|entire|latest|last"
    r"|newest))? (?:run|backtest)\b(?! (?:of|list))",
    re.IGNORECASE,
)
# The run as who acts in it.
ACTING_RUN = re.compile(
    r"\b(?:the|this|our) (?:run|backtest|system|bot|machine|engine) (?=(?:hold|holds|own|owns"
    r"|trade|traded|trades|make|made|makes|win|won|lose|loses|lost"
    r"|do|decide|decided|buy|bought|sell|sold|short|shorted|take|took|earn|earned|enter|entered|exit|exited|not|ever|never|think|have|get|got|miss|missed|skip|skipped|pay|paid|pays|spend|spent)\b)",
    re.IGNORECASE,
)
EXPLETIVE = re.compile(
    r"\b(?:is|was|were|would|be) (?:it|its) (?=(?:the|a|an|that|because|time|true|about|mostly"
    r"|mainly|just|more|only|really|worth|ok|okay|fair|right|possible|allowed|permitted)\b)",
    re.IGNORECASE,
)
FILLERS = words_of(
    "ok okay now so well hey hi hello please pls and then also but right alright hmm um oh thanks yes"
    " just quick quickly"
)
# What is said before a question and asks for nothing: "Well, ...".
OPENER = re.compile(
    r"^\W*(?:(?:well|okay|ok|so|hi|hey|hello|right|alright|sorry|excuse me|now|hmm+|oh|ah|yes|no|look"
    r"|listen|honestly|frankly|thanks|thank you|good (?:morning|afternoon|evening)"
    r"|(?:a |one |just a )?quick (?:question|one)|then|first|all right|(?:hi|hello) there"
    r"|dear (?:all|team|sir|madam))\b(?: then| again)?\s*[,:.!\u2026\u2013-]+\s+)+",
    re.IGNORECASE,
)
# A verb that orders is none before these: "exit rules of", "stop distance of", "change history of".
OF_ORDER_NOUNS = words_of(
    "of rule rules reason reasons price prices condition conditions criterion criteria logic level levels"
    " distance strategy strategies signal signals point points"
    " loss losses history date dates day days type types mode modes rate time times and or"
)
IMPERATIVES = words_of(
    "show list give tell explain compare rank count check test print pull describe summarize"
    " summarise get find display walk trace remind"
    " break sort try run backtest simulate evaluate brief catch bring fill look see read open"
    " report quote name call put update sum justify"
    " reconstruct audit diagnose dig let"
)
FINITE = re.compile(
    r"\b(?:is|are|was|were|has|have|had|did|does|do|thinks?|says?|said|looks?|seems?|lost|made|keeps?|won|wants?|told|can|cannot|isn't|aren't|that's|it's|i'm)\b",
    re.IGNORECASE,
)
VERSION = re.compile(r"\b(?:v|version )\d{1,3}\b", re.IGNORECASE)
STATES = re.compile(
    r"^\W*(?:i|i'm|i've|i am|we|we've|my|our|it|there|this|that|someone|somebody|people|he|she"
    r"|they|just)\b(?!.*\b(?:want to (?:know|see)|wonder\w*|like to (?:know|see)|need to (?:know"
    r"|see)|curious)\b)",
    re.IGNORECASE,
)
# A change that is wanted, told as a wish.
WANTS = re.compile(
    r"^\W*(?:i|we|you|they)(?:'d| would)? (?:want|need|like|should|must|have to|ought to|wish)\b"
    r"(?! (?:you )?to (?:know|see|understand|look|hear|find|learn|check|ask)\b)(?! (?:the|a|an"
    r"|some|your|all|every) )",
    re.IGNORECASE,
)
# A noun that `it` behind it means.
ANTECEDENT = re.compile(
    r"\b(?:which|the|a|an|any|each|every|last|newest|our|latest) (?:[\w<>]+ ){0,2}?(?:playbook"
    r"|strategy|setup|symbol|stock|ticker|run"
    r"|backtest|trade|report|verdict|position|fill|plan|rule|cluster|order)\b.*\b(?:it|its)\b"
)
# That nothing is to be changed, before or behind what is asked.
NO_CHANGE = re.compile(
    r"(?:[\s,;]*\b(?:and|but|so))?[\s,;]*\b(?:please\s+)?(?:(?:i|we)\s+)?"
    r"(?:do not|don['\u2019]t|never|without)\s+(?:want(?:ing)?\s+(?:you\s+)?to\s+)?"
    r"(?:chang|touch|modify|alter|edit|updat)(?:e|ing)?\s+"
    r"(?:anything|a thing|a single thing)(?:\s+(?:at all|please|yet|now))?(?=\W|$)[\s,;:.!-]*"
    r"(?:(?:but|and|just|only)\s+)*",
    re.IGNORECASE,
)
# What would be if something were changed.
SUPPOSED = re.compile(
    r"\bwhat (?:happens|happened|will happen|would happen|would have happened|would be|changes)\s+if"
    r"\s+(?:i|we|you|they)\b"
    r"|\bwhat would (?:i|we|you|they|it) have (?:lost|made|earned|won|gained|done)\b"
    r"|\bwhat if\s+(?:i|we|you|they)\s+(?:had\s+)?(?:ban|pause|retire|stop|allow|drop|disable|remove|double"
    r"|halve|suspend|raise|lower|cut|change|set|unban|kill|switch|turn)\w*\b",
    re.IGNORECASE,
)
POINTS = words_of("it its they them their that those these this there so each")
THAT_DAY = re.compile(r"\b(?:that|the same) (?:day|date|session)\b|\b(?:back )?then\W*$", re.IGNORECASE)
ONLY_WHICH = re.compile(r"^\W*(?:which|what|whose) \w+\W*$", re.IGNORECASE)
FRAGMENT = re.compile(
    r"^\W*(?:on|over|for|with|from|by|at|after) (?:how|which|what)\b(?:\W+\w+){0,3}\W*$", re.IGNORECASE
)
TREND_WORDS: dict[Trend, str] = {
    Trend.UP: r"up(?:ward|wards)?[- ]?(?:trend(?:s|ing)?)?|bull(?:ish)?|rising",
    Trend.DOWN: r"down(?:ward|wards)?[- ]?(?:trend(?:s|ing)?)?|bear(?:ish)?|falling",
    Trend.SIDEWAYS: r"sideways|side-ways|range[- ]?bound|ranging|choppy|flat",
}
BAND_WORDS: dict[VolatilityBand, str] = {
    VolatilityBand.LOW: "low(?:er)?|calm|quiet",
    VolatilityBand.MID: "mid|medium|moderate|middling|middle",
    VolatilityBand.HIGH: "high(?:er)?",
    VolatilityBand.EXTREME: "extreme(?:ly high)?",
}
TRENDS, BANDS = "|".join(TREND_WORDS.values()), "|".join(BAND_WORDS.values())
VOL = r"(?:[\s-]+vol(?:atility)?)"
OF_MARKETS = r"(?:\s+(?:markets?|trends?|regimes?|phases?|conditions?))?"
REGIME = re.compile(
    rf"\b(?P<trend>{TRENDS}){OF_MARKETS}\s*(?:[/,-]|\b(?:and|with|at|in)\b)?\s*(?P<band>{BANDS})\b{VOL}?"
    rf"|\b(?P<band2>{BANDS}){VOL}\s*,?\s*(?:and\s+)?(?P<trend2>{TRENDS})\b{OF_MARKETS}",
    re.IGNORECASE,
)
HALF_REGIME = re.compile(
    rf"\b(?:{'|'.join(Trend)})[\s-]?(?:trend(?:s|ing)?|markets?|regimes?|moves?)\b"
    rf"|\b(?:bull|bear)(?:ish)? markets?\b|\b(?:{'|'.join(VolatilityBand)})[\s-]+vol(?:atility)?\b",
    re.IGNORECASE,
)
INNER_POINT = re.compile(r"(?<=\w)\.(?=\w)|(?<=[A-Z]):(?=[A-Z])")  # as in BRK.B: it ends no sentence
WORD = re.compile(r"[\w&](?:[\w'/.&-]|(?<=[A-Z])[=:](?=[A-Z]))*")
SUPERLATIVES = (
    "quickest|fastest|best|worst|biggest|largest|greatest|costliest|smallest|longest|shortest|most|least|top"
)
COUNTED = (
    r"trades?|fills?|exits?|entries|episodes?|loss(?:es)?|losers?|wins?|winners?|gains?|positions?|longs?|shorts?"
    r"|reports?|verdicts?|reviews?|reflections?|runs?|backtests?|decisions?|policies|deals?|results|examples?"
)
LIMITS = (
    re.compile(r"\b(?:last|latest|newest|recent|past|previous|top|first)\s+(\w+)\b"),
    re.compile(r"\b(\w+)\s+(?:most\s+)?(?:recent|latest|newest|last)\b"),
    re.compile(rf"\b(\w+)\s+(?:{SUPERLATIVES})\b"),
    re.compile(rf"\b(?:{SUPERLATIVES})\s+(\w+)\b"),
    re.compile(rf"\b(\d+|{'|'.join(NUMBERS)})\s+(?:[\w<>]+\s+){{0,2}}?(?:{COUNTED})\b"),
)
WANTED_MANY = re.compile(
    r"^(?:\w+ )?(?:show|list|give|print|get|tell)\b(?: (?:me|us|the|all|about|up|to)\b)* (\d+) "
    rf"(?:[\w<>]+ ){{0,2}}?(?:{COUNTED})\b"
)
ONE_OF = (
    r"(?:trade|fill|exit|entry|episode|order|report|verdict|review|reflection|recommendation|loss|loser|win|winner"
    r"|stop|position|long|short|buy|sale|sell|deal|bet|purchase|one)"
)
ONE = re.compile(
    rf"\b(?:last|latest|newest|most recent|previous|final)\s+(?:\S+\s+){{0,3}}?{ONE_OF}\b"
    rf"|\b(?:{SUPERLATIVES})\s+(?:single\s+)?(?:\S+\s+){{0,2}}?{ONE_OF}\b"
)
# "the worst trade" is one, "the worst trades" are some.
SOME = re.compile(
    r"\b(?:trades|fills|exits|entries|episodes|losses|losers|wins|winners|gains|positions|ones|longs|shorts"
    r"|reports|verdicts|reviews|recommendations|deals|bets)\b"
)
DENIED = re.compile(
    r"\b(?:did|does|do|has|have) (?:\S+ ){0,3}?(?:not|never) (?:lose|lost|win|won|gain|fail)\b"
)
DIRECTION = re.compile(r"(?<!how )\b(long|short)\b")
EARLIER = re.compile(
    r"\b(?:that|this|the same)\s+(symbol|ticker|stock|instrument|name|playbook|strategy|setup"
    r"|fill|trade|exit|loss)\b"
)
EARLIER_KINDS = {
    "ticker": "symbol",
    "stock": "symbol",
    "instrument": "symbol",
    "name": "symbol",
    "strategy": "playbook",
    "setup": "playbook",
    "exit": "fill",
    "trade": "fill",
    "loss": "fill",
}
PLACE_OF_EARLIER = {"symbol": "SYMBOL", "playbook": "BOOK", "fill": "ID"}
FOLLOWS = re.compile(r"^\W*(?:and\b|(?:and |but )?(?:what|how) about\b|same for\b)", re.IGNORECASE)
RATE = re.compile(r"\bhow often\b|\b(?:rate|share|percent|percentage|ratio|fraction|who|factor|more than)\b")
# Whether money was lost, or that much, is asked of all trades.
WHETHER_MONEY = re.compile(
    r"^(?:and )?(?:is|are|was|were|did|do|does|has|have|had)\b.*\b(?:money|profit\w*|successful)\b"
)
OF_TRADES = r"(?:[\w<>]+ ){0,2}(?:trades?|positions?|episodes?|longs?|shorts?|deals?|bets?|ones?)\b"
WON_TRADES = re.compile(rf"(?<!most )(?<!least )\b(?:profitable|successful|green) {OF_TRADES}")
LOST_TRADES = re.compile(rf"(?<!most )(?<!least )\b(?:unprofitable|unsuccessful|red|bad) {OF_TRADES}")
NO_OUTCOME = re.compile(r"\b(?:stop|profit)[- ]?loss(?:es)?\b|\bprofit and loss\b")
BY_EXIT = re.compile(
    r"\b(?:hit|by|at|on|through|via)\s+(?:(?:the|a|an|its|their)\s+)?"
    r"(?:time[ -]?stops?|stops?|targets?|invalidation)\b"
)
SHOULD = re.compile(r"\bshould (?:i|we)\b")
OPENS = (
    r"what|how(?! come\b)|why(?!\W*$)|which|who|when|where|show|list|tell|give|is|are|was|were|did|does|do"
    r"|explain|would|should|has|have|can|could|may (?:i|we)|might"
)
# What was told before, as the subject of a judgement: "is that significant".
IS_THAT = re.compile(
    r"\b(is|was|are|were) (?:that|this|these|those)(?= (?:really |still |just |statistically |any |a )?"
    r"(?:significant|proven|real|luck|lucky|noise|chance|skill|enough|good|bad|sure|solid|reliable|credible|evidence)\b)",
    re.IGNORECASE,
)
PART = re.compile(
    rf"(?:,\s*(?:and|also|then)?|\b(?:and|then|also|plus)\b)\s+(?=(?:(?:also|then)\s+)?(?:{OPENS})\b)",
    re.IGNORECASE,
)
JOINT = re.compile(
    r"\s*(?:,\s*(?:and|plus)?\s|\b(?:and|plus|as well as|along with|together with)\b|&)\s*", re.IGNORECASE
)
LEADS = r"(?:(?:in|on|at|for|by|with|from|under|of|to|since|until|during|through)\s+(?=which|what|whom|how))?"
ASKS = re.compile(rf"^\W*(?:please\s+)?{LEADS}(?:{OPENS})\b|\?", re.IGNORECASE)


def regime_of(found: re.Match[str]) -> str:
    """The regime that a match of `REGIME` names."""
    trend, band = (found["trend"] or found["trend2"]).casefold(), (found["band"] or found["band2"]).casefold()
    trends = (key for key, words in TREND_WORDS.items() if re.fullmatch(words, trend, re.IGNORECASE))
    bands = (key for key, words in BAND_WORDS.items() if re.fullmatch(words, band, re.IGNORECASE))
    return f"{next(trends)}/{next(bands)}"
