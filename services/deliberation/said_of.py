"""Of whom is something said? The playbook, regime, symbol, side or time that the words beside it name."""

import re
from collections import Counter
from dataclasses import dataclass, replace

from services.deliberation.layout import SUBJECT_KINDS, Mention, SentenceLayout
from services.deliberation.noun_phrases import is_whom
from services.evidence.facts import Subject
from services.text.claim_words import words

FIGURES = ("number", "count_word", "interval", "fraction")
ATTACHING = words("of in for by from with on the its during under across within at a an as")
BETWEEN_NAMES = ATTACHING | words(
    "trades trade parameter long short regime regimes s playbook symbol market position entered opened closed"
)
PRONOUN = re.compile(r"\b(?:it|its|they|their|them|these|those|this|that|he|she)\b", re.I)
AGAINST = re.compile(r"\s*,?\s*(?:against|versus|vs\.?|compared (?:with|to)|to)\s*", re.I)
NARROWING = re.compile(
    r"\b(?:in|during|within|under|inside|over|of|on|for|across|entered|opened|closed|exited|from|since|at"
    r"|dated|with|traded|bought|sold|shorted)(?: (?:the|all|both))?\s*$",
    re.I,
)
OUTSIDE = re.compile(
    r"\b(?:outside(?: of)?|excluding|except(?: for| in)?|apart from|other than|without|beyond"
    r"|ex)(?: the)?\s*$",
    re.I,
)
EXITED = re.compile(r"\b(?:exited|closed|exit|close|resolved)\b[^,;]{0,30}$", re.I)
JOINT = re.compile(r"\s*(?:,|,? and|,? n?or|,? plus|&|as well as|/)\s*(?:the |in |also )?", re.I)
AS_OF = re.compile(
    r"\b(?:as (?:of|at)|as known on|known (?:on|by|at|since)|report (?:of|dated|from|on)|by"
    r"|until|up to|as it stood on)(?: the)?\s*$",
    re.I,
)
VERB = re.compile(r"\b(?:first|last) (?:traded|entered|opened)$", re.I)
OF_PERIOD = re.compile(r"\b(?:of|in)(?: the)?(?: year)?\s*$", re.I)
HAD = re.compile(
    r"\b(?:had|has|have|with|saw|posted|recorded|booked|took|made|suffered|enjoyed)"
    r" (?:an?|its|the|their)(?: single)?\s*$",
    re.I,
)
OWNED = re.compile(r"\b(?:its|their)(?: very| own)?\s*$", re.I)
NOUNS_OF_TRADES = {
    "longs": Subject(direction="long"),
    "shorts": Subject(direction="short"),
    "best_r": Subject(order="best"),
    "worst_r": Subject(order="worst"),
    "best_pnl": Subject(order="best_pnl"),
    "worst_pnl": Subject(order="worst_pnl"),
    "hold_max": Subject(order="longest"),
    "hold_min": Subject(order="shortest"),
}
UNTIL = re.compile(r"\s*(?:to|and|until|through|till|up to|-|–)\s*", re.I)
HEADS = frozenset({"regime", "period", "basis", "direction", "timeframe"})
HEAD = re.compile(
    r"\W*(?:in|during|within|over|under|for|across|on|since|before|after|until|between|from|throughout|through)?"
    r"(?: the| both| all)*\s*",
    re.I,
)
COMPOSED = frozenset({"playbook", "symbol", "direction", "regime", "timeframe", "period", "basis"})
THAN = re.compile(r"\bthan\b", re.I)
GOES_ON = re.compile(
    r"(?:\b(?:but|and|yet|while|whereas|though|although)|[,;])\s+"
    r"(?:(?:it|they|then|also|still|even|had|has|have|was|were|did|not|never|made)\s+)*$",
    re.I,
)
NARROWERS = frozenset({"regime", "timeframe", "period", "parameter", "trial"})


