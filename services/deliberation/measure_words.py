"""The words by which a text names a measure of the catalogue, its unit and a number: data."""

import re

TRADES = r"(?:trades?|positions?|episodes?)"
# Before a side.
HELD = r"(?:going|being|(?:when|while|whenever|if)(?: (?:it|they|we) (?:was|were|is|are|went))?)"
IT_IS = r" (?:(?:was|is|of|at|came to|reached|stood at|amounted to|lost|made|brought) )?[-+−$€£]?\d"
# Question of the catalogue -> how a text names it; longer names first where one begins another.
MEASURES: dict[str, str] = {
    "e_needed": r"e(?:-value)? (?:that is )?(?:needed|required)|(?:needed|required) e(?:-value)?",
    "max_drawdown": r"(?:max(?:imum)?|deepest|largest|biggest|worst|peak) draw-?downs?",
    "drawdown_days": (
        r"longest draw-?down|draw-?down (?:duration|length)|longest (?:time|stretch) under ?water"
    ),
    "start_cash": (
        r"(?:starting|initial|opening) (?:capital|cash|balance|equity)|(?:started|began|begun|opened) with"
    ),
    "sharpe": r"(?:annuali[sz]ed )?sharpe(?: ratio)?",
    "sortino": r"sortino(?: ratio)?",
    "calmar": r"calmar(?: ratio)?",
    "payoff": r"pay-?off(?: ratio)?",
    "buy_and_hold": r"buy(?:ing)?[- ]and[- ]hold(?:ing)?(?: returns?)?",
    "cagr": r"cagr|annuali[sz]ed returns?|(?:compound )?annual (?:growth|return)(?: rate)?",
    "volatility": r"annuali[sz]ed volatility|annual volatility",
    "open_positions": (
        r"open positions?|positions? (?:(?:that )?(?:was|were|are) )?(?:still |left )?open(?!ed)"
    ),
    "proposals": r"proposals?",
    "sent_back": r"(?:were |was )?sent back|revisions?",
    "let_pass": r"(?:were |was )?let (?:through|pass)|passed the fast reflection",
    "stand_downs": r"stand-?downs?|stood down",
    "evaluations": r"evaluations?",
    "drawdown": r"(?:current )?draw-?downs?",
    "account_return": (
        r"(?:(?:total|net|overall|account|cumulative) ){0,2}returns?"
        r"(?=:? [^.;\d]{0,40}[-+−]?\d[\d.,]* ?(?:%|percent))"
        r"|(?:the )?(?:account|run|portfolio)(?= [-+−]?\d[\d.,]* ?(?:%|percent)(?! of))|returns?"
        r"(?=:? [^.;\d]{0,40}[-+−]?\d[\d.,]* ?(?:%|percent))"
        r"|(?:account|run|portfolio) (?:has |had )?(?:returned|earned|gained|made|lost)"
        r"(?= [a-z ]{0,20}[-+−]?\d[\d.,]* ?(?:%|percent)(?! of (?!its|the capital|the account)))"
    ),
    "equity": (
        r"(?:account |final |closing |ending )?equity|account (?:value|balance)"
        r"|(?:(?:final|closing|ending) )?capital"
        r"|account(?= (?:ended|finished|closed|stood|stands) (?:at|with))"
    ),
    "cash": r"cash(?: balance| position| on hand)?(?! terms)",
    "exposure": r"(?:gross )?exposure",
    "e_gaining": r"e(?:-value)? (?:for )?gaining",
    "e_losing": r"e(?:-value)? (?:for )?losing",
    "e_value": r"e[- ]?values?|e",
    "best_r": (
        rf"(?:(?:single )?(?:best|largest|biggest|greatest|top)|most profitable) (?:single |individual )?"
        rf"(?:{TRADES}|wins?(?! rates?)|winners?|gains?"
        rf"|profit (?:of|on|in|from) (?:a|any|one) (?:single )?trade"
        rf"|(?:results?|returns?|outcomes?)(?={IT_IS}))"
        rf"|best(?= (?:one )?(?:earned|made|gained|brought"
        rf"|returned|was))"
    ),
    "worst_r": (
        rf"(?:single )?(?:worst|largest|biggest|greatest|deepest|heaviest|poorest|least profitable) "
        rf"(?:single |individual )?(?:(?:losing )?{TRADES}|loss(?:es)?|losers?"
        rf"|(?:results?|returns?|outcomes?)(?={IT_IS}))"
        r"|worst(?= (?:one )?(?:lost|cost|gave|was))"
    ),
    "win_rate": (
        r"(?:win|hit|winning|success|strike)[ -](?:rates?|ratios?|share|percentage)|share of (?:winners|wins)"
    ),
    "loss_rate": r"(?:loss|losing|failure)[ -](?:rate|ratio|share|percentage)|share of losers",
    "profit_factor": r"profit factors?",
    "hold_p50": (
        r"median (?:hold(?:s|ing)?(?: times?| periods?| durations?| length)?|duration)|p50(?: hold)?"
        r"|holds? p50"
    ),
    "hold_p90": r"p90(?: hold)?|hold p90|90th percentile",
    "hold_mean": r"(?:mean|average) (?:hold(?:s|ing)?(?: times?| periods?| durations?| length)?|duration)",
    "hold_max": r"longest(?:[- ](?:held|running))? (?:hold(?:ing)?(?: time| period)?|trade|position)",
    "hold_min": r"shortest(?:[- ](?:held|lived))? (?:hold(?:ing)?(?: time| period)?|trade|position)",
    "hold_z": r"hold calibration|z(?:-score)?(?= (?:of |is |was )?-?\d)",
    "worst_mae": r"(?:deepest|worst|largest|maximum) (?:(?:maximum|single) )?(?:adverse excursion|mae)",
    "best_mfe": r"(?:best|largest|highest|maximum) (?:(?:maximum|single) )?(?:favou?rable excursion|mfe)",
    "mean_mfe": r"(?:mean|average) (?:mfe|favou?rable excursion)",
    "mean_mae": r"(?:mean|average) (?:mae|adverse excursion)",
    "mfe_p50": r"(?:median )?mfe(?: median)?|(?:median )?(?:maximum )?favou?rable excursion",
    "mae_p80": r"(?:p80 )?mae(?: p80)?|(?:maximum )?adverse excursion",
    "psr": r"psr|probabilistic sharpe(?: ratio)?",
    "dsr": r"dsr|deflated sharpe(?: ratio)?",
    "track_record": r"minimum track record(?: length)?",
    "family_size": r"family (?:size|of)|hypotheses",
    "alpha": r"alpha",
    "detectable_r": r"(?:smallest |minimum )?detectable(?: (?:effect|mean|edge|difference|deviation))?",
    "lower_r": r"lower (?:bound|edge|limit|end)",
    "upper_r": r"upper (?:bound|edge|limit|end)",
    "blocks": r"(?:complete |completed |whole )?blocks?",
    "mean_fees": rf"(?:mean|average) (?:fees?|commissions?|costs?)|fees? (?:per|a) {TRADES}",
    "mean_pnl": r"(?:mean|average) (?:p&l|pnl|profit)",
    "best_pnl": (
        r"(?:largest|biggest|best) (?:gain|win|profit|winner|trade|result) in (?:money|dollars|cash)"
        r"|(?:largest|biggest|best) (?:p&l|pnl|dollar (?:gain|profit|win))"
    ),
    "worst_pnl": (
        r"(?:largest|biggest|worst) (?:loss|loser|trade|result) in (?:money|dollars|cash)"
        r"|(?:largest|biggest|worst) dollar loss"
    ),
    "median_r": (
        rf"medians?(?: (?:r|result|outcome|return))?|(?:typical|middle)(?= (?:{TRADES}|result|outcome))"
    ),
    "total_r": (
        r"(?:in )?total(?:led|ling|s)?(?: (?:r|results?|returns?|profits?|gains?|loss(?:es)?|outcome"
        r"|contribution))?"
        r"|net (?:r|results?|gains?|loss(?:es)?|total)|sum(?:med|s)?|in sum|in all|altogether"
        r"|cumulative(?:ly)?"
        r"|overall results?|combined(?: results?| total)?|aggregate(?:d)?"
    ),
    "mean_r": (
        r"means?|averag(?:e|es|ed|ing)|avg|expectanc(?:y|ies)|expected value|on average"
        r"|(?:per|a|each|every) (?:resolved |closed |single )?(?:trade|position|episode)|apiece|edges?"
    ),
    "winners": rf"winners?|wins|gainers?|(?:winning|profitable|positive|successful) {TRADES}|winning ones?",
    "losers": (rf"losers?|losses|(?:losing|unprofitable|negative|unsuccessful|failed) {TRADES}|losing ones?"),
    "longs": rf"longs|(?:{TRADES}|entries) long|long (?:{TRADES}|ones?|entries|side)|{HELD} long",
    "shorts": (
        rf"shorts|shorting|(?:{TRADES}|entries) short|short (?:{TRADES}|ones?|entries|side)|{HELD} short"
    ),
    "trades": (
        r"(?:(?:resolved|closed|finished|completed|past|such|its|the|more|other|further|of) ){0,4}"
        r"(?:(?:trades?|trading|position)[ -]counts?|(?:number|count|sample) of (?:resolved |closed )?"
        rf"{TRADES}|{TRADES}|sample(?: sizes?)?(?: of)?|trading activity|cases|occasions|occurrences"
        r"|instances|entries|attempts|\bn\b|times(?! (?:as|more|higher|better|larger|the|its)\b))"
        r"|(?<=nothing )(?:was )?traded|trading(?= (?:in|of|took|was))"
    ),
    "slippage_bps": r"slippage",
    "risk_fraction": r"risk (?:fraction|per trade)|risked(?: per trade| a trade)?",
    "fees": r"fees?(?: bill)?|commissions?|costs|trading costs",
    "gross_pnl": (
        r"(?:gross (?:p&l|pnl|profits?)|(?:p&l|pnl|profits?) before (?:fees|costs)|before (?:fees|costs))"
    ),
    "pnl": (
        r"(?:net |realised |realized |total ){0,3}(?:p&l|pnl)|(?:realised|realized) (?:profit|loss|result)"
        r"|net profit"
        r"|account results?|net of (?:fees|costs)|after (?:fees|costs)|dollar (?:terms|profit|result|loss)"
        r"|money terms|cash terms|in (?:dollars|money|cash)"
    ),
    "profit": r"profits?(?! factor)|gains?(?! of \d)|results?|returns(?! \w+ )|outcomes?|performance",
    "playbooks": r"(?:playbooks|strategies|setups)|playbook",
    "symbols": r"symbols?|tickers?|instruments?|stocks?|names(?= (?:made|lost|earned|finished|ended|traded))",
    "regimes": r"regimes?|market states?",
    "clusters": r"clusters?|cells?",
    "recommendations": r"recommendations?",
    "reports": r"(?:(?:latest|newest|most recent|last|final) )?reports?",
    "years": r"(?:calendar )?years?",
    "failures": (
        r"(?:reasons?|causes?) (?:for|of|behind) (?:(?:a|the|its) )?(?:losing|loss(?:es)?|failures?)"
        r"|failure modes?|modes? of failure|failure(?: (?:reasons?|types?|classes|class))?"
    ),
    "exits": (
        r"exit reasons?|exits?|(?:ways?|reasons?) (?:for a trade )?to (?:end|exit|close)"
        r"|reasons? for (?:exit|closing)"
        r"|ways? out|way (?:for )?(?:trades?|a trade|positions?) (?:to )?(?:end|ended|close|closed)"
    ),
    "version": r"version|v(?=\d)",
    "price": (
        r"(?:entry|exit|fill) prices?|prices?|enter(?:ed)? at(?= \d)|exit(?:ed)? at(?= \d)|bought at|sold at"
        r"|filled at|closed at(?= \d)"
    ),
    "bars": r"(?:daily |trading )?bars?",
    "days": r"(?:trading |calendar )?days?",
}
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
