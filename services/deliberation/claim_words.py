"""The words by which a text says what it measures, whom it means and how it compares: data.

Every pattern is matched without regard to case and as whole words. A question is one of the catalogue.
"""

from services.deliberation.measure_words import TRADES
from services.text.claim_words import words

# Behind a verb that says gained or lost only where an amount follows.
AMOUNT = (
    r"(?= (?:(?:about|around|roughly|nearly|almost|some|just|only|over|under|back|a|an|the|total|of|by"
    r"|another|further|more|than|less|at|least|most|well|close|to|mere|modest|small|tiny|full|whole"
    r"|approximately|book|account|run|desk|us|it) ){0,4}[-+−–$€£]?\d"
    r"(?![\d,]* (?:of (?:the |its |all |these )?(?:[\d,]+ )?)?(?:resolved |closed )?(?:trades?|positions?"
    r"|entry|entries|episodes?|fills?|them|those)\b))"
)
# Words that may stand between a measure and its number.
FILLERS = words(
    "of is was were are at the a an only just about around roughly nearly almost approximately some with "
    "has have had stands stood sits sat to = : comes came be been by been it its in all out reached reaches "
    "reach shows showed from made still now currently exactly precisely works worked runs ran lies lay "
    "amounts amounted amounting equals equalled standing stand good as against mere full barely well not "
    "more that those these this so far"
)
IS = r"(?:is|was|are|were|be|been|being|net|stays?|stayed|remains?|remained|turned|mean) "
END = r"(?:finish|end|clos|com)(?:ed|es|ing|e|ame)?|came|ran|runs?|stood|stands?|sits?|sat"
GAINED = (
    r"(?:earn(?:ed|s|ing)?|gain(?:ed|s|ing)|(?<!\ba )(?<!\bthe )gain)"
    r"(?: (?:(?:some |any |good |real |more )?money|a profit|something))?"
    r"|(?:ma(?:d|k)(?:e|es|ing)|earn(?:ed|s|ing)?) (?:(?:some |any |good |real |more )?money|a profit)"
    rf"|(?:(?:mad|mak)(?:e|es|ing)|(?:add|return|contribut|produc|deliver|yield|net(?:t)?|generat|bank"
    rf")(?:ed|es|s|ing|e)?|br(?:ought|ings?|inging)(?: (?:in|home))?|supplied"
    rf"|(?<!make )(?<!makes )(?<!made )(?<!making )up|plus|worth){AMOUNT}"
    rf"|(?:brought|brings|bringing)(?: in| home)? (?:a profit|money)"
    rf"|(?:{END}) (?:out )?(?:(?:well |comfortably |slightly |firmly |solidly )?(?:ahead|up)"
    r"|(?:with|at|in) (?:a |an )?(?:(?:overall|net|small|slight|modest|total|solid"
    r"|clear) ){0,4}(?:profits?|gain)"
    r"|in (?:the )?(?:black|green)|positive)"
    r"|profitabl[ey]|in profit|in the black|in the green|money[- ]?makers?|(?:a|the|with) net (?:gain"
    r"|positive)"
    r"|(?:a |the )?(?:profit|gain)(?= of)|(?:a |with a )(?:net |overall |small "
    r"|slight ){0,3}(?:profit(?! factor)|gain)"
    rf"|{IS}(?:clearly |slightly |firmly )?positive|positive|pa(?:id|ys) off"
    r"|(?:did|does|doing|done|fared|fares|performed|performs) (?:very |quite |rather |fairly )?(?:well"
    r"|strongly)"
    r"|strong(?:ly)? performers?|winning(?= (?:playbook|symbol|strategy|regime|year|side))"
)
LOST = (
    r"(?:los(?:es?|ing)|losing)(?: money)?|(?:lost|dropped|burned|burnt) money|unprofitable|not profitable"
    r"|in the red|bled|bleeds?|bleeding"
    rf"|(?:cost|costs|costing|shed|dropped|surrender(?:ed|ing)|forfeited|g(?:ave|iv(?:es?|ing)) (?:back"
    rf"|up|away)|down|minus"
    rf"|drop(?:ped|ping)|burn(?:ed|t)){AMOUNT}|cost (?:it |us |the run )?(?=[\d+-])"
    rf"|(?:{END}) (?:out )?(?:(?:slightly |well |badly )?(?:behind|down)"
    r"|(?:with|at|in) (?:a |an )?(?:(?:overall|net|small|slight|modest|total) ){0,4}loss|in the red"
    r"|negative|under ?water)"
    r"|at a loss|loss[- ]making|money[- ]?losers?|(?:a|the|with) net (?:loss|negative)"
    r"|(?:a |the )?loss(?= of)|(?:a |with a )(?:net |overall |small |slight |tiny ){0,3}loss"
    rf"|{IS}(?:clearly |slightly |firmly )?negative|negative|under ?water|a drag|drags?|dragged"
    r"|(?:did|does|doing|done|fared|fares|performed|performs) (?:very |quite |rather |fairly )?(?:badly"
    r"|poorly)"
    r"|losing(?= (?:playbook|symbol|strategy|regime|year|side))|loss"
)
WON = (
    r"(?:clos|end|finish|exit)(?:ed|ing|s|es)? (?:above (?:zero|water)|higher)"
    r"|won|winning(?= (?:[a-z]+ ){0,3}(?:half|all|most|of|a third|\d))|win(?= (?:more|less|most|half|all"
    r"|every|none|only|just|about|roughly|\d|one|two|three|a ))|wins"
)
FAILED = (
    r"(?:clos|end|finish|exit)(?:ed|ing|s|es)? (?:below (?:zero|water)|lower)"
    r"|lost|lose(?= (?:more|less|most|half|all|every|none|only|just|about|roughly|\d))|loses"
)
FLAT = (
    r"(?:roughly|practically|nearly|almost|basically|essentially|about|broadly|virtually|close to) "
    r"(?:flat|break[- ]?even|zero|even)|flat|(?:broke|breaks?|breaking) (?:roughly |about )?even"
    r"|break[- ]?even"
)
MORE = (
    r"more often|more|higher|larger|greater|better|stronger|bigger|longer|oftener|richer|superior|taller"
    r"|heavier|further ahead|ahead"
)
LESS = r"less often|less|fewer|lower|smaller|worse|weaker|shorter|poorer|inferior|lighter"
BEATS = (
    r"beats?|beaten|beating|outperform(?:s|ed|ing)?|surpass(?:es|ed)?|outnumber(?:s|ed|ing)?|outweigh(?:s"
    r"|ed)?"
    r"|outscor(?:es|ed)|outearn(?:s|ed)|exceed(?:s|ed)?|top(?:s|ped)(?= \w)|outpac(?:es|ed)|outstrip(?:s|ped)"
    r"|ahead of|dominat(?:es|ed|ing)"
)
TRAILS = r"trails?|trailed|lags?|lagged|underperform(?:s|ed|ing)?|(?:falls?|fell) short of|behind"
HIGHEST = (
    r"most (?:active(?:ly)?|often|frequent(?:ly)?|common(?:ly)?|profitable|successful|lucrative|productive"
    r"|heavily"
    r"|costly|reliable|numerous|expensive|traded)|(?<=the )most(?! of)"
    r"|best(?:[- ]performing)?|strongest|highest|largest|biggest|greatest|top(?:[- ]performing)?|leading"
    r"|longest"
    r"|busiest|commonest|heaviest|richest|dominant|main|chief|number one|no\. 1|lead(?:s|ing)?(?= (?:the"
    r"|all|by))|led"
    r"|tops(?= the)|first(?= (?:by|in terms)\b)"
)
LOWEST = (
    r"least(?: (?:active|traded|often|frequent|common|profitable|successful|productive|reliable))?"
    r"|worst(?:[- ]performing)?|weakest|lowest|smallest|poorest|fewest|shortest|rarest|quietest|cheapest"
    r"|slimmest|quickest|briefest|fastest"
)
ABOVE = (
    r"over|above|more than|at least|exceed(?:s|ing|ed)?|(?:greater|higher|larger|better|longer) than"
    r"|no less than"
    r"|no fewer than|not less than|not fewer than|upwards of|in excess of|beyond|north of|>=?|a minimum of"
    r"|well over|just over"
)
BELOW = (
    r"under|below|(?:less|fewer|lower|smaller|shorter|worse) than|at most"
    r"|(?<!added )(?<!adds )(?<!summed )(?<!sums )up to|no more than|not more than"
    r"|short of(?! (?:[a-z]+_[a-z]|[a-z]+ (?:breakout|reversion|continuation|pullback)))"
    r"|south of|<=?|a maximum of|just under|not even"
)
ALL = (
    r"(?<!in )(?<!after )(?<!at )(?<!above )(?<!% of )(?<!percent of )all(?: of)?(?! over)|every(?: one of"
    r"| single| one)?|each(?: of)?(?! (?:trade|position|episode)\b)|both(?: of)?"
    r"|always|entirely|exclusively|invariably|without exception|100 ?%(?= of)|the whole of"
)
NONE = (
    r"none(?: of)?|no|not (?:one|a single)(?: of)?|never|neither(?: of)?|zero|nothing|nobody"
    r"|without (?:any|a single)"
)
MOST = (
    r"(?<!the )most(?: of(?: all)?)?|(?:a |the )?(?:clear |large |vast |narrow |small |slim |overwhelming "
    r"|bare )?majority(?: of(?: all)?)?"
    r"|mostly|predominantly|mainly|largely|usually|the bulk of|typically"
)
MINORITY = (
    r"(?:a |the )?(?:small |clear |tiny )?minority(?: of)?|hardly any(?: of)?|few of"
    r"|(?<!a )(?<!the )(?<!too )(?<!so )few(?= (?:[a-z]+ )?(?:trades|positions|winners|losers|playbooks"
    r"|symbols))"
)
# How often or how far, in words that no share of the trades bears out.
DEGREES = r"rarely|seldom|hardly ever|barely(?! (?:over|above|more|under|below)\b)"
SOME = r"some(?= of|\b)(?: of)?|several(?: of)?|many(?: of)?|at least one(?: of)?|a few(?: of)?|any(?: of)?"
HALF = r"(?:exactly |about )?(?:one )?(?:a )?half(?: of(?: all)?)?"
ONLY = r"only|alone|sole(?:ly)?|just|exclusive"
NEGATIONS = words("not no never cannot hardly neither nor without")
GRADES: dict[str, str] = {
    "significant": (
        r"(?:statistically |strongly |highly )?significan(?:t(?:ly)?|ce)|(?:statistically )?proven|proves?"
        r"|proof|proved"
        r"|confirmed|(?:well[- ])?established|validated|conclusive(?:ly)?|demonstrated"
        r"|(?:statistically )?(?:reliable|robust"
        r"|sound|certain)|beyond (?:any |reasonable )?doubt|cleared the (?:bar|gate|hurdle)"
        r"|clears the (?:bar|gate)"
        r"|passed the gate|passes the gate|real edge|genuine edge|a certainty|verified edge"
        r"|full confidence|ha(?:s|ve) an? (?:[a-z]+ )?edge(?! of)|show(?:s|ed|n)? an edge"
    ),
    "suggestive": r"suggestive|promising",
    "count_only": r"count[_ -]only|(?:just |merely )?counted",
    "insufficient_sample": (
        r"no (?:cluster|playbook) has enough trades|insufficient[_ ]samples?"
        r"|(?:too small|insufficient) (?:a )?samples?|samples? (?:is |was "
        r"|are )?(?:still )?"
        rf"(?:too small|insufficient)|too few (?:{TRADES}|to (?:grade|judge|tell|say))|not enough {TRADES}"
        rf"|insufficient (?:data|evidence|{TRADES})"
    ),
}
EXITS: dict[str, str] = {
    "time_stop": (
        r"time_stops?"
        r"|(?:(?:end|clos|exit|finish|stopp|tak|tim)\w*(?: out)? )?(?:by|at|on|through|with|via|in|into|to"
        r"|after) "
        r"(?:(?:the|a|an|its|their|hitting the|reaching the) )?time[- ]stops?|time[- ]stops?"
        r"|timed? out(?:s)?|timeouts?"
        r"|ran out of time|time[- ]stopped"
    ),
    "stop": (
        r"(?:were |was |got |being |be )?stopped(?: out)?|(?:hit|hitting|touched|reached|met|ran into|by"
        r"|via|through|on|from"
        r"|(?:ended |closed |exited |finished |died )?(?:at|in|on|with)) (?:(?:the|their|its|a|an|his"
        r"|initial|protective|hard) ){0,4}"
        r"(?:stop[- ]loss(?:es)?|stops?)(?! of \d)(?! (?:that |which )?(?:(?:was|were|is|are) )?(?:set "
        r"|placed )?too tight)|stop[- ]?(?:outs?|loss(?:es)?)|stops|stop exits?|stop(?= (?:was|took|ended"
        r"|claimed|accounted|closed|caught|hit))|(?<=was the )stop|(?<=is the )stop"
    ),
    "target": (
        r"(?:hit|hits|hitting|reached|reaching|reach|met|made|made it to|got to|via|through|with|from|by|on"
        r"|(?:ended |closed |exited |finished )?(?:at|in)) (?:(?:the|their|its|a|an|profit"
        r"|price) ){0,4}targets?"
        r"|(?:profit |price )?targets?(?: exits?| hits?)?|took profits?"
    ),
    "invalidation": (
        r"(?:were |was |got )?invalidated|(?:(?:end|clos|exit|finish)\w* )?(?:by|through|on|via|with|at"
        r"|from|to) "
        r"(?:(?:an|the|their|its) )?invalidations?|invalidations?(?: exits?)?"
    ),
    "envelope": r"envelope breach(?:es)?|(?:by|through) the envelope",
    "kill_switch": r"kill[- _]switch(?:es)?",
}
# Failure modes said in other words than their names.
FAILURES: dict[str, str] = {
    "false_breakout": r"(?:false|failed|fake) (?:channel )?break[- ]?outs?|fake[- ]?outs?",
    "trend_exhaustion": r"(?:trend exhaustions?|exhausted trends?|exhaustion of the trend)",
    "low_volume_breakout": (
        r"(?:low|thin|weak)[- ]volume break[- ]?outs?|break[- ]?outs? on (?:low|thin|weak) volume"
    ),
    "news_whipsaw": r"(?:news )?whip[- ]?saws?",
    "chop": r"chop(?:py markets?)?",
    "late_entry": r"late entr(?:y|ies)|(?:entered|entering) (?:too )?late",
    "stop_too_tight": (
        r"(?:too[- ]tight stops?|stops? (?:that (?:is|was|were|are) |(?:was|were|being|set"
        r"|placed) ){0,4}too[- ]tight(?:ly)?"
        r"|tight stops)"
    ),
    "gap_through_stop": r"gap(?:s|ped|ping)? (?:through|past|over|beyond) (?:(?:the|their|its|a) )?stops?",
    "gave_back": (
        r"gave[- ]back|giv(?:e|ing)[- ]backs?|gave back (?:open |their |its |the )?(?:gains|profits?)"
    ),
    "thesis_failed": (
        r"(?:thesis|theses)(?: (?:that|which))?(?: (?:has|had|have))? fail(?:ed|ures?)|failed thes(?:is|es)"
    ),
    "never_worked": r"never[- _]work(?:ed|ing)",
    "unclassified": (
        r"unclassified|(?:left |went |were |was )?not classified|without a (?:failure )?(?:class|mode)"
    ),
}
ORDERS: dict[str, str] = {
    "first_exit": r"(?:very )?(?:first|earliest) (?:exit|close)",
    "last_exit": r"(?:very )?(?:last|latest|final|most recent) (?:exit|close)",
    "last": (
        r"last (?:traded|entered|opened)|(?:very )?(?:last|latest|final|most recent|newest) "
        r"(?:resolved |closed )?(?:trade|position|episode|entry)"
    ),
    "first": (
        r"first (?:traded|entered|opened)|(?:very )?(?:first|earliest|opening|initial) "
        r"(?:resolved |closed )?(?:trade|position|episode|entry)"
    ),
}
# What an interval says of zero.
ZERO: dict[str, str] = {
    "excludes": (
        r"(?:exclud(?:es?|ing|ed)|clears?|cleared|rul(?:es|ed|ing) out|(?:does|do|did) not (?:include"
        r"|contain|span|cross|cover"
        r"|straddle|touch)|doesn't (?:include|contain|span|cross|cover)|free of|misses) (?:the )?(?:zero"
        r"|0)(?! %)\b|zero (?:is|was) (?:excluded|ruled out)"
    ),
    "spans": (
        r"zero (?:is|was) (?:not|never) (?:excluded|ruled out)"
        r"|(?:includ(?:es?|ing|ed)|contain(?:s|ing|ed)?|span(?:s|ned|ning)?|straddl(?:es?|ing|ed)"
        r"|cross(?:es|ing|ed)?"
        r"|cover(?:s|ing|ed)?|overlap(?:s|ped)?|(?:does|do|did) not exclude|doesn't exclude"
        r"|cannot (?:exclude|rule out)"
        r"|fails to (?:exclude|rule out)|on both sides of|either side of|around) (?:of )?(?:the )?(?:zero"
        r"|0)(?! %)\b"
    ),
    "above": (
        r"(?:(?:entirely|wholly|fully|completely|strictly|well|all|clearly"
        r"|safely) ){0,4}above (?:the )?(?:zero|0)\b(?![.,]\d| ?%|R)"
    ),
    "below": (
        r"(?:(?:entirely|wholly|fully|completely|strictly|well|all|clearly) ){0,4}below (?:the )?(?:zero"
        r"|0)\b(?![.,]\d| ?%|R)"
    ),
}
OF_AN_INTERVAL = (
    r"intervals?|confidence (?:interval|band|range|sequence)s?|(?:its|the|mean's) (?:range|band)|bounds"
)
REGIME_PARTS: dict[str, str] = {
    "up/*": (
        r"(?:up|rising|uptrend(?:ing)?|upward)[- ](?:regimes?|markets?|trends?|states?)|uptrends?"
        r"|bull(?:ish)? markets?"
    ),
    "down/*": (
        r"(?:down|falling|downtrend(?:ing)?|downward)[- ](?:regimes?|markets?|trends?|states?)|downtrends?"
        r"|bear(?:ish)? markets?"
    ),
    "sideways/*": (
        r"(?:sideways|ranging|range[- ]bound|flat)[- ](?:regimes?|markets?|trends?|states?)|sideways"
    ),
    "*/low": (
        r"(?:low|quiet)[- ](?:vol(?:atility)?)(?:[- ](?:regimes?|markets?|states?))?|quiet (?:regimes?"
        r"|markets?)"
    ),
    "*/mid": r"(?:mid|medium|middle)[- ](?:vol(?:atility)?)(?:[- ](?:regimes?|markets?|states?))?",
    "*/high": (
        r"high[- ](?:vol(?:atility)?)(?:[- ](?:regimes?|markets?|states?))?|volatile (?:regimes?|markets?)"
    ),
    "*/extreme": r"extreme[- ](?:vol(?:atility)?)(?:[- ](?:regimes?|markets?|states?))?",
}
# How many times: the number is in the words.
FACTORS: dict[str, float] = {
    r"twice|doubl(?:e|ed|es|ing)|two times": 2.0,
    r"(?:thrice|tripl(?:e|ed|es|ing)|three times)": 3.0,
    r"(?:quadrupl(?:e|ed|es|ing)|four times)": 4.0,
    r"(?:half|halv(?:ed|es|ing))(?= as)|half(?= (?:that|those|the (?:number|trades|size|result)) of)": 0.5,
    r"five times": 5.0,
    r"(?:six|seven|eight|nine|ten|twenty|hundred) times(?= (?:as|more|higher|better|larger|the|its))": -1.0,
    r"\d+(?:\.\d+)? times(?= (?:as|more|higher|better|larger|the|its|their|what|gross|all))": -1.0,
    r"[1-9]\d{0,2}(?:\.\d+)?x(?=\b)": -1.0,
}
# What a report may recommend, and how a text says so.
ADVICE = r"recommend(?:s|ed|ing)?|advis(?:es|ed|ing)|suggests? (?:to|that)|proposes?|proposal"
ACTIONS: dict[str, str] = {
    "hold": r"hold(?:s|ing)?(?= )|hold|keep(?:ing)? (?:it|them|on)",
    "research_experiment": r"(?:research[_ ]|an? )?experiments?|research",
    "policy_adjust": r"policy[_ ]adjust(?:ment)?s?|adjust(?:ing|ments?)?",
    "replan": r"re-?plan(?:ning)?|retir(?:e|ing)|dropp?(?:ing)?",
}
# Judgements in soft words: of a result where they stand alone, and not where a figure says the same.
GOOD = (
    r"(?:very |quite |really |remarkably )?(?:good|strong|solid|impressive|healthy|successful|decent"
    r"|excellent|superb|great"
    r"|attractive|robust|outstanding|fine|effective|reliable)(?: (?:one|results?|performance|run|record"
    r"|job|work|year|years|form))?"
)
BAD = (
    r"(?:very |quite |really )?(?:bad|poor|weak|disappointing|terrible|dismal|awful|mediocre|lousy"
    r"|unsuccessful|ineffective"
    r"|dreadful|miserable|troubled|a failure|a disaster)(?: (?:one|results?|performance|run|record|job"
    r"|work|year|years|form))?"
)
CHANGES = (
    r"(?:climb|improv|declin|deteriorat|worsen|increas|decreas|grow|shrink|recover|widen|narrow|strengthen"
    r"|weaken"
    r"|accelerat|slow|doubl)(?:ed|s|es|ing|e)?|rose|risen|rises?|rising|grew"
    r"|(?:fell|fallen|falls?|falling)(?! (?:in|into|on|within|under|inside)\b)"
    r"|grown|shrank|shrunk"
    r"|drop(?:ped|s|ping)?"
)
# Grades that a word denies by itself.
NOT_GRADED = (
    r"(?:no|little|hardly any|insufficient) (?:(?:clear|firm|solid|real|strong|statistical|convincing"
    r"|conclusive) )?"
    r"(?:evidence|proof|sign)(?: yet| so far)?(?: that| of| for)?|nothing (?:can|could|may) be (?:said"
    r"|concluded|claimed)"
    r"|edge (?:is|was|has been|has) (?:not|never)(?: yet| been)* (?:shown|proven|established)|(?:cannot"
    r"|can not) (?:yet )?"
    r"(?:show|prove|establish)(?: anything)?(?: yet)?|unproven|inconclusive|insignificant|unconfirmed"
    r"|not (?:yet )?(?:statistically )?significant|unestablished"
)
EQUAL = (
    r"(?:the |an )?(?:same|identical|equal)(?= (?:win|mean|average|total|result|median|fees|hit|hold))|"
    r"(?<!almost )(?<!nearly )(?<!roughly )(?<!about )(?<!over )the same(?= number of)|"
    r"as (?:good|bad|strong|weak|profitable|much|many|often|large|big|small|frequent|high|low|long|short"
    r"|active)"
    r"(?= (?:[a-z]+ ){0,2}as\b)"
)
RANKED = (
    r"(?:(?:came|comes|coming|ranked|ranks|placed|finished|finishes|was|is|in|took|takes) )(?:a distant "
    r"|a close |the )?"
    r"(?:second|third|fourth|fifth)(?: place)?(?: only to| behind)?|second only to|runner-up|next came"
    r"|next comes|followed by"
)
# Words of a side that mean none.
NO_SIDE = (
    r"without (?:a single |any )?exceptions?|monitoring only|after (?:all )?costs|net of costs"
    r"|long (?:way|time|run|term|ago|period|stretch|series|before"
    r"|after|enough|history|list|since)|long-term|(?:as|so|no|not|for) long"
    r"|in short|short-lived|shortly|short (?:time|period|answer|history|term)|short-term|cut short"
    r"|fall short|fell short"
)
FUTURE = (
    r"will|won't|would|going to|next (?:year|quarter|month|week|time)|expected to|likely to|bound to"
    r"|set to(?! \d)|tomorrow"
    r"|in (?:the )?future|coming (?:year|quarter|month|weeks|months|years)|shall|promises? to|forecasts?"
    r"|predict(?:s|ed)?"
    r"|project(?:s|ed)|should (?:recover|improve|continue|keep|remain|rise|earn|win)|could have|might have"
    r"|should have"
)
# Trades on paper, and what a bar is asked for where no name of a feature is written.
TRIALS: dict[str, str] = {
    **{
        kind: rf"(?:shadow|paper) {said}s?|{said} trials?"
        for kind, said in (
            ("experiment", "experiment"), ("candidate", "candidate"), ("banned_cell", "ban"),
            ("risk_cut", "risk[- ]cut"), ("refuted", "refuted"),
        )
    },
    "any": r"(?:(?:shadow|paper) )?trial(?:'s|’s)?(?! and error)",
}  # fmt: skip
OF_A_BAR: dict[str, str] = {
    "close": r"clos(?:e|ing)(?: price)?(?= (?:of|was|is|stood|at|on))",
    "open": r"opening price|the open(?= (?:of|was|is))",
    "high": r"(?:(?:the|its|daily|day's) )high(?= (?:of|was|is|stood))",
    "low": r"(?:(?:the|its|daily|day's) )low(?= (?:of|was|is|stood))",
    "volume": r"(?:(?:the|its|daily) )volume(?= (?:of|was|is|stood))",
    "atr": r"atr(?= (?:of|was|is|stood))",
}
# Capitals that name no symbol.
ABBREVIATIONS = words(
    "R E N II III IV A I AM PM UTC GMT MFE MAE ATR RSI EMA SMA ADX PSR DSR USD EUR GBP USDT OK NO NOT "
    "ALL AND OR BUT THE P50 P80 P90 CPU LLM CI US UK EU PNL PL VWAP OHLC HOLD ABSTAIN"
)
