"""The rules of a refinement, pure functions of what was seen: when to skip, accept, apply, stop and choose.

A model may lower the verdict of a rule, never raise it; a blocker is never accepted; and a text gives way to
another one only where no rule finds anything new in that one.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

from schemas.deliberation import Critique, CritiqueVerdict, StopReason, TextCandidate, TextFinding
from schemas.vocabulary import Severity

STRICTNESS: dict[CritiqueVerdict, int] = {"unknown": 0, "accept": 0, "revise": 1, "reject": 2}
VERDICTS: tuple[CritiqueVerdict, ...] = ("accept", "revise", "reject")
SKIP_REASONS = ("disabled", "already_reviewed", "error_message", "tool_only", "too_short")
INDEPENDENT = frozenset({"rule", "tool", "data", "human"})
LEAST_GAIN = 1e-9  # of a score: less is rounding
OF_WEIGHT = frozenset({Severity.MAJOR, Severity.BLOCKER})
ERROR_TEXT = re.compile(
    r"\s*(?:[\[(]?(?:fatal |internal )?error\b(?! (?:bars?|margins?|rates?|of)\b)|exception\b|"
    r"traceback \(most recent|sorry, (?:i|an error)\b)",
    re.I,
)
TOOL_TEXT = re.compile(r"(?:```(?:json|tool\w*)?\s*)?[\[{].*[\]}](?:\s*```)?", re.S)


@dataclass(frozen=True)
class Aggregate:
    """What all critiques of one candidate come to."""

    verdict: CritiqueVerdict
    overall: float | None
    confidence: float
    findings: tuple[TextFinding, ...]


@dataclass(frozen=True)
class Round:
    """One candidate with everything that was said of it."""

    candidate: TextCandidate
    critiques: tuple[Critique, ...]
    view: Aggregate

    @property
    def is_unread(self) -> bool:
        """Whether nobody wants a change, and of somebody it is not known."""
        unknown = any(critique.verdict == "unknown" for critique in self.critiques)
        return self.view.verdict == "unknown" or unknown and self.view.verdict == "accept"

    @property
    def faults(self) -> frozenset[tuple[str, str]]:
        """What independent critics found, by code and words."""
        return frozenset((found.code, found.said) for found in self._independent())

    @property
    def weighty(self) -> frozenset[tuple[str, str]]:
        """Those of the faults that ask for a revision."""
        found = (found for found in self._independent() if found.severity in OF_WEIGHT)
        return frozenset((fault.code, fault.said) for fault in found)

    @property
    def failures(self) -> int:
        """Findings of weight by independent critics."""
        return sum(found.severity in OF_WEIGHT for found in self._independent())

    def _independent(self) -> list[TextFinding]:
        return [
            found
            for critique in self.critiques
            if critique.source in INDEPENDENT
            for found in critique.findings
            if found.severity is not Severity.INFO
        ]


def aggregate(critiques: Sequence[Critique]) -> Aggregate:
    """The strictest verdict; of each dimension the model's mean score, but no more than a rule's."""
    read = [critique for critique in critiques if critique.verdict != "unknown"]
    strictest = max((STRICTNESS[critique.verdict] for critique in read), default=0)
    findings = tuple(found for critique in critiques for found in critique.findings)
    blocked = any(found.severity is Severity.BLOCKER for found in findings)
    if blocked:
        strictest = STRICTNESS["reject"]
    verdict: CritiqueVerdict = VERDICTS[strictest] if read or blocked else "unknown"
    sure = [critique.confidence for critique in read if STRICTNESS[critique.verdict] == strictest]
    return Aggregate(verdict, _overall(read), max(sure, default=0.0), findings)


def _overall(critiques: Sequence[Critique]) -> float | None:
    """The mean over dimensions; what a critic says in one figure stands for its dimensions."""
    rules = [critique for critique in critiques if critique.source in INDEPENDENT]
    models = [critique for critique in critiques if critique.source not in INDEPENDENT]
    caps = {name: min(c.scores[name] for c in rules if name in c.scores) for name in _dimensions(rules)}
    plain = [c.overall for c in models if c.overall is not None and not c.scores]
    answer = {name: fmean(c.scores[name] for c in models if name in c.scores) for name in _dimensions(models)}
    scores = list((caps | {name: min(score, caps.get(name, 1.0)) for name, score in answer.items()}).values())
    if plain:
        return min(fmean(plain), fmean(scores)) if scores else fmean(plain)
    return fmean(scores) if scores else None


def _dimensions(critiques: Sequence[Critique]) -> list[str]:
    return sorted({name for critique in critiques for name in critique.scores})


@dataclass(frozen=True)
class Acceptance:
    """When a candidate is good enough, and when another round is not worth it.

    Attributes:
        threshold: of the overall score; None: the verdict alone.
        min_confidence: a wish for a revision that is less sure is not followed.
        patience: rounds without a fault and without a gain over the best before; None: no bound.
    """

    threshold: float | None = None
    min_confidence: float = 0.0
    patience: int | None = None

    def accepts(self, latest: Round) -> bool:
        """Whether no critic wants more and the scores are high enough."""
        if latest.view.verdict != "accept" or latest.failures or latest.is_unread:
            return False
        return self.threshold is None or latest.view.overall is None or latest.view.overall >= self.threshold

    def wants_more(self, latest: Round) -> bool:
        """Whether a low score alone asks for a revision."""
        score = latest.view.overall
        return self.threshold is not None and score is not None and score < self.threshold

    def stop(self, rounds: Sequence[Round], most: int) -> StopReason | None:
        """Why the newest candidate is the last one; None: it is not. `most` revisions are allowed."""
        latest = rounds[-1]
        if latest.view.verdict == "reject":
            return "blocker"
        if self.accepts(latest):
            return "accepted"
        if latest.is_unread or self._is_unsure(latest):
            return "low_confidence"
        if self._gains_nothing(rounds):
            return "no_gain"
        return "rounds" if len(rounds) > most else None

    def _is_unsure(self, latest: Round) -> bool:
        return not self.wants_more(latest) and latest.view.confidence < self.min_confidence

    def _gains_nothing(self, rounds: Sequence[Round]) -> bool:
        scores = [seen.view.overall for seen in rounds if not seen.failures]
        known = [score for score in scores if score is not None]
        if self.patience is None or rounds[-1].failures or len(known) <= self.patience:
            return False
        return max(known[-self.patience :]) < max(known[: -self.patience]) + LEAST_GAIN


Application = Callable[[Round, Round], bool]
Guard = Callable[[str], str | None]
Selection = Callable[[Sequence[Round]], Round]


def brings_nothing_new(first: Round, later: Round) -> bool:
    """Whether no independent critic finds in a later text what it did not find in the first one.

    A small fault may be new where one of weight has gone: what is struck may leave a question uncovered.
    """
    return later.weighty <= first.weighty and (later.weighty < first.weighty or later.faults <= first.faults)


def fails_no_more(first: Round, later: Round) -> bool:
    """Whether no more of a later text fails than of the first one."""
    return later.failures <= first.failures


def latest(rounds: Sequence[Round]) -> Round:
    """The newest."""
    return rounds[-1]


def best_score(rounds: Sequence[Round]) -> Round:
    """The one with the highest score among those that fail least; the earlier of equals."""
    return min(rounds, key=lambda seen: (seen.failures, -_score(seen), seen.candidate.number))


def best_verified(rounds: Sequence[Round]) -> Round:
    """The one in which least fails, however small; then the one with the highest score, then the earlier."""
    return min(
        rounds, key=lambda seen: (seen.failures, len(seen.faults), -_score(seen), seen.candidate.number)
    )


def _score(seen: Round) -> float:
    return -1.0 if seen.view.overall is None else seen.view.overall


def skip_reason(text: str, *, enabled: bool, minimum: int, reviewed: bool = False) -> str | None:
    """Why a text is not looked at again; None: it is."""
    if not enabled:
        return "disabled"
    if reviewed:
        return "already_reviewed"
    if ERROR_TEXT.match(text):
        return "error_message"
    if TOOL_TEXT.fullmatch(text.strip()):
        return "tool_only"
    return "too_short" if len(text.strip()) < minimum else None