@dataclass(frozen=True)
class Group:
    """Names that stand together, with whom they name.

    Attributes:
        subject: whom the words around are said of.
        own: what the names themselves say.
        listed: number of the list in which it stands.
        told: whether the names tell something of one trade that was named before.
    """

    start: int
    end: int
    subject: Subject
    own: Subject
    listed: int | None = None
    told: bool = False


class SubjectFinder:
    """The subjects of one sentence; `rests` once it was asked whom the sentence before was about."""

    def __init__(self, layout: SentenceLayout, carried: Subject) -> None:
        self._layout = layout
        self._before, self.rests = carried, False
        self._once: dict[tuple[int, int], tuple[Subject, ...]] = {}
        self.groups = self._with_lists(self._under_the_head(self._group()))

    @property
    def carried(self) -> Subject:
        """Whom the sentence before was about."""
        self.rests = True
        return self._before

    @property
    def last(self) -> Subject:
        """Whom a pronoun of the next sentence means: the first one that is named."""
        return self.groups[0].subject if self.groups else self.carried

    def before(self, place: int) -> Subject:
        """Whom the words before a place name last."""
        found = [group for group in self.groups if group.end <= place]
        return found[-1].subject if found else self.carried

    def after(self, place: int) -> Group | None:
        """Whom the words behind a place name first."""
        return next((group for group in self.groups if group.start >= place), None)

    def around(self, start: int, than: int) -> tuple[list[Group], list[Group]]:
        """The names from a place to a "than", and those behind it."""
        between = [group for group in self.groups if start <= group.start and group.end <= than]
        return between, [group for group in self.groups if group.start >= than >= 0]

    def sides_of(self, start: int, than: int) -> tuple[Group, Group] | None:
        """The two sides of a comparison of one subject with itself: "A earned more on X than on Y"."""
        between, later = self.around(start, than)
        if len(between) != 1 or not later or between[0].own.fields != later[0].own.fields:
            return None
        return between[0], later[0]

    def list_with(self, subject: Subject) -> tuple[Group, ...]:
        """The first list that a subject stands in."""
        for group in self.groups:
            if group.subject == subject and group.listed is not None:
                return tuple(item for item in self.groups if item.listed == group.listed)
        return ()

    def of(self, start: int, end: int, noun_end: int | None = None) -> tuple[tuple[Subject, ...], float]:
        """Whom something between two places is said of, likeliest first, and how surely.

        `noun_end` is the end of the words that say what is counted, where some do.
        """
        found, sure = self._find_beside(start, end, noun_end)
        return tuple(self._narrow(subject, start, end) for subject in found), sure

    def _narrow(self, subject: Subject, start: int, end: int) -> Subject:
        """With all else that the piece names once: "returned +0.57R over 7 trades on GOOG in 2005"."""
        if subject.order or subject.episode or len(self.groups) < 2:
            return subject
        for own in self._once_in(*self._layout.piece(start, end)):
            if not _clash(subject, own):
                subject = subject.merge(own)
        return subject

    def _once_in(self, left: int, right: int) -> tuple[Subject, ...]:
        """What one piece names, each kind of it once, where it sets nothing against anything."""
        found = self._once.get((left, right))
        if found is None:
            plain = (g for g in self.groups if not g.told and g.listed is None)
            beside = [g.own for g in plain if left <= g.start < right]
            named = Counter(name for own in beside for name in own.fields)
            alone = frozenset(name for name in COMPOSED if named[name] == 1)
            found = tuple(own for own in beside if own.fields <= alone)
            found = () if found and THAN.search(self._layout.text, left, right) else found
            self._once[left, right] = found
        return found

    def _find_beside(self, start: int, end: int, noun_end: int | None) -> tuple[tuple[Subject, ...], float]:
        before = [group for group in self.groups if group.end <= start]
        after = [group for group in self.groups if group.start >= end]
        attached = self._find_attached(noun_end or end, start, after)
        if attached is not None and (whom := self._find_antecedent(start, attached)) is not None:
            return (whom,), 1.0
        if attached is not None and (
            not before
            or before[-1].subject.playbook is None
            or attached.own.playbook is not None
            or not _clash(before[-1].subject, attached.own)
            or attached.subject.playbook == before[-1].subject.playbook
            or attached.own.fields <= NARROWERS
        ):
            clashes = not before or _clash(before[-1].subject, attached.own)
            if not clashes and attached.own.fields <= NARROWERS | {"symbol", "direction"}:
                return (before[-1].subject.merge(attached.own),), 1.0
            return (attached.own if attached.subject.playbook is None else attached.subject,), 1.0
        inside = [group for group in self.groups if group.start >= start and group.end <= (noun_end or end)]
        if inside:
            return (inside[-1].subject,), 1.0
        two = len(before) > 1 and self._is_first_of_two(end)
        compared = (m.start for m in self._layout.mentions if m.kind in ("compared", "bound"))
        if two and any(before[-2].end <= place < before[-1].start for place in compared):
            return (before[-2].subject,), 1.0
        if before:
            return (before[-1].subject,), 1.0
        after = [g for g in after if self._layout.clause_of(g.start) == self._layout.clause_of(start)]
        if after:
            return (after[0].subject,), 0.9 if len({group.subject for group in after}) == 1 else 0.8
        if self.carried.is_empty:
            return (Subject(),), 0.9
        if PRONOUN.search(self._layout.text):
            return (self.carried, Subject()), 0.8
        return (Subject(), self.carried), 0.7

    def _find_antecedent(self, start: int, attached: Group) -> Subject | None:
        """Whom a second verb without a subject is said of: "IBM lost going long but made money on shorts"."""
        told = [m for m in self._layout.mentions if m.kind in ("direction", "result") and m.start <= start]
        verb = told[-1].start if told and start - told[-1].end <= 1 else start
        joint = GOES_ON.search(self._layout.text[:verb])
        if joint is None or not any(m.end <= joint.start() for m in told):
            return None
        whom = Subject()
        for group in (g for g in self.groups if g.end <= joint.start()):
            if group.listed is not None or group.told or not group.own.fields <= COMPOSED:
                return None
            whom = self._instead(whom, group.own)
        kept = whom.playbook is not None and whom.playbook == attached.subject.playbook
        return None if whom.is_empty or kept else self._instead(whom, attached.own)

    @staticmethod
    def _instead(whom: Subject, named: Subject) -> Subject:
        """Whom with what is named in the place of what it had of that kind."""
        same = named.fields | ({"basis"} if named.period is not None else frozenset())
        return whom.without(*(same & whom.fields)).merge(named)

    def _group(self) -> list[Group]:
        """Mentions of subjects that stand together."""
        groups: list[Group] = []
        last_end, fresh = -1, True
        for mention in self._layout.mentions:
            if mention.kind in ("date", "period") and AS_OF.search(self._layout.lead(mention.start)):
                continue
            if mention.kind not in SUBJECT_KINDS and not self._is_noun_of_trades(mention):
                fresh = fresh and mention.kind not in FIGURES
                continue
            named = self._subject_of(mention).merge(self._side_beside(mention))
            last = groups[-1] if groups else None
            joined = last is not None and self._is_joined(last_end, mention.start)
            joined = joined and not (last is not None and last.subject.order and mention.kind == "id")
            joined = joined and not (named.playbook and self._is_head(groups, last_end, mention.start))
            if last is not None and last.subject.order is not None and mention.kind in ("date", "period"):
                joined = joined and OF_PERIOD.search(self._layout.lead(mention.start)) is not None
                joined = joined and VERB.search(self._layout.text[: last.end]) is None
            if last is not None and joined and not _clash(last.subject, named):
                whom, own = last.subject.merge(named), last.own.merge(named)
                groups[-1] = replace(last, end=mention.end, subject=whom, own=own)
            elif last is not None and last.subject.order is not None and named.order is None:
                whom = last.subject
                told = last.told if last.own.order is None else not self._is_had(last.own, last.start)
                if not told and not _clash(whom, named):
                    whom = whom.merge(named)
                groups.append(Group(*mention.place, whom, named, told=told))
            else:
                kept = self._keep_subject(groups, mention, named, fresh)
                groups.append(Group(*mention.place, kept.merge(named), named))
            last_end, fresh = mention.end, True
        return groups

    def _under_the_head(self, groups: list[Group]) -> list[Group]:
        """The groups with the regime, time or side that opens the sentence: "In 2003, A lost and B won"."""
        if len(groups) < 2:
            return groups
        head = groups[0]
        kinds = HEADS | {"symbol"} if NARROWING.search(self._layout.text[: head.start]) else HEADS
        if not head.own.fields & kinds:
            return groups
        held = self._merged_head(head)
        if not held.is_empty:
            joined = [g.subject if _clash(g.subject, held) else held.merge(g.subject) for g in groups[1:]]
            return [
                head,
                *(replace(g, subject=whom) for g, whom in zip(groups[1:], joined, strict=True)),
            ]
        comma = self._layout.text.find(",", head.start)
        if HEAD.fullmatch(self._layout.text[: head.start]) is None or not head.end <= comma <= head.end + 1:
            return groups
        held = Subject(**{name: getattr(head.own, name) for name in head.own.fields & kinds})
        return [head] + [replace(g, subject=held.merge(g.subject)) for g in groups[1:]]

    def _merged_head(self, head: Group) -> Subject:
        """The time, regime or symbol that opens a sentence right before its subject: "In 2009 the longs"."""
        opens = HEAD.fullmatch(text := self._layout.text[: head.start]) and NARROWING.search(text)
        first = next((m for m in self._layout.mentions if m.start == head.start), None)
        if not opens or first is None or first.kind not in ("period", "date", "regime", "symbol"):
            return Subject()
        fields = {"period", "basis"} if first.kind in ("date", "period") else {first.kind}
        if head.own.fields <= fields:
            return Subject()
        return Subject(**{name: getattr(head.own, name) for name in head.own.fields & fields})

    def _keep_subject(self, groups: list[Group], mention: Mention, named: Subject, fresh: bool) -> Subject:
        """What of the subject before still holds: a regime or a time narrows whom the sentence is about."""
        text = self._layout.text
        narrows = NARROWING.search(lead := self._layout.lead(mention.start)) or OUTSIDE.search(lead)
        if named.playbook is not None or named.order is not None:
            beside = bool(groups) and groups[-1].end + 1 == mention.start
            owned = (VERB.search(mention.text) or OWNED.search(text[: mention.start][-12:])) is not None
            owned = owned or self._is_had(named, mention.start)
            kept = groups[-1].subject if groups else self.carried
            return kept.without("order") if (beside or owned) and named.order is not None else Subject()
        if named.fields <= {"direction", "trial"} and OWNED.search(text[: mention.start][-12:]):
            return (groups[-1].subject if groups else self.carried).without("direction", "order")
        if not groups:
            following = PRONOUN.search(text, mention.end)
            return self.carried if narrows and following and named.fields <= NARROWERS else Subject()
        last = groups[-1].subject
        if named.fields == {"direction"} and last.direction not in (None, named.direction):
            return last.without("direction")  # "its longs made 3R while the shorts lost 1R"
        if named.fields == {"parameter"}:
            return last.without("parameter")
        if named.fields <= NARROWERS | {"symbol", "direction"} and narrows:
            return last.without(*(named.fields & last.fields)) if last.fields & named.fields else last
        if not fresh and named.fields <= NARROWERS and last.playbook is not None:
            return last.without("symbol")
        return Subject()

    def _is_head(self, groups: list[Group], end: int, start: int) -> bool:
        """Whether the first names open the sentence, up to a comma: "On AAPL, one made 2R and another 3R"."""
        opens = len(groups) == 1 and "," in self._layout.text[end:start]
        return opens and NARROWING.search(self._layout.text[: groups[0].start]) is not None

    def _is_had(self, named: Subject, place: int) -> bool:
        """Whether somebody had the best or worst trade: "it had a best trade of +1R in 2005"."""
        extreme = named.order is not None and named.order.startswith(("best", "worst"))
        return extreme and HAD.search(self._layout.lead(place)) is not None

    def _is_noun_of_trades(self, mention: Mention) -> bool:
        """Whether "shorts" or "the best trade" is whom something is said of, and not what is counted."""
        named = mention.kind == "measure" and mention.value in NOUNS_OF_TRADES
        return named and is_whom(self._layout, mention)

    def _subject_of(self, mention: Mention) -> Subject:
        if mention.kind == "measure":
            return NOUNS_OF_TRADES[str(mention.value)]
        if mention.kind == "date" and (span := self._span(mention)) != mention.value:
            return Subject(period=span)
        if mention.kind in ("date", "period"):
            left = EXITED.search(self._layout.lead(mention.start))
            basis = "exit" if left else "entry" if mention.kind == "date" else None
            return Subject(period=mention.value, basis=basis)
        if mention.kind == "order":
            return Subject(order=mention.value)
        if mention.kind == "id":
            return Subject(episode=mention.text)
        value = f"!{mention.value}" if OUTSIDE.search(self._layout.lead(mention.start)) else mention.value
        return Subject().having(mention.kind, value)

    def _span(self, mention: Mention) -> tuple[int, int]:
        """The days of a date, or from the first to the last one of "A to B"."""
        found: tuple[int, int] = mention.value
        for other in self._layout.mentions:
            if other.kind == "date" and other is not mention:
                first, last = sorted((mention, other), key=lambda item: item.start)
                if UNTIL.fullmatch(self._layout.text, first.end, last.start):
                    return first.value[0], last.value[1]
        return found

    def _with_lists(self, groups: list[Group]) -> list[Group]:
        """The groups with the number of the list that each one stands in: "A, B and C"."""
        numbered, number = groups[:1], 0
        for group in groups[1:]:
            last, joint = numbered[-1], JOINT.fullmatch(self._layout.text, numbered[-1].end, group.start)
            if joint and last.own.fields == group.own.fields:
                number += last.listed is None
                numbered[-1] = replace(last, listed=number, told=False)
                group = replace(group, listed=number, told=False)
            numbered.append(group)
        return numbered

    def _find_attached(self, end: int, start: int, after: list[Group]) -> Group | None:
        """Whom the words right behind name: "+0.18R for channel_breakout"."""
        if not after or not self._is_joined(end, after[0].start, r"[,;:()]"):
            return None
        between = self._layout.text[end : after[0].start]
        same = self._layout.clause_of(after[0].start) == self._layout.clause_of(start)
        beside = after[0].own.fields == {"direction"}  # "lost going short"
        return after[0] if same and (between.strip() or beside) else None

    def _side_beside(self, mention: Mention) -> Subject:
        for side in self._layout.mentions:
            if side.kind == "side" and (side.end + 1 == mention.start or mention.end + 1 == side.start):
                return Subject(direction=side.value)
        return Subject()

    def _is_joined(self, end: int, start: int, marks: str = r"[;:()]") -> bool:
        """Whether only words that attach stand between two places."""
        between = self._layout.text[end:start].casefold()
        return re.search(marks, between) is None and set(re.findall(r"[a-z']+", between)) <= BETWEEN_NAMES

    def _is_first_of_two(self, end: int) -> bool:
        """Whether the figure that ends here stands against a second one."""
        numbers = (m.start for m in self._layout.mentions if m.start >= end and m.kind == "number")
        following = next(numbers, None)
        return following is not None and AGAINST.fullmatch(self._layout.text, end, following) is not None


def _clash(held: Subject, named: Subject) -> bool:
    """Whether both name the same kind of thing."""
    return bool(held.fields & named.fields - {"basis"})
