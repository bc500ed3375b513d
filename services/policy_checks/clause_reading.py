"""What one clause says of a direction: phrases of a lexicon, and the words around them that turn them.

A negation behind an auxiliary turns its whole clause ("sellers could not"), another one what follows it ("no
sign of sellers"). A word that ends or refutes something turns the phrase next to it ("the rally is over",
"a false rally"); what the playbook names or who acts is taken back where it stands as what was ("a crash in
what was an uptrend"); one that overpowers turns its object, or its subject in the passive ("supply swamps the
rally", "the rally is rejected"). Two turns cancel. Called by `direction_words`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from services.policy_checks import lexicon as words_of
from services.policy_checks.claims import Clause
from services.policy_checks.stems import Phrase, stem

# Ranks of what a clause says: the highest one in it decides.
ACT, AGENT, MOVE, BREAK = 4, 3, 2, 1
PARTICLE_VERBS = frozenset(stem(word) for word in words_of.PARTICLE_VERBS)
SHRINKS = frozenset(stem(word) for word in words_of.SHRINKS)
NEAR = 3  # words between a turning word and a phrase behind it
NO_NOUN_PHRASE = words_of.PREPOSITIONS | words_of.PLACES | words_of.AUXILIARIES | {"of"}

Role = Literal["claim", "not", "turns", "ends", "refutes", "past", "overpowers"]


class Entry(NamedTuple):
    """What a phrase of a lexicon is: a claim with sign and rank, or a way to turn claims.

    A `counter` move of the plan is not taken back by its end; `own` terms are the playbook's.
    """

    role: str
    sign: int = 0
    rank: int = 0
    counter: bool = False
    own: bool = False


class Mark(NamedTuple):
    """An entry at words[start:end]."""

    start: int
    end: int
    entry: Entry


@dataclass(frozen=True)
class Lexicon:
    """Entries by stems; `up` is the sign of a bare "up", 0 where no general word counts."""

    entries: Mapping[Phrase, Entry]
    up: int

    @cached_property
    def longest(self) -> int:
        """Words in the longest phrase."""
        return max((len(stems) for stems in self.entries), default=0)

    @cached_property
    def openings(self) -> frozenset[str]:
        """First stems of all phrases."""
        return frozenset(stems[0] for stems in self.entries if stems)


@dataclass
class Said:
    """One phrase of a clause, with the turns it takes while the clause is read."""

    text: str
    entry: Entry
    start: int
    end: int
    turns: int = 0
    background: bool = False
    ended: bool = False
    past: bool = False

    def end_it(self, turns: int) -> None:
        """Turn what was ended or refuted, once: "the weak rally is over" says it twice."""
        if turns % 2 and not self.ended:
            self.turns += 1
            self.ended = True

    @property
    def sign(self) -> int:
        """+1 for the direction, -1 against it."""
        return -self.entry.sign if self.turns % 2 else self.entry.sign


class ClauseReader:
    """Reads clauses with one lexicon."""

    def __init__(self, lexicon: Lexicon) -> None:
        """Take the lexicon of one direction and playbook."""
        self._lexicon = lexicon

    def read(self, clause: Clause, continued: bool) -> tuple[list[Said], int, bool]:
        """What a clause says, turns that found nothing to turn, and whether its last phrase is negated.

        Args:
            clause: words of one claim.
            continued: the clause before was negated; a bare item of its list is, too.
        """
        words = clause.words
        marks = self._marks(words)
        said = [
            Said(" ".join(words[mark.start : mark.end]), mark.entry, mark.start, mark.end)
            for mark in marks
            if mark.entry.role == "claim"
        ]
        turning = [mark for mark in marks if mark.entry.role != "claim"]
        all_of_it = [mark for mark in turning if _turns_all(words, mark, said)]
        whole = len(all_of_it)
        parts = [mark for mark in turning if mark.entry.role == "not" and mark not in all_of_it]
        if continued and said and not turning and _is_list_item(clause, said):
            whole += 1
        for one in said:
            one.turns += whole + sum(_reaches(words, mark, one) for mark in parts)
        negated = bool(said) and said[-1].turns % 2 == 1
        loose = self._turn_neighbours(words, said, turning, parts)
        if said:
            _turn_possession(words, said, turning, parts)
        elif loose:
            loose += whole
        _mark_background(clause, said)
        said = [one for one in said if not _is_only_imagined(words, one)]
        if len(said) > 1 and "from" in words[max(0, said[0].start - 2) : said[0].start]:
            del said[0]  # "control has passed from buyers to sellers"
        return said, loose, negated

    def _turn_neighbours(
        self, words: tuple[str, ...], said: list[Said], turning: list[Mark], parts: list[Mark]
    ) -> int:
        """Turn what is ended, refuted or overpowered; the turns that found no phrase in the clause."""
        loose = 0
        for mark in turning:
            # Without a phrase behind it the subject is what was: "bullish momentum used to be the story".
            if mark.entry.role == "past" and (_put_behind(words, mark, said) or words[mark.start] != "used"):
                continue
            if mark.entry.role in ("not", "turns") or not _is_predicate(words, mark):
                continue
            target = _target(words, mark, said)
            if target is None:
                active = mark.entry.role == "overpowers" and not _is_passive(words, mark)
                if not said and not (active and _has_object(words, mark)):
                    loose += 1 + sum(part.end <= mark.start for part in parts)
            elif not (target.entry.counter and mark.entry.role != "refutes"):
                between = sum(target.end <= part.start and part.end <= mark.start for part in parts)
                target.end_it(1 + between)
        return loose

    def _marks(self, words: tuple[str, ...]) -> list[Mark]:
        """Longest phrases of the lexicon, from left to right, and the words that need a look around."""
        stems = [stem(word) for word in words]
        found: list[Mark] = []
        i = 0
        while i < len(words):
            mark = self._longest(words, stems, i) or self._bare(words, stems, i)
            if mark is None:
                i += 1
                continue
            found.append(mark)
            i = mark.end
        return self._of_price(words, stems, found)

    def _longest(self, words: tuple[str, ...], stems: list[str], i: int) -> Mark | None:
        if stems[i] not in self._lexicon.openings or words[i] in words_of.NO_NOUN:
            return None
        for size in range(min(self._lexicon.longest, len(stems) - i), 0, -1):
            entry = self._lexicon.entries.get(tuple(stems[i : i + size]))
            if entry is None:
                continue
            if size == 1 and entry.role == "claim" and entry.rank == ACT and words[i].endswith("ing"):
                entry = entry._replace(rank=AGENT)  # the selling, not to sell
            return Mark(i, i + size, entry)
        return None

    def _bare(self, words: tuple[str, ...], stems: list[str], i: int) -> Mark | None:
        """Words that are directions in some places only: up, down, long, short, weak, strong."""
        word, up = words[i], self._lexicon.up
        if not up:
            return None
        before = words[i - 1] if i else ""
        after = words[i + 1] if i + 1 < len(words) else ""
        if word in ("up", "down"):
            if stem(before) in PARTICLE_VERBS or after in ("to", "for", "until"):
                return None
            return Mark(i, i + 1, Entry("claim", up if word == "up" else -up, MOVE))
        if word in ("longs", "shorts"):
            return Mark(i, i + 1, Entry("claim", up if word == "longs" else -up, AGENT))
        if stems[i] in ("long", "short"):
            if before in words_of.NOT_A_POSITION_AFTER or (after and after not in words_of.POSITION_NEXT):
                return None
            return Mark(i, i + 1, Entry("claim", up if stems[i] == "long" else -up, ACT))
        if word in words_of.STRONG:
            return Mark(i, i + 1, Entry("strong", up, MOVE))
        return Mark(i, i + 1, Entry("weak", -up, MOVE)) if word in words_of.WEAK else None

    def _of_price(self, words: tuple[str, ...], stems: list[str], marks: list[Mark]) -> list[Mark]:
        """Without moves of volume and the like; an adjective speaks of another phrase, if there is one."""
        kept = [_of_flow(words, stems, mark) for mark in marks if not _is_of_something_else(words, mark)]
        others = any(mark.entry.role == "claim" for mark in kept)
        found = []
        for mark in kept:
            role = mark.entry.role
            if role in ("strong", "weak"):
                if others and role == "strong":
                    continue
                mark = mark._replace(entry=mark.entry._replace(role="ends" if others else "claim"))
            found.append(mark)
        return found


def _turns_all(words: tuple[str, ...], mark: Mark, said: list[Said]) -> bool:
    """Whether a turning word turns the whole clause: a negated verb, or a verb that denies what follows."""
    if mark.entry.role != "not":
        return mark.entry.role == "turns"
    if words[mark.start] not in words_of.VERBAL:
        return False
    behind_auxiliary = not words_of.AUXILIARIES.isdisjoint(words[max(0, mark.start - 2) : mark.start])
    return behind_auxiliary or bool(said and said[-1].end <= mark.start)  # "the rally never came"


def _reaches(words: tuple[str, ...], mark: Mark, one: Said) -> bool:
    """Whether a negation stands before a phrase, with no place between them ("nothing above the high")."""
    return mark.end <= one.start and words_of.PLACES.isdisjoint(words[mark.end : one.start])


def _is_list_item(clause: Clause, said: list[Said]) -> bool:
    """Whether a clause only continues a list: "no dip, pullback or uptrend"."""
    spoken = {at for one in said for at in range(one.start, one.end)}
    others = {word for at, word in enumerate(clause.words) if at not in spoken}
    return clause.joint in (",", "or") and others <= words_of.ITEM_WORDS


def _is_predicate(words: tuple[str, ...], mark: Mark) -> bool:
    """Whether a word turns anything here: the stop is no verb, and "over" is an end where a clause ends."""
    if mark.entry.role == "overpowers" and mark.start and words[mark.start - 1] in words_of.ARTICLES:
        return False  # the stop, a break
    if words[mark.start : mark.end] == ("stops",) and mark.start == 0:
        return False
    if words[mark.end - 1] not in words_of.ONLY_LAST:
        return True
    return mark.end == len(words) or words[mark.end] in words_of.AFTER_LAST


def _target(words: tuple[str, ...], mark: Mark, said: list[Said]) -> Said | None:
    """The phrase that a word turns: one right behind an adjective, the subject, else a near one behind it.

    Of an active verb that overpowers it is the object.
    """
    left = next((one for one in reversed(said) if one.end <= mark.start), None)
    right = next((one for one in said if one.start >= mark.end), None)
    if mark.entry.role == "overpowers" and not _is_passive(words, mark):
        return right if right or _has_object(words, mark) else left
    passive = _is_passive(words, mark)
    if right is not None and (right.start == mark.end and not passive):
        return right
    if left is not None or right is None or right.start - mark.end >= NEAR:
        return left
    between = words[mark.end : right.start - (right.entry.rank == ACT)]  # "a mistake to buy"
    return right if words_of.PREPOSITIONS.isdisjoint(between) else None


def _is_passive(words: tuple[str, ...], mark: Mark) -> bool:
    doing = words[mark.start].endswith("ing")
    return not doing and not words_of.PASSIVE.isdisjoint(words[max(0, mark.start - 2) : mark.start])


def _has_object(words: tuple[str, ...], mark: Mark) -> bool:
    after = words[mark.end] if mark.end < len(words) else "now"
    return after not in words_of.NO_OBJECT and not after.endswith("ly")


def _turn_possession(
    words: tuple[str, ...], said: list[Said], turning: list[Mark], parts: list[Mark]
) -> None:
    """Turn who has what is negated, when nothing else follows: "sellers have no power"."""
    for part in parts:
        before = next((one for one in reversed(said) if one.end <= part.start), None)
        follows = any(one.start >= part.end for one in said) or any(
            mark.start >= part.end for mark in turning
        )
        lacks = words[part.start].startswith(("lack", "absence"))
        if before is not None and not follows and (lacks or words[part.start - 1] in words_of.HAVING):
            before.end_it(1)


def _is_only_imagined(words: tuple[str, ...], one: Said) -> bool:
    """Whether a clause says what follows from a phrase ("a lower low would"), or tells the plan's risk."""
    supposed = "would" in words[one.end :] or ("would" in words and words[0] in words_of.INDEFINITE)
    if supposed and not one.ended and "asif" not in words:
        return True
    return one.sign < 0 and not words_of.OWN_RISK.isdisjoint(words)


