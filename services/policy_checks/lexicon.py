"""The words that `claims` and `direction_words` read: data, kept apart from the reading.

Phrases are separated by semicolons, single words by blanks. All lower case, hyphens written as blanks; an
inflected form is covered by its stem, so only irregular ones are listed.
"""

import re


def _phrases(text: str) -> tuple[str, ...]:
    return tuple(" ".join(phrase.split()) for phrase in text.split(";") if phrase.strip())


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# What somebody does or holds: "sell the rally" is about selling.
BULLISH_ACTS = _phrases("buy; bought; go long; to own; own it; own this; accumulate; load up on longs")
BEARISH_ACTS = _phrases(
    "sell; sold; go short; sell short; sold short; to short; short it; short this; liquidate"
)
# Who acts: "buyers stepped in on the decline" is about buyers.
BULLISH_AGENTS = _phrases(
    """
    bull; buyer; buying; bid; bidder; demand; bargain hunter; short covering; short squeeze; buy back;
    accumulation; bear trap; bullish; bottom fishing; trapped shorts; inflow
    """
)
BEARISH_AGENTS = _phrases(
    """
    bear; seller; selling; the offer; supply; long liquidation; bull trap; distribution; bearish; profit
    taking; falling knife; dead cat bounce; sucker's rally; bear market rally; trapped longs; outflow; head
    for the exits
    """
)
# Where price goes.
BULLISH_MOVES = _phrases(
    """
    upside; uptrend; up trend; upward; upwards; uptick; upturn; upswing; rally; higher; higher high; higher
    low; rise; risen; rose; rebound; bounce; recover; recovery; strength; strengthen; advance; climb; gain;
    appreciate; oversold; undervalued; cheap; surge; soar; new high; lower high broken; north; take off;
    support held; support holds; support is holding; off support; above resistance; through resistance;
    clear resistance; reclaim; uphill; break out; break above; broke out; broke above; broken out; broken
    above
    """
)
BEARISH_MOVES = _phrases(
    """
    downside; downtrend; down trend; downward; downwards; downtick; downturn; downswing; decline; lower;
    lower low; lower high; fall; fell; fallen; drop; sell off; selloff; breakdown; weakness; weaken; slump;
    deteriorate; overbought; overvalued; expensive; plunge; crash; collapse; sink; sank; slide; slid; slip;
    tumble; tank; sag; new low; higher low broken; south; break down; break below; broke down; broke below;
    broken down; broken below; give back; roll over; rolled over; rolling over; resistance held; resistance
    holds; below support; through support; undercut; downhill; lose support; lost support
    """
)
# A break may be either way: it yields to anything else that its clause says.
BULLISH_BREAKS = _phrases("breakout")
# An adjective: of what its clause speaks of, else of price.
STRONG = _words("strong stronger strongest firm firmer robust constructive resilient healthy")
WEAK = _words("weak weaker weakest soft softer feeble vulnerable fragile ugly sick toppy")
# For or against the plan, whatever its direction.
FOR_THE_PLAN = _phrases(
    "in our favour; in our favor; with us; our way; in my favour; in my favor; tailwind;"
    " give back less; giving back less; gave back less"
)
AGAINST_THE_PLAN = _phrases(
    """
    against us; against me; against this plan; against this trade; stand aside; stay out; sit this one out;
    sit on my hands; sit on our hands; steer clear; hands off; keep out; no trade here; leave it alone;
    nothing to do here; better ideas elsewhere; pass on this; pass on it; give this a miss; headwind
    """
)

