"""What a run says first where rules answered for its models, from its JSON document."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from services.model_calls.quoting import visible
from worker.pages.figures import counts

Document = dict[str, Any]
MOST_BY_RULES = 0.1  # of the questions to a seat, before its absence is the first thing that is said
UNNEEDED = ("nothing_to_choose", "position_open")  # the rules answer, and no model was needed
STRATEGIST, USED = "the strategist", "gave a usable answer to"
SEATS = {  # by the prompt of each; a text is called as its prompt is
    "policy_level_reflection": "the second reader",
    "strategist": STRATEGIST,
    "judge_replanning": "the judge",
    "evidence_planner": "the planner of evidence",
    "high_level_reflection": "the writer of reports",
}


class SeatAnswers(NamedTuple):
    """How many of its questions a seat answered, and why no more; `since` says when the last answer came."""

    seat: str
    answered: int
    questions: int
    why: str
    since: str = ""
    did: str = "answered"

    @property
    def share(self) -> float:
        """Of the questions, that were answered."""
        return self.answered / self.questions


def model_silence(document: Document) -> str | None:
    """Seats for which rules answered a tenth of the questions or more, since when and why; worst first."""
    found = [seat for seat in _seats(document) if 1.0 - seat.share >= MOST_BY_RULES]
    ordered = sorted(found, key=lambda seat: (seat.share, -seat.questions, seat.seat))
    lines = [
        f"{seat.seat} {seat.did} {seat.answered:,} of {seat.questions:,} questions{seat.since}: {seat.why}"
        for seat in ordered
    ]
    return "; ".join(lines) or None


def is_silent(document: Document) -> bool:
    """Whether a model was asked and none of its answers was of use, so that something else decided."""
    seats = list(_seats(document))
    return bool(seats) and (
        not any(seat.answered for seat in seats)
        or any(seat.seat == STRATEGIST and not seat.answered for seat in seats)
    )


def _seats(document: Document) -> Iterator[SeatAnswers]:
    """Every seat that had questions; of a strategist whose replies came and were of no use, its answers."""
    model = document["model"]
    given, failed = _strategist_answers(document["strategist"])
    unused = SeatAnswers(STRATEGIST, given, given + sum(failed.values()), counts(failed), did=USED)
    for seat in model["seats"]:
        since = f", the last on {seat['last_reply'][:10]}" if seat["answered"] else ""
        why = seat["last_failure"] or counts(model["cut_overs"])
        name = SEATS.get(seat["prompt"], visible(seat["prompt"]))
        found = SeatAnswers(name, seat["answered"], seat["questions"], why, since)
        yield unused if name == STRATEGIST and failed and unused.share < found.share else found


def _strategist_answers(strategist: Document) -> tuple[int, dict[str, int]]:
    """Answers that the strategist's model gave, and those that rules gave in its place, by why."""
    given = sum(count for who, count in strategist["answers"].items() if who != "rules")
    return given, {why: count for why, count in strategist["fallbacks"].items() if why not in UNNEEDED}
