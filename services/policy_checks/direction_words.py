"""Which direction does a text argue for? Words of the trade, claim by claim, with what turns them.

Phrases of the lexicon and of the playbook are read in clauses that are claims (`claims`), and turned by what
`clause_reading` finds around them. Where a clause says two things, who acts outweighs where price went
("each rally is sold" is about selling); what stands before a "but" yields to what stands behind it. A word
list reads plain prose only: what it cannot place says nothing, and is left to the optional model. Called by
the coherence check.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from schemas.vocabulary import Direction
from services.policy_checks import lexicon as words_of
from services.policy_checks.claims import TAIL_JOINTS, Clause, Sentence, claimed
from services.policy_checks.clause_reading import (
    ACT,
    AGENT,
    BREAK,
    MOVE,
    ClauseReader,
    Entry,
    Lexicon,
    Said,
)
from services.policy_checks.stems import Phrase, phrase

# Beside terms, what a list of them may hold: an adjective, a greeting.
FEW_WORDS = 2


@dataclass(frozen=True)
class DirectionReading:
    """Phrases of a text that argue for and against a direction, in the order in which they stand.

    `sides` holds for each sentence that takes one whether it argues for the direction (1) or against it (-1).
    """

    supporting: tuple[str, ...]
    opposing: tuple[str, ...]
    sides: tuple[int, ...] = ()

    @property
    def contradicts(self) -> bool:
        """As many sentences against the direction as for it: no list of a playbook's terms outvotes one.

        Sentences that hold nothing but terms are one list, wherever they stand.
        """
        return -1 in self.sides and sum(self.sides) <= 0


def read_direction(
    text: str, direction: Direction, own_terms: Iterable[str] = (), other_terms: Iterable[str] = ()
) -> DirectionReading:
    """Phrases for and against `direction`; terms that both directions of a playbook share say nothing."""
    own, other = frozenset(own_terms), frozenset(other_terms)
    return _read(text, direction, own - other, other - own)


def terms_stated(text: str, terms: Iterable[str]) -> tuple[str, ...]:
    """The terms a text states without negating them, in the order in which they stand."""
    return _stated(text, frozenset(terms))


@lru_cache(maxsize=1024)
def _read(text: str, direction: Direction, own: frozenset[str], other: frozenset[str]) -> DirectionReading:
    reader = ClauseReader(_lexicon(direction, own, other))
    sentences = [_read_sentence(reader, sentence) for sentence in claimed(text)]
    fresh = [(sentence, [one for one in said if not one.background]) for sentence, said in sentences]
    counted = [pair for pair in (fresh if any(said for _, said in fresh) else sentences) if pair[1]]
    listed = [said for bare, said in counted if bare]
    return DirectionReading(
        supporting=tuple(one.text for _, said in counted for one in said if one.sign > 0),
        opposing=tuple(one.text for _, said in counted for one in said if one.sign < 0),
        sides=(*(_side(said) for bare, said in counted if not bare), *((1,) if listed else ())),
    )


def _read_sentence(reader: ClauseReader, sentence: Sentence) -> tuple[bool, list[Said]]:
    """Whether a sentence only lists terms of the playbook, and the claims of it that count."""
    found = _claims(reader, sentence)
    said = _outweighed(found)
    return _only_lists(sentence, found), said


def _only_lists(sentence: Sentence, found: list[tuple[Clause, list[Said]]]) -> bool:
    """Whether a sentence names own terms and says next to nothing of them: "There is a fine dip"."""
    said = [one for _, claims in found for one in claims]
    if not said or not all(one.entry.own and one.sign > 0 for one in said):
        return False
    words = sum(word not in words_of.FILLERS for clause in sentence.clauses for word in clause.words)
    named = sum(word not in words_of.FILLERS for one in said for word in one.text.split())
    return words - named <= FEW_WORDS


def _side(said: list[Said]) -> int:
    """Which side a sentence takes.

    The playbook's own terms name the setup itself: each weighs twice what a general word does, whose reading
    may be mistaken, and counts once however often it stands.
    """
    terms = {one.text for one in said if one.entry.own and one.sign > 0}
    general = sum(one.sign for one in said if not (one.entry.own and one.sign > 0))
    return 1 if general + 2 * len(terms) >= 0 else -1


@lru_cache(maxsize=1024)
def _stated(text: str, terms: frozenset[str]) -> tuple[str, ...]:
    reader = ClauseReader(_terms_alone(terms))
    said = [one for sentence in claimed(text) for _, claims in _claims(reader, sentence) for one in claims]
    return tuple(one.text for one in said if one.sign > 0)


def _claims(reader: ClauseReader, sentence: Sentence) -> list[tuple[Clause, list[Said]]]:
    """What each clause of a sentence claims; one that only turns ("and were thrown back") turns the last."""
    found: list[tuple[Clause, list[Said]]] = []
    negated = False
    for clause in sentence.clauses:
        said, loose, negated = reader.read(clause, negated)
        if said and found and clause.words[-1] in words_of.VERBAL:
            said[-1].turns += found[-1][1][-1].turns  # "the upside is capped, the downside is not"
        if said:
            found.append((clause, said))
        elif loose and found and (clause.joint in TAIL_JOINTS or clause.words[0] in words_of.PRONOUNS):
            found[-1][1][-1].end_it(loose)
    if sentence.denied:
        for _, said in found:
            for one in said:
                one.turns += 1
    return found


def _outweighed(found: list[tuple[Clause, list[Said]]]) -> list[Said]:
    """The claims that count: firm ones before hedged ones, and what stands behind the last "but"."""
    firm = [pair for pair in found if not pair[0].hedged] or found
    last = max((clause.turn for clause, _ in firm), default=0)
    return [one for clause, said in firm if clause.turn == last for one in _decided(said)]


def _decided(said: list[Said]) -> list[Said]:
    """Without what the highest rank in the clause speaks against."""
    top = max(one.entry.rank for one in said)
    signs = {one.sign for one in said if one.entry.rank == top}
    return [one for one in said if one.entry.rank == top or one.sign in signs]


@lru_cache(maxsize=256)
def _lexicon(direction: Direction, own: frozenset[str], other: frozenset[str]) -> Lexicon:
    """Both sides of the general vocabulary and of a playbook's terms; its own terms win."""
    up = 1 if direction == "long" else -1
    entries = dict(_turning())
    for sign, rank, phrases in _GENERAL:
        entries |= {phrase(text): Entry("claim", sign * up, rank) for text in phrases}
    entries |= {phrase(text): Entry("claim", 1, AGENT) for text in words_of.FOR_THE_PLAN}
    entries |= {phrase(text): Entry("claim", -1, AGENT) for text in words_of.AGAINST_THE_PLAN}
    general = dict(entries)
    entries |= {phrase(term): Entry("claim", -1, AGENT) for term in other}
    entries |= {phrase(term): Entry("claim", 1, AGENT, _is_counter(term, general), own=True) for term in own}
    return Lexicon(entries, up)