def _put_behind(words: tuple[str, ...], mark: Mark, said: list[Said]) -> bool:
    """Take back the phrase that is told as what was, if there is one; where price went is told as past."""
    one = next((one for one in said if one.start >= mark.end), None)
    if one is None or one.start - mark.end > NEAR:
        return False
    if not NO_NOUN_PHRASE.isdisjoint(words[mark.end : one.start]):
        return False
    if one.entry.rank <= MOVE:
        one.past = True
    else:
        one.end_it(1)
    return True


def _mark_background(clause: Clause, said: list[Said]) -> None:
    """Where price came from is told, not argued; unless the clause turns it."""
    past = clause.background or not words_of.AFRESH.isdisjoint(clause.words)
    for one in said:
        told = (
            past
            or one.past
            or "been" in clause.words[: 1 + one.start]
            or not words_of.PAST_MOVES.isdisjoint(one.text.split())
        )
        one.background = told and one.entry.rank <= MOVE and one.turns % 2 == 0


def _of_flow(words: tuple[str, ...], stems: list[str], mark: Mark) -> Mark:
    """A move that a flow makes ends it: "demand has collapsed"."""
    at = mark.start - 1
    while at >= 0 and words[at] in words_of.BETWEEN:
        at -= 1
    shrinks = mark.entry.role == "claim" and stems[mark.start] in SHRINKS
    return mark._replace(entry=Entry("ends")) if shrinks and at >= 0 and words[at] in words_of.FLOWS else mark


def _is_of_something_else(words: tuple[str, ...], mark: Mark) -> bool:
    if mark.entry.rank not in (MOVE, BREAK):
        return False
    if mark.end < len(words) and words[mark.end].removesuffix("s") in words_of.NOT_PRICE:
        return True
    at = mark.start - 1
    while at >= 0 and words[at] in words_of.BETWEEN:
        at -= 1
    return at >= 0 and words[at].removesuffix("s") in words_of.NOT_PRICE