# Words that turn the whole clause behind an auxiliary ("sellers could not"), and what follows elsewhere.
NEGATORS = _words(
    """
    not no never none neither nor without hardly barely scarcely nothing nobody little few lack absence
    """
)
# Of them, those that turn the whole clause when they stand behind an auxiliary.
VERBAL = _words("not never hardly barely scarcely")
AUXILIARIES = _words(
    """
    is are was were be been am do does did has have had can could will would should may might must need ca
    wo sha ai shall
    """
)
# Verbs that turn all they speak of: "fails to rise", "refuses to fall", "I doubt that".
TURNING_VERBS = _phrases(
    """
    fail to; refuse to; unable to; struggle to; reluctant to; doubt; unlikely; avoid; deny; stay away from;
    keep away from; stay out of; steer clear of; shy away from; no interest in; tire of; stay off;
    imagination to; hard to; difficult to; premature to; wrong place to; wrong time to; wrong moment to; no
    time to; no place to; no reason to; wary of; shake my head at; laugh at; rule out; wait in vain
    """
)
# What is said to be over or overdone; a counter-move that is over speaks for the plan.
ENDINGS = _phrases(
    """
    over; exhaust; exhaustion; broken; gone; dead; finished; spent; done; stall; lose; losing; lost; fail;
    failure; dry up; vanish; disappear; evaporate; melt away; retreat; give up; given up; gave up; give way;
    given way; gave way; let go; letting go; back down; back off; leave; leaving; have left; has left; run
    out; running out; ran out; run its course; out of steam; out of breath; run dry; run into trouble; too
    far; too fast; overdone; overextended; stretched; excessive; unsustainable; corrective; temporary; short
    lived; shallow; half hearted; nowhere; come to nothing; came to nothing; to no avail; in vain; in
    trouble; caught; on the run; on the back foot; on the defensive; on the wrong foot; on the ropes; on its
    last legs; on their last legs; missing; absent; shot their bolt; fall apart; fell apart; fallen apart;
    crumble; in tatters; in doubt; in question; question; suffocate; empty handed; tired; worn out; cave in;
    capitulate; capitulation; wear off; peter out; fizzle; thrown back; turned back; turned away; pushed
    back; knocked back; beaten back; weak hands; trouble; difficulty; problem; used to; once was; once were;
    yield; subside; abate; limited; minimal; negligible; borrowed time; on sand; scarce; scant; sparse;
    running on fumes; run on fumes; throw in the towel; slow; slowed; ease; eased; overreaction; overshoot;
    an opportunity; a gift; a discount; cover; offside; be cut; squander; blew; waste; botch; flee; fled;
    scatter; desert; bail; thin; nothing left; cold feet; let up; fatigue; never again; wane; wither; ebb;
    behind us; fumble; on the sidelines; wrong side; losing side; die; hide; worried; disappointed; thrown
    in the towel; threw in the towel
    """
)
# What is said not to be so at all.
REFUTALS = _phrases(
    """
    false; fake; wishful; wishful thinking; myth; illusion; mirage; fairy tale; disprove; disproved; refute;
    refuted; debunk; out of the question; imaginary; deceptive; fantasy; fiction; on paper; wrong; mistaken;
    absurd; one off; fluke; overblown; exaggerated; unwarranted; misplaced; joking; so called; supposed;
    alleged; dreaming; dream; pipe dream; nonsense; laughable; joke; unfounded; baseless; delude; delusion;
    trap; trapped; fool; dubious; doubtful; unconvincing; contradict; belie; far fetched; fooled; bad idea;
    terrible idea; poor idea; foolish; folly; madness; ill advised; a mistake; improbable; implausible; leap
    of faith; regret; be a stretch; remote
    """
)
# What the phrase behind them is said to have been: "a crash in what was an uptrend".
PAST = _phrases(
    """
    what was; what were; what had been; what used to be; what once was; what once were; what was once; what
    were once; used to be; former; formerly; erstwhile; bygone; cease to be; stop being
    """
)
# What one side does to the other: turns its object, or its subject in the passive.
OVERPOWER = _phrases(
    """
    absorb; soak up; swamp; overwhelm; cap; reject; smother; crush; block; outnumber; outweigh; outpace;
    exceed; defeat; beat; overpower; thwart; stop; halt; deny; kill; repel; fade; end; ending; negate;
    digest; mop up; swallow; shrug off; brush off; withstand; contain; arrest; punish; drain; drown; use up;
    push aside; drive out; wash out; flush out; shake out; chase out; reverse; break; squeezed out
    """
)
# Moves that a plan waits for to trade against them: their end, or their excess, speaks for it.
COUNTER_MOVES = _words(
    "dip pullback throwback retracement correction setback relief oversold overbought mean"
)
# Price that has gone somewhere already.
PAST_MOVES = _words(
    """
    rose risen fell fallen dropped declined slid slipped slumped tumbled tanked plunged crashed collapsed
    sank sunk rallied climbed gained surged soared advanced rebounded bounced recovered sold bought
    """
)
# Beside its phrase, all that an item of a list may have.
ITEM_WORDS = _words("any even real true such proper other more kind sort of")
# Beside the playbook's terms, what makes no statement about them: "there is a dip".
FILLERS = _words(
    """
    a an the this that it its it's there there's here now today is are was were be been being am has have had
    i we you my our one some and or plus also again so then in of with within at on to for as see got go yes
    """
)
# A place, behind which a negation no longer reaches: "nothing above the high".
PREPOSITIONS = _words("at from into to on through in by")
PLACES = _words("above below beyond under between near past ahead beneath behind against")
HAVING = _words("have has had having with got find finds found make makes made")
ARTICLES = _words("the a an my our hard next time initial protective trailing")
# Behind a verb, what shows that it has no object.
NO_OBJECT = _words(
    """
    at in on here again now before near above below with as early quickly today so under around there out
    after last yesterday recently for when while because since weeks days months long
    """
)
PASSIVE = _words("is are was were be been being get gets got getting")
# "over the next bars" is no end: these say one only where a clause ends.
ONLY_LAST = _words("over done gone spent")
AFTER_LAST = _words("now already for here before unless again and too")

