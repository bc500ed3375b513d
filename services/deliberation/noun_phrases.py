"""What is counted? The noun behind a number with all that narrows it, and what is told of the counted."""

import re
from dataclasses import dataclass, field

from services.deliberation.layout import Mention, SentenceLayout
from services.evidence.catalogue import CATALOGUE
from services.evidence.facts import Subject
from services.text.claim_words import words

NUMBERS = ("number", "count_word")
NAMES = ("playbook", "symbol", "regime", "timeframe", "parameter")
ADJECTIVES = words(
    "resolved closed past complete completed finished such of its the their his her those these them other "
    "more further additional different separate individual single whole total all our or so distinct live "
    "real actual which whom that"
)
OF_ONE = ("best_r", "worst_r", "best_pnl", "worst_pnl", "hold_max", "hold_min")
THAN = re.compile(
    r"\b(?:earn|ma[dk]e|los[te]|gain|br[oi]|return|deliver|contribut)\w*\b.{0,40}\bthan\s*$", re.I
)
AND_LAST = re.compile(r"\d\S*,? (?:and|while) (?:the )?$", re.I)
AMOUNT = re.compile(r" [-+−$€£]?\d[\d,]*\.\d", re.I)
KINDS_THAN = re.compile(r"\b(?:longs?|shorts?|winn\w+|los(?:ers?|ing)|trades|positions) than\s*$", re.I)
NOT_CATALOGUED = ("bars", "days", "years", "exits", "failures", "profit")
COUNTED = frozenset({*NOT_CATALOGUED, *(name for name, asked in CATALOGUE.items() if asked.unit == "count")})
# A verb of producing tells nothing of the trades that are counted behind it.
OF_A_RESULT = re.compile(
    r"money|profit|positive|negative|black|green|red|loss|gain|los|earn|ahead|behind|winning", re.I
)
CASES = re.compile(r"^\s*(?:cases|times|occasions|instances)\b", re.I)
RELATIVE = re.compile(r"\s*(?:that|which)(?: (?:were|was|had|have|ever|are|is))*\s*", re.I)
OUTCOMES = {"winners": "won", "losers": "lost"}
SIDES = {"longs": "long", "shorts": "short"}
PREPOSITIONS = words("over in on across from with for after within during at per against")
STOPPED = re.compile(r"[,;:()]|\b(?:while|whereas|but|although|though)\b")


# Before "shorts" these make it what is counted or told.
COUNTING = re.compile(
    r"(?:\d|\b(?:more|fewer|less|most|than|were|was|are|is|be|no|all|and|number of|[a-z]*(?:teen|ty|one"
    r"|two|three|four|five|six"
    r"|seven|eight|nine|ten|eleven|twelve))(?: of)?)\s*$",
    re.I,
)


@dataclass(frozen=True)
class Phrase:
    """What is counted: the question of the head noun, which trades, and where the words end."""

    head: str | None = None
    filters: Subject = field(default_factory=Subject)
    end: int | None = None
    used: frozenset[int] = frozenset()


def side_of(mention: Mention) -> str | None:
    """Gained or lost, where a word says so."""
    if mention.kind in ("direction", "result"):
        return None if mention.value == "flat" else str(mention.value)
    return None


def filter_of(mention: Mention) -> Subject | None:
    """The trades that a word tells of: those that won, that were short, that ended at the stop."""
    if mention.kind == "measure":
        if mention.value in OUTCOMES:
            return Subject(outcome=OUTCOMES[mention.value])
        return Subject(direction=SIDES[mention.value]) if mention.value in SIDES else None
    if mention.kind == "direction" and OF_A_RESULT.search(mention.text) is None:
        return None
    if mention.kind in ("direction", "result") and mention.value != "flat":
        return Subject(outcome="won" if mention.value == "gained" else "lost")
    if mention.kind == "exit":
        return Subject(exit_reason=mention.value)
    if mention.kind == "failure":
        return Subject(failure_mode=mention.value)
    return Subject(direction=mention.value) if mention.kind == "side" else None


def is_whom(layout: SentenceLayout, mention: Mention) -> bool:
    """Whether "shorts" or "the best trade" is whom something is said of, and not what is counted or told."""
    if mention.kind != "measure" or mention.value not in ("longs", "shorts", *OF_ONE):
        return False
    lead = layout.lead(mention.start)
    earned_than = THAN.search(lead) is not None and KINDS_THAN.search(lead) is None
    told_next = AND_LAST.search(lead) is not None and AMOUNT.match(layout.text, mention.end) is not None
    return mention.value in OF_ONE or earned_than or told_next or COUNTING.search(lead) is None