@lru_cache(maxsize=256)
def _terms_alone(terms: frozenset[str]) -> Lexicon:
    """Only a negation or a refutal takes a term back; that a dip is over says that there was one."""
    return Lexicon(dict(_turning()) | {phrase(term): Entry("claim", 1, AGENT, True) for term in terms}, 0)


@lru_cache(maxsize=1)
def _turning() -> dict[Phrase, Entry]:
    roles = (
        ("not", words_of.NEGATORS),
        ("turns", words_of.TURNING_VERBS),
        ("overpowers", words_of.OVERPOWER),
        ("ends", words_of.ENDINGS),
        ("refutes", words_of.REFUTALS),
        ("past", words_of.PAST),
    )
    return {phrase(text): Entry(role) for role, phrases in roles for text in phrases}


def _is_counter(term: str, general: dict[Phrase, Entry]) -> bool:
    """Whether a term of the plan is a move against it, such as a dip that is bought."""
    stems = phrase(term)
    return any(part in words_of.COUNTER_MOVES for part in stems) or any(
        entry.sign < 0 for part in stems if (entry := general.get((part,))) is not None
    )


_GENERAL = (
    (1, BREAK, words_of.BULLISH_BREAKS),
    (1, MOVE, words_of.BULLISH_MOVES),
    (-1, MOVE, words_of.BEARISH_MOVES),
    (1, AGENT, words_of.BULLISH_AGENTS),
    (-1, AGENT, words_of.BEARISH_AGENTS),
    (1, ACT, words_of.BULLISH_ACTS),
    (-1, ACT, words_of.BEARISH_ACTS),
)