# Flows, which may grow and shrink themselves: "demand has collapsed" is no demand.
FLOWS = _words(
    """
    demand supply buying selling bid bids inflow inflows outflow outflows accumulation distribution
    """
)
SHRINKS = _words(
    """
    fall fell fallen drop decline collapse plunge slump sink sank slide slip tumble deteriorate weaken
    """
)
# Verbs that look like one of the nouns.
NO_NOUN = _words("supplies supplied demands demanded bidding")

# A move of what is not price says nothing: "volume is falling".
NOT_PRICE = _words(
    """
    volume volatility spread range atr bandwidth turnover activity correlation cost costs fee fees risk odds
    timeframe timeframes band bands channel boundary edge half third quarter quartile breadth liquidity
    participation interest probability chance chances quality conviction bars base uncertainty noise stop
    stops share grade deviation wick shadow tail candle line trendline average mean slope
    """
)
BETWEEN = _words(
    """
    is are was were has have had been be being a an the little bit slightly somewhat much far still also now
    again keeps keep kept remains remain remained sits sit stays stayed looks look lies in at its their very
    quite rather too and true average
    """
)
# "up" and "down" are directions unless they belong to one of these verbs.
PARTICLE_VERBS = _words(
    """
    set give gave dry show end line make made build back step use hold held clean wrap sum soak mop load
    settle calm slow quiet come boil wind write open stand stood add tighten tie pick size scale hang free
    warm cheer shake shut lock keep kept speed catch caught clear round break broke
    """
)
# After these a bare "long" or "short" is a position; before any of the others it is not.
POSITION_NEXT = _words(
    """
    side trade plan position setup here entry case idea bias exposure thesis signal now today it this at
    into from on and or than too again anyway with for through over if when
    """
)
NOT_A_POSITION_AFTER = _words(
    """
    for not how too as so very before in fall falls fell run runs stop stopped just cut stops comes came
    """
)
AFRESH = _words("last recent recently yesterday earlier previous previously prior past ago former")

# From the first word of a sentence on, these make all of it a case that is only supposed.
SUPPOSING = _words("if unless should were had suppose assuming provided once whenever until otherwise")
# Elsewhere in a sentence they do so from there on.
CONDITIONAL = _words("if unless until otherwise invalidated invalidates invalidation invalid exit exits")
# A sentence that says what would end the plan, when it also supposes something.
ENDS_THE_PLAN = re.compile(
    r"\b(?:wrong|mistaken|invalid\w*|disprov\w+|prov\w+|change my (?:mind|view|opinion)|rethink|reconsider"
    r"|think again|(?:i|we) (?:would |will |'d |'ll )?(?:leave|exit|bail|quit|fold|step aside|bow out|get out"
    r"|walk away"
    r"|take the loss|stand down|admit|accept|drop it)"
    r"|(?:am|are|be|is) (?:out|off|void|dead|done|gone|finished|closed|over)|no longer (?:valid|hold)"
    r"|(?:would|should|could|will|it) (?:not )?(?:takes?|needs?|requires?|mean|show|signal|tell|imply|say"
    r"|undo|kill"
    r"|end"
    r"|spoil|negate|void|"
    r"break|force|hold|argue|suffice|be enough|settle)"
    r"|(?:idea|thesis|plan|trade|case|setup) (?:dies|ends|fails|falls|no longer"
    r"|is (?:off|void|dead|over|wrong|done|gone|invalid))"
    r"|give up on|cut (?:it|the)|close (?:it|the (?:trade|position))|abandon|kills?)\b"
)
SUPPOSES = re.compile(
    r"\b(?:would|should|if|were|unless|only|until|once|when|whenever|moment|as soon as|in (?:the )?case"
    r"|in the event|takes|needs|requires|what|dies|ends|upon|(?:on|with|at|after) (?:a|an|any))\b"
)
INDEFINITE = _words("a an any another only")
# Words of the plan's own risk: what stands against the plan beside them is what may happen to it.
OWN_RISK = _words("stop loss losses damage invalidation misread misjudged premise thesis")
# A sentence about what may go wrong.
RISK_NAMED = re.compile(
    r"^\W*(?:(?:some|sceptics|skeptics|critics|others|pundits|people|many|most|commentators|doomsayers)"
    r" (?!of |are |is |have )|one (?:can|could|may|might) |(?:i |we )?(?:must |should |will )?"
    r"watch (?:for|out)\b)"
    r"|^\W*(?:(?:the|my|its|one|another|key|main|biggest|principal|chief|only|obvious|real) )*"
    r"(?:risks?|danger|worry|concern|threat|caveat|failure|scenario)\b"
    r"(?!.{0,12}\b(?:skew|to the|tilt|on the|favou?r|lies on))"
)
CONCESSIVE = _words("despite although though notwithstanding albeit while granted admittedly whereas")
BACKGROUND = _words("after following before since")
TURNS = _words("but yet however nevertheless nonetheless still")
# A clause ends at these.
JOINTS = _words(
    """
    and nor but or yet so because since as which who that's while whereas then when where after before
    following
    """
)
# "That" behind these begins what is thought or said; behind another word it tells more of the word.
THAT_IS_SAID = _words(
    """
    think thinks believe believes suggest suggests say says show shows mean means evidence sign signs proof
    fear hope see sees expect expects feel feels sure convinced clear idea notion view claim claims fact so
    imply implies indicate indicates confirm confirms hint know certain unlikely likely doubt case reason
    not is was belief story talk certainly suspect assume
    """
)
# A sentence that says the opposite of its words.
IRONY = re.compile(
    r"\basif\b|^\W*(?:yeah|dream on|oh sure|sure,|like)\b|\b(?:good luck|so much for|yeah right|dream on"
    r"|keep dreaming|in your dreams|if you (?:like|enjoy|love) losing|never mind that|what could go wrong)\b"
)
PRONOUNS = _words("i we it they this that he she")
HEDGES = _words("may might could perhaps maybe possibly seemingly")
DENIALS = _words("no not hardly never nowhere nope wrong barely scarcely nothing")

