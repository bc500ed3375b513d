"""The words `direction_words` reads: data, kept apart from the reading.

Phrases are separated by semicolons, single words by blanks. All lower case, hyphens written as blanks.
"""


def _phrases(text: str) -> tuple[str, ...]:
    return tuple(" ".join(phrase.split()) for phrase in text.split(";"))


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


BULLISH = _phrases(
    """
bullish; bull; bulls; long; longs; buy; buys; buying; buyer; buyers; bid; upside; uptrend; uptrends;
up trend; upward; upwards; trending up; trends up; moves up; move up; moving up; goes up; go up;
going up; rally; rallies; rallied; rallying; higher; higher high; higher highs; higher low; higher
lows; rise; rises; rising; rose; risen; breakout; breakouts; breaks out; break out; breaking out;
broke out; accumulation; rebound; rebounds; rebounding; bounce; bounces; bouncing; recover;
recovers; recovering; recovery; strength; strengthen; strengthens; advance; advances; advancing;
climb; climbs; climbing; gain; gains; appreciate; appreciates; oversold; undervalued; cheap; short
squeeze; short covering; lower high broken; surge; surges; surging; soar; soars; demand
"""
)
BEARISH = _phrases(
    """
bearish; bear; bears; short; shorts; sell; sells; selling; seller; sellers; sell off; selloff;
offered; downside; downtrend; downtrends; down trend; downward; downwards; trending down; trends
down; moves down; move down; moving down; goes down; go down; going down; decline; declines;
declining; declined; lower; lower low; lower lows; lower high; lower highs; fall; falls; falling;
fell; fallen; drop; drops; dropping; breakdown; breakdowns; breaks down; break down; breaking down;
broke down; distribution; weakness; weaken; weakens; weakening; slump; slumps; slumping;
deteriorate; deteriorates; deteriorating; overbought; overvalued; expensive; plunge; plunges;
plunging; crash; crashes; crashing; collapse; collapses; collapsing; sink; sinks; sinking; slide;
slides; sliding; long liquidation; higher low broken; supply
"""
)
NEGATORS = _words(
    """
not no never none neither nor without cannot hardly barely scarcely unlikely lack lacks lacking fail
fails failed failing failure false fake exhausted exhaustion absent absence missing lose loses
losing lost loss fade fades fading faded stall stalls stalled stalling end ends ended ending over
broken gone dead finished reversing reversed doubt doubtful avoid refuse refuses against denies
rejected rejects dries dried spent
"""
)
# From here on a clause says what would have to happen, not what is claimed.
CONDITIONAL = _words(
    """
if unless until otherwise invalidated invalidates invalidation invalid wrong stop stopped exit exits
"""
)
# From here on a clause grants what the argument overrules, or tells what went before.
CONCESSIVE = _words(
    """
despite although though notwithstanding albeit after following whereas
"""
)
# A negation does not reach across these.
JOINTS = _words(
    """
and but or yet so because since as which that with while then
"""
)