class NounPhrases:
    """The noun phrases and predicates of one sentence."""

    def __init__(self, layout: SentenceLayout) -> None:
        self._layout = layout
        self._known: dict[int, Phrase] = {}

    def behind(self, index: int) -> Phrase:
        """The noun phrase right behind a number or a quantifier: "22 losing AAPL trades"."""
        if index not in self._known:
            self._known[index] = self._behind(index)
        return self._known[index]

    def _behind(self, index: int) -> Phrase:
        mentions = self._layout.mentions
        place, head, filters, used = mentions[index].end, None, Subject(), set()
        end: int | None = None
        for mention in mentions[index + 1 :]:
            if not self._is_adjective(place, mention.start):
                break
            told = filter_of(mention)
            if mention.kind in NAMES or mention.kind == "period":
                place = mention.end
                continue
            if mention.kind in ("result", "direction") or told is None and mention.kind != "measure":
                break
            if told is not None:
                if told.fields & filters.fields:
                    break
                filters = filters.merge(told)
                head = head if mention.kind == "side" and head is None else head or "trades"
            elif mention.text.casefold() == "exits":
                head = "trades"
            elif mention.value not in COUNTED:
                break
            elif head is None or head == "trades":
                head = str(mention.value)
            else:
                break
            used.add(mention.start)
            place = end = mention.end
            if mention.kind == "measure" and mention.value not in ("winners", "losers", "longs", "shorts"):
                break
        if head is None:
            return Phrase()
        relative = self._relative(end or place) if head == "trades" else None
        if relative is not None and filter_of(relative) is not None:
            filters, end = filters.merge(filter_of(relative) or Subject()), relative.end
            used.add(relative.start)
        return Phrase(head, filters, end, frozenset(used))

    def _relative(self, place: int) -> Mention | None:
        """What a relative clause right behind a noun tells: "the trades that reached the target"."""
        found = RELATIVE.match(self._layout.text, place)
        if found is None:
            return None
        return next((m for m in self._layout.mentions if m.start == found.end()), None)

    def predicate(self, index: int) -> Phrase:
        """Which trades a count or a share is of: its noun, what is told of it, and else what went before."""
        phrase = self.behind(index)
        told = self._told_behind(index, phrase)
        if told is None:
            told = self._read_before(index, phrase)
        if told is None:
            return Phrase(phrase.head, phrase.filters, phrase.end, phrase.used)
        filters, used = told
        return Phrase(phrase.head, phrase.filters.merge(filters), phrase.end, phrase.used | used)

    def filters_beside(self, index: int) -> Phrase:
        """Side, exit or failure of the trades that an amount in a piece is of."""
        mention = self._layout.mentions[index]
        filters, used = Subject(), set()
        for beside in self._layout.beside(mention, "side", "exit", "failure", "measure"):
            told = filter_of(beside)
            if told is None or told.fields & filters.fields or self._is_counted(beside):
                continue
            filters = filters.merge(told)
            used.add(beside.start)
        return Phrase(None, filters, None, frozenset(used))

    def _is_counted(self, mention: Mention) -> bool:
        """Whether a number stands right before a noun, which is then what that number counts."""
        before = self._layout.previous(self._layout.mentions.index(mention))
        counts = before is not None and before.kind in NUMBERS and before.value.unit == ""
        return before is not None and counts and self._is_adjective(before.end, mention.start)

    def _is_adjective(self, end: int, start: int) -> bool:
        stops = STOPPED.search(self._layout.text[end:start])
        return stops is None and self._layout.between(end, start) <= ADJECTIVES

    def _told_behind(self, index: int, phrase: Phrase) -> tuple[Subject, frozenset[int]] | None:
        """What the words between a count and the next one, or the end of its piece, tell of it."""
        mentions = self._layout.mentions
        _, right = self._layout.piece(mentions[index].start, mentions[index].end)
        filters, used = Subject(), set()
        for mention in mentions[index + 1 :]:
            if mention.start >= right or mention.kind in NUMBERS or mention.kind in ("quantifier", "extreme"):
                break
            told = filter_of(mention)
            if mention.start in phrase.used or told is None or is_whom(self._layout, mention):
                continue
            if self._has_amount(mention, right) or told.fields & (filters.fields | phrase.filters.fields):
                continue
            filters = filters.merge(told)
            used.add(mention.start)
        return None if filters.is_empty else (filters, frozenset(used))

    def _has_amount(self, mention: Mention, right: int) -> bool:
        """Whether an amount in R or money says how much was gained or lost: then it tells of no count."""
        if mention.kind not in ("direction", "result"):
            return False
        mentions = self._layout.mentions
        behind = (m for m in mentions[mentions.index(mention) + 1 :] if m.start < right and m.kind in NUMBERS)
        following = next(behind, None)
        return following is not None and following.value.unit != "" and "%" not in following.value.unit

    def _failure_before(self, index: int) -> tuple[Subject, frozenset[int]] | None:
        """The failure mode that the piece of a count names before it."""
        mention = self._layout.mentions[index]
        found = [m for m in self._layout.beside(mention, "failure") if m.end <= mention.start]
        clause = self._layout.clause_of(mention.start)
        in_clause = [m for m in self._layout.mentions if m.kind == "failure" and m.end <= mention.start]
        cases = CASES.search(self._layout.text[mention.end : mention.end + 12])
        if not found and cases and self._layout.next(index) is not None:
            in_clause += [m for m in self._layout.mentions if m.kind == "exit" and m.end <= mention.start]
        found = found or [m for m in in_clause if self._layout.clause_of(m.start) == clause][:1]
        told = filter_of(found[-1]) if found else None
        return None if told is None else (told, frozenset({found[-1].start}))

    def _read_before(self, index: int, phrase: Phrase) -> tuple[Subject, frozenset[int]] | None:
        """A verb right before a count, "won 22", and the noun before a parenthesis, "losers (25)"."""
        mentions = self._layout.mentions
        mention = mentions[index]
        before = self._layout.previous(index)
        while before is not None and before.kind in ("bound", "only", "quantifier"):
            before = self._layout.previous(mentions.index(before))
        told = None if before is None else filter_of(before)
        if before is None or told is None or told.fields & phrase.filters.fields:
            return self._failure_before(index)
        is_share = mention.kind in NUMBERS and mention.value.unit not in ("", "R")
        if before.kind == "direction" and phrase.head is None and not is_share:
            return None
        between = self._layout.text[before.end : mention.start]
        apart = ":" in between and before.kind in ("direction", "result") or re.search(r"[;,]", between)
        if apart or not self._layout.between(before.end, mention.start).isdisjoint(PREPOSITIONS):
            return self._failure_before(index)
        return None if len(between.split()) > 4 else (told, frozenset({before.start}))
