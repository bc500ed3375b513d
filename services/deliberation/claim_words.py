"""The words by which a text says what it measures, whom it means and how it compares: data.

Every pattern is matched without regard to case and as whole words. A question is one of the catalogue.
"""

from services.text.claim_words import words

# Question of the catalogue -> how a text names it; longer names first where one begins another.
MEASURES: dict[str, str] = {
    "e_gaining": r"e(?:-value)? (?:for )?gaining",
    "e_losing": r"e(?:-value)? (?:for )?losing",
    "e_value": r"e-?values?|(?-i:E)",
    "best_r": (
        r"(?:best|largest|biggest|greatest) (?:single )?(?:trades?|wins?|winners?|gains?)"
        r"|best(?= (?:one )?(?:earned|made|gained))"
    ),
    "worst_r": (
        r"(?:worst|largest|biggest|greatest|deepest) (?:single )?(?:trades?|loss(?:es)?|losers?)"
        r"|worst(?= (?:one )?(?:lost|cost))"
    ),
    "win_rate": r"(?:win|hit|winning|success)[ -](?:rate|ratio|share|percentage)|share of (?:winners|wins)",
    "loss_rate": r"(?:loss|losing)[ -](?:rate|ratio|share|percentage)|share of losers",
    "hold_p50": r"median (?:hold(?:ing)?(?: time| period)?)|p50(?: hold)?|holds? p50",
    "hold_p90": r"p90(?: hold)?|hold p90",
    "hold_mean": r"(?:mean|average) (?:hold(?:ing)?(?: time| period)?)",
    "mfe_p50": r"(?:median )?mfe(?: median)?|(?:median )?(?:maximum )?favou?rable excursion",
    "mae_p80": r"(?:p80 )?mae(?: p80)?|(?:maximum )?adverse excursion",
    "psr": r"psr|probabilistic sharpe(?: ratio)?",
    "dsr": r"dsr|deflated sharpe(?: ratio)?",
    "track_record": r"minimum track record(?: length)?",
    "family_size": r"family (?:size|of)|hypotheses",
    "alpha": r"alpha",
    "detectable_r": r"(?:smallest |minimum )?detectable(?: (?:effect|mean|edge|difference))?",
    "lower_r": r"lower (?:bound|edge|limit|end)",
    "upper_r": r"upper (?:bound|edge|limit|end)",
    "median_r": r"median(?: (?:trade|r|result|outcome))?",
    "total_r": r"total(?:led|ling)?|sum|in sum|in all|altogether|cumulative(?:ly)?|overall result|combined",
    "mean_r": (
        r"means?|averag(?:e|es|ed|ing)|avg|expectanc(?:y|ies)|expected value|on average"
        r"|(?:per|a|each|every) (?:resolved |closed )?(?:trade|position|episode)|apiece|edge"
    ),
    "winners": r"winners?|wins|(?:winning|profitable) (?:trades?|positions?|episodes?)|won",
    "losers": r"losers?|losses|losing (?:trades?|positions?|episodes?)|lost",
    "longs": r"longs|long (?:trades?|positions?|episodes?)|(?:trades|positions) long|long ones?",
    "shorts": r"shorts|short (?:trades?|positions?|episodes?)|short ones?",
    "trades": (
        r"(?:resolved |closed |finished |completed |past |such |its |the )*"
        r"(?:trades?|episodes?|positions?)|sample(?: size)?(?: of)?|(?-i:\bn\b)|(?<=nothing )(?:was )?traded"
    ),
    "blocks": r"(?:complete |completed |whole )?blocks?",
    "fees": r"fees|commissions|costs",
    "pnl": r"p&l|pnl|realised (?:profit|loss|result)|net profit|profit|account result",
    "playbooks": r"playbooks?",
    "symbols": r"symbols?|tickers?|instruments?",
    "clusters": r"clusters?",
    "recommendations": r"recommendations?",
    "reports": r"reports?",
    "version": r"version|v(?=\d)",
    "price": (
        r"(?:entry|exit) price|price|enter(?:ed)? at|exit(?:ed)? at|bought at|sold at|filled at|closed at"
    ),
    "bars": r"bars?",
}
# Units that stand behind a number.
R_UNIT = r"R\b"
SHARE_UNIT = r"%|percent\b|per cent\b"
# Words that may stand between a measure and its number.
FILLERS = words(
    "of is was were are at the a an only just about around roughly nearly some with has have had "
    "stands stood to = : comes came be been by it its in all out reached reaches reach shows showed "
    "from made"
)
IS = r"(?:is|was|are|were|be|been|net|stays?|stayed|remains?|remained|turned|mean) "
GAINED = (
    r"earn(?:ed|s|ing)?|gain(?:ed|s|ing)|(?<!\ba )(?<!\bthe )gain|made money|makes money"
    rf"|made(?= (?:about |around )?[+]?\d)|profitable|in profit|in the black|{IS}positive"
)
LOST = (
    r"los(?:t|es?|ing)|unprofitable|not profitable|in the red|bled|bleeds|cost(?=s? (?:it |us )?[\d+-])"
    rf"|{IS}negative"
)
MORE = r"more|higher|larger|greater|better|stronger|bigger|longer"
LESS = r"less|fewer|lower|smaller|worse|weaker|shorter"
BEATS = r"beats?|outperform(?:s|ed)?|surpass(?:es|ed)?"
TRAILS = r"trails?|trailed|lags?|lagged|underperform(?:s|ed)?"
# How many times: said in words, and held against nothing.
FACTORS = (
    r"\w+ times (?:as|more|higher|better|larger|the|its)|twice|doubl(?:e|ed|es|ing)|tripl(?:e|ed|es|ing)"
    r"|quadrupled?|halv(?:ed|es|ing)|as (?:much|many|good|bad|well|often) as|more often|less often"
)
HIGHEST = r"best|strongest|highest|largest|most profitable"
LOWEST = r"worst|weakest|lowest|smallest|least profitable|poorest"
ABOVE = r"over|above|more than|at least|exceed(?:s|ing|ed)?|greater than|higher than|no less than|>=?"
BELOW = r"under|below|less than|fewer than|at most|lower than|up to|no more than|short of|<=?"
ALL = (
    r"(?<!in )(?<!after )(?<!at )all(?: of)?|every(?: one of)?|each(?: of)?|both|always|entirely"
    r"|without exception"
)
NONE = r"none(?: of)?|no|not (?:one|a single)(?: of)?|never|neither|zero|nothing"
MOST = r"most(?: of)?|(?:a |the )?majority(?: of)?|more than half(?: of)?|mostly"
HALF = r"(?:exactly |about )?(?:one )?half(?: of)?"
NEGATIONS = words("not no never cannot hardly neither nor without")
GRADES: dict[str, str] = {
    "significant": r"(?:statistically )?significant(?:ly)?|proven|proves?",
    "suggestive": r"suggestive",
    "count_only": r"count[_ -]only",
    "insufficient_sample": r"insufficient[_ ]sample|(?:too small|insufficient) (?:a )?sample|too few trades",
}
EXITS: dict[str, str] = {
    "stop": r"(?:were |was |got )?stopped out|(?:hit|by|(?:ended )?at) (?:the|their|its|a) stops?",
    "target": r"(?:hit|reached|at) (?:the|their|its|a) targets?",
    "time_stop": r"(?:ended|closed|exited) (?:by|at|on|through) (?:the |a )?time stops?|timed out",
    "invalidation": r"(?:were |was )?invalidated",
}
UNITS_AND_TEENS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
)
TENS = "twenty thirty forty fifty sixty seventy eighty ninety hundred"
COUNT_WORDS = (
    {word: number for number, word in enumerate(UNITS_AND_TEENS.split())}
    | {word: 10 * number for number, word in enumerate(TENS.split(), start=2)}
    | {"dozen": 12}
)
# Capitals that name no symbol.
ABBREVIATIONS = words(
    "R E N II III IV A I AM PM UTC GMT MFE MAE ATR RSI EMA SMA ADX PSR DSR USD EUR GBP USDT OK NO NOT "
    "ALL AND OR BUT THE P50 P80 P90 CPU LLM CI US UK EU PNL PL VWAP OHLC HOLD ABSTAIN"
)
