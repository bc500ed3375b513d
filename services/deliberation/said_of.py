"""Of whom is something said? The playbook, regime, symbol or side that the words beside a claim name."""

import re

from services.deliberation.layout import SentenceLayout
from services.deliberation.mentions import Mention
from services.evidence.facts import Subject
from services.text.claim_words import words

SUBJECT_KINDS = ("playbook", "regime", "timeframe", "symbol", "parameter")
FIGURES = ("number", "count_word", "interval")
ATTACHING = words("of in for by from with on the its during under across within at a")
BETWEEN_NAMES = ATTACHING | words("trades long short regime regimes s")
PRONOUN = re.compile(r"\b(?:it|its|they|their|them|these|those|this|that)\b", re.I)
AGAINST = re.compile(r"\s*,?\s*(?:against|versus|vs\.?|compared (?:with|to)|to)\s*", re.I)
Group = tuple[int, int, Subject]


class SubjectFinder:
    """The subjects of one sentence; `carried` is whom the sentence before was about."""

    def __init__(self, layout: SentenceLayout, carried: Subject) -> None:
        self._layout = layout
        self._carried = carried
        self.groups = self._grouped()

    @property
    def last(self) -> Subject:
        """Whom a pronoun of the next sentence means."""
        return self.groups[-1][2] if self.groups else self._carried

    def before(self, place: int) -> Subject:
        """Whom the words before a place name last."""
        found = [group for group in self.groups if group[1] <= place]
        return found[-1][2] if found else self._carried

    def after(self, place: int) -> Group | None:
        """Whom the words behind a place name first."""
        return next((group for group in self.groups if group[0] >= place), None)

    def of(self, start: int, end: int, noun_end: int | None = None) -> tuple[tuple[Subject, ...], float]:
        """Whom something between two places is said of, likeliest first, and how surely.

        `noun_end` is the end of the words that say what is counted, where some do.
        """
        before = [group for group in self.groups if group[1] <= start]
        after = [group for group in self.groups if group[0] >= end]
        attached = self._attached(noun_end or end, start, after)
        if attached is not None and (
            not before or before[-1][2].playbook is None or attached.playbook is not None
        ):
            return (
                before[-1][2].joined(attached) if before and attached.playbook is None else attached,
            ), 1.0
        if len(before) > 1 and self._is_first_of_two(end) and self._compares(before[-2][1], before[-1][0]):
            return (before[-2][2],), 1.0
        if before:
            return (before[-1][2],), 1.0
        if after:
            return (after[0][2],), 0.9 if len({group[2] for group in after}) == 1 else 0.8
        if self._carried.is_empty:
            return (Subject(),), 0.9
        if PRONOUN.search(self._layout.text):
            return (self._carried, Subject()), 0.8
        return (Subject(), self._carried), 0.7

    def _grouped(self) -> list[Group]:
        """Mentions of subjects that stand together, as (start, end, whom they name)."""
        groups: list[Group] = []
        last_end, fresh = -1, True
        for mention in self._layout.mentions:
            if mention.kind not in SUBJECT_KINDS:
                fresh = fresh and mention.kind not in FIGURES
                continue
            named = Subject(**{mention.kind: mention.value}).joined(self._side_beside(mention))
            if groups and self._is_joined(last_end, mention.start) and not _clash(groups[-1][2], named):
                groups[-1] = (groups[-1][0], mention.end, groups[-1][2].joined(named))
            else:
                kept = groups[-1][2] if groups and named.playbook is None and not fresh else Subject()
                groups.append((mention.start, mention.end, kept.joined(named)))
            last_end, fresh = mention.end, True
        return groups

    def _attached(self, end: int, start: int, after: list[Group]) -> Subject | None:
        """Whom the words right behind name: "+0.18R for channel_breakout"."""
        if not after or not self._is_joined(end, after[0][0], r"[,;:()]"):
            return None
        same = self._layout.clause_of(after[0][0]) == self._layout.clause_of(start)
        return after[0][2] if same else None

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
        numbers = (m for m in self._layout.mentions if m.start >= end and m.kind == "number")
        following = next(numbers, None)
        return (
            following is not None and AGAINST.fullmatch(self._layout.text[end : following.start]) is not None
        )

    def _compares(self, start: int, end: int) -> bool:
        found = self._layout.mentions
        return any(m.kind in ("compared", "bound") for m in found if start <= m.start < end)


def _clash(held: Subject, named: Subject) -> bool:
    """Whether both name the same kind of thing."""
    pairs = zip(vars(held).values(), vars(named).values(), strict=True)
    return any(mine is not None and theirs is not None for mine, theirs in pairs)
