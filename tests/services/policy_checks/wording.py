"""How a strategist may word a plan: banks of sentences for a long, mirrored for a short, drawn by seed.

A bank is data and is never read while the critics are changed for another one. `{word}` in a sentence
stands for itself in a long plan and for its opposite in a short one; `{t0}`, `{t1}`, `{t2}` are the
playbook's terms.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from schemas.playbook import PlaybookDefinition
from schemas.vocabulary import Direction

PAIRS = (
    "buyers/sellers buyer/seller buy/sell buys/sells buying/selling bought/sold bulls/bears bull/bear "
    "bullish/bearish long/short longs/shorts up/down upside/downside upward/downward upwards/downwards "
    "higher/lower highs/lows high/low above/below over/under uptrend/downtrend strength/weakness strong/weak "
    "stronger/weaker demand/supply rise/fall rises/falls rising/falling rose/fell risen/fallen rally/decline "
    "rallies/declines support/resistance floor/ceiling bid/offer bids/offers dip/bounce dips/bounces "
    "accumulation/distribution lifts/presses climb/slide climbs/slides climbing/sliding own/short "
    "cheap/expensive top/bottom rolled/turned breakout/breakdown overhead/underneath overbought/oversold"
)
MIRROR = {
    word: other
    for pair in PAIRS.split()
    for word, other in (pair.split("/"), pair.split("/")[::-1])
    if (word, other) != ("short", "own")
}
SIDES: dict[Direction, Mapping[str, str]] = {"long": {word: word for word in MIRROR}, "short": MIRROR}


@dataclass(frozen=True, eq=False)
class PhraseBank:
    """Sentences by what they do in a plan.

    Attributes:
        thesis, because: by playbook id, with the playbook's own terms.
        arguments: for the direction, without terms.
        harmless: negations and denials that do not turn against the direction.
        counterfactual: what would prove the plan wrong, in words of the other side.
        hedges: doubt, cost and size, without a direction.
        context: of the market, without a direction.
    """

    thesis: Mapping[str, tuple[str, ...]]
    because: Mapping[str, tuple[str, ...]]
    arguments: tuple[str, ...]
    harmless: tuple[str, ...]
    counterfactual: tuple[str, ...]
    hedges: tuple[str, ...]
    context: tuple[str, ...]


def worded(sentence: str, playbook: PlaybookDefinition, direction: Direction) -> str:
    """The sentence as it reads in a plan of this direction."""
    terms = {f"t{k}": term for k, term in enumerate(playbook.rationale_terms[direction])}
    words = {word.capitalize(): other.capitalize() for word, other in SIDES[direction].items()}
    text = sentence.format(**SIDES[direction], **words, **terms)
    return text[0].upper() + text[1:]


def right_texts(
    bank: PhraseBank, playbook: PlaybookDefinition, direction: Direction, rng: Random
) -> tuple[str, str]:
    """Thesis and rationale that argue for the direction, each sentence drawn from the bank."""
    parts = rng.sample(bank.because[playbook.id], rng.choice((1, 1, 2)))
    parts += rng.sample(bank.arguments, rng.choice((1, 1, 2)))
    for sentences in (bank.harmless, bank.counterfactual, bank.hedges, bank.context):
        parts += rng.sample(sentences, rng.choice((0, 1)))
    rng.shuffle(parts)
    thesis = rng.choice(bank.thesis[playbook.id])
    said = [worded(part, playbook, direction) for part in parts]
    return worded(thesis, playbook, direction), " ".join(said)
