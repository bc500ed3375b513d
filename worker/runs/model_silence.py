"""What a run says first where rules answered for its models, from its JSON document."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from services.model_calls.quoting import visible
from worker.pages.figures import counts

Document = dict[str, Any]
MOST_BY_RULES = 0.1  # of the questions to a seat, before its absence is the first thing that is said
UNNEEDED = ("nothing_to_choose", "position_open")  # the rules answer, and no model was needed
READER, STRATEGIST, USED = "the second reader", "the strategist", "gave a usable answer to"
SEATS = {  # by the prompt of each; a text is called as its prompt is
    "policy_level_reflection": READER,
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
    is_text: bool = False

    @property
    def share(self) -> float:
        """Of the questions, that were answered."""
        return self.answered / self.questions


def model_silence(document: Document) -> str | None:
    """Seats for which rules answered a tenth of the questions or more, since when and why.

    Seats that decide come before those of texts, and of each the worst first.
    """
    found = [seat for seat in _seats(document) if 1.0 - seat.share >= MOST_BY_RULES]
    ordered = sorted(found, key=lambda seat: (seat.is_text, seat.share, -seat.questions, seat.seat))
    lines = [
        f"{seat.seat} {seat.did} {seat.answered:,} of {seat.questions:,} questions{seat.since}: {seat.why}"
        for seat in ordered
    ]
    return "; ".join(lines) or None


def is_silent(document: Document) -> bool:
    """Whether no answer of a model that decides was of use, so that something else decided.

    Where none is asked but for texts, theirs count.
    """
    seats = list(_seats(document))
    deciding = [seat for seat in seats if not seat.is_text] or seats
    return bool(seats) and (
        not any(seat.answered for seat in deciding)
        or any(seat.seat == STRATEGIST and not seat.answered for seat in seats)
    )


def _seats(document: Document) -> Iterator[SeatAnswers]:
    """Every seat that had questions; of a strategist or reader whose replies were of no use, its answers.

    A text's that limits alone left unanswered is none: no model failed.
    """
    from agents.reply_forms import PURSES
    from services.model_calls.record import Purse

    used = _used_answers(document)
    for seat in document["model"]["seats"]:
        name = SEATS.get(seat["prompt"], visible(seat["prompt"]))
        is_text = PURSES.get(seat["prompt"], Purse.DECISION) is Purse.TEXT
        if is_text and 0 < seat["limited"] == seat["questions"] - seat["answered"]:
            continue
        since = f", the last on {seat['last_reply'][:10]}" if seat["answered"] else ""
        why = seat["why"] or "no answer"
        found = SeatAnswers(name, seat["answered"], seat["questions"], why, since, is_text=is_text)
        unused = used.get(name)
        yield unused if unused is not None and unused.share < found.share else found


def _used_answers(document: Document) -> dict[str, SeatAnswers]:
    """Answers of use of the strategist and the second reader, where rules decided in their place, by why."""
    strategist, reader = document["strategist"], document["policy_loop"]["reader"]
    given = sum(count for who, count in strategist["answers"].items() if who != "rules")
    unused = {why: count for why, count in strategist["fallbacks"].items() if why not in UNNEEDED}
    counted = (
        (STRATEGIST, given, unused),
        (READER, reader["asked"] - sum(reader["unused"].values()), reader["unused"]),
    )
    return {
        seat: SeatAnswers(seat, answered, answered + sum(failed.values()), counts(failed), did=USED)
        for seat, answered, failed in counted
        if failed
    }