# Said in more than one word, read as one of the words above, or as nothing.
REWRITES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), put)
    for pattern, put in (
        (r"’", "'"),
        (r"\d+(?:[.,]\d+)*%?", " 0 "),
        (r"\b(?:e\.g\.|i\.e\.|vs\.)", " "),
        (r"\bstructure (?:is )?(?:breakout|breakdown)\b", " "),  # a label of the regime, for either direction
        (r"\bcannot\b", "can not"),
        (r"n't\b", " not"),
        (r"\bno one\b", "nobody"),
        (r"\bshort and (?:vulnerable|exposed) to a squeeze\b", "facing a short squeeze"),
        (r"\bnot be surprised (?:by|to see|at|if|about)\b", " "),
        (r"\btoo \w+ to\b", "fail to"),
        (r"\bgain(?:s|ed|ing)? (?:ground|traction)\b", " "),
        (
            r"\b(?:positioning|crowd|everyone|everybody|speculators|funds|street|they|most)"
            r" (?:is|are|was|were)(?: \w+)? (?:short|long)\b",
            " ",
        ),
        (r"\b(?:no|not any) (?:longer|more)\b", "not"),
        (
            r"\b(?:if anything|if (?:you ask me|i am honest|i'm honest|i may)|to be honest"
            r"|(?:were it|if) not for|nothing but|not (?:only|just|merely|simply)"
            r"|no (?:less|other|sooner) than"
            r"|not least|need not"
            r"|a (?:little|few|bit|touch|shade|tad)|no doubt|no question|without (?:a )?(?:doubt|question)"
            r"|in short|for short|as long as|so long as|supply and demand|buy and hold|bearing in mind"
            r"|(?:needs?|lost|loses?|wast\w+|took|takes?) no (?:\w+)|in the long run|in no time)\b",
            " ",
        ),
        (
            r"\b(?:far from|anything but|instead of|rather than|let alone|(?:a )?long way from|devoid of"
            r"|free of|nothing like|opposite of|burden of proof (?:is|lies|rests|sits) (?:with|on))\b",
            "without",
        ),
        (
            r"\b(?:short|long)(?:er)?[- ](?:term|lived|run|dated|standing|time|of|as|enough|before|after|ago"
            r"|while|base|list|wait|way|bar|candle|history|stretch|past)\b",
            " ",
        ),
        (r"\b(?:how|too|very|bars|weeks|days|months) long\b", " "),
        (r"\b(?:at|by|towards?|until) the end of the \w+|\bstop loss(?:es)?\b", " "),
        (r"\bnot even\b", "not"),
        (r"\bnothing to do with\b", "without"),
        (r"\b(?:go )?(?:so|as) far as\b", " "),
        (r"\b(has|have|had) since\b", r"\1"),
        (r"\bas (?:if|though)\b", "asif"),
        (r"\beven (?:if|though)\b", "although"),
        (r"\bin spite of\b", "despite"),
        (
            r"\b(?:in (?:the )?case of|in the event of|in case|the moment|as soon as"
            r"|provided that|only if)\b",
            "if",
        ),
        (r"\s[-–—]+\s|[–—]", " , "),
        (r"-", " "),
    )
)
