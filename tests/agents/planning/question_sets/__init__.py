"""Sets of labelled questions, written without sight of the code, each read once before mending.

Five have sixty questions and are mended. The sixth has seventy, ten of an intent, and is mended in part. Who
wrote the sets after it, of seventy, too, had read the help of `ask` and its how-to first, as people have.

`written_as` keeps what a label was where it was changed: a rule that is to be tried is asked back, since
trying enters it in the ledger of trials and a question changes nothing; and why a playbook went wrong takes
its versions, too. Six fills of the sixth set were to be explained by symbol and day, which `explain_fill`
does not take: the trade is looked up first, and three more calls of its first reading count by these labels.
The day of such a trade is `day`, as it was entered or left on it: at the first readings up to the eighth it
was looked up as of that day, on which a trade that was entered is not known yet. Those count as not made in
the seventh and the eighth; a report that is named by its day is found by its day. From the eleventh on such
a fill is explained by the id that the trade brought.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SETS = (1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12)
PARTLY_MENDED = 6
# Of the questions of the run that is made without any choice.
CONTEXT: Mapping[str, Any] = {
    "run_id": "r0001",
    "known_at": "2013-03-02T00:00:00+00:00",
    "known_from": "2000-03-01T00:00:00+00:00",
    "symbols": ("AAPL", "FB", "GOOG", "IBM", "MSFT"),
    "playbooks": (
        "channel_breakout",
        "mean_reversion",
        "momentum_continuation",
        "squeeze_breakout",
        "trend_pullback",
    ),
    "regimes": (),
}
LAST_SECOND = "T23:59:59Z"


@dataclass(frozen=True)
class FirstReading:
    """What a set came to before anything was changed for it, by its labels as they were written.

    Attributes:
        made: expected calls that were made with all that the question determines.
        rules: of these, calls of questions that try a rule, which are asked back.
        wrong: questions with a tool that they do not need.
        back: clear questions that were asked back, without those that try a rule.
    """

    made: int
    calls: int
    rules: int
    wrong: int
    back: int
    clear: int


FIRST_READINGS: Mapping[int, FirstReading] = {
    1: FirstReading(made=39, calls=53, rules=5, wrong=1, back=9, clear=44),
    2: FirstReading(made=37, calls=53, rules=6, wrong=5, back=8, clear=44),
    3: FirstReading(made=34, calls=52, rules=5, wrong=5, back=9, clear=44),
    4: FirstReading(made=37, calls=52, rules=5, wrong=6, back=5, clear=44),
    5: FirstReading(made=34, calls=54, rules=6, wrong=2, back=10, clear=44),
    PARTLY_MENDED: FirstReading(made=40, calls=73, rules=0, wrong=7, back=15, clear=60),
    7: FirstReading(made=64, calls=73, rules=0, wrong=3, back=3, clear=60),
    8: FirstReading(made=67, calls=73, rules=0, wrong=1, back=1, clear=60),
    9: FirstReading(made=70, calls=73, rules=0, wrong=0, back=1, clear=60),
    10: FirstReading(made=71, calls=73, rules=0, wrong=1, back=1, clear=60),
    11: FirstReading(made=75, calls=78, rules=0, wrong=0, back=1, clear=60),
    12: FirstReading(made=73, calls=77, rules=0, wrong=2, back=3, clear=60),
}


@dataclass(frozen=True)
class SetQuestion:
    """One question of a set with its label; of `calls` the arguments that the question determines."""

    text: str
    status: str
    calls: tuple[tuple[str, Mapping[str, Any]], ...]
    also: frozenset[str]

    def made_of(self, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> int:
        """How many of the expected calls are among some."""
        return sum(any(is_as_expected(pair, call) for call in calls) for pair in self.calls)

    def wrong_of(self, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> set[str]:
        """Tools among some calls that the question does not need."""
        return {method for method, _ in calls} - {method for method, _ in self.calls} - self.also


def question_set(number: int) -> Iterator[SetQuestion]:
    """The questions of a set in their order."""
    path = Path(__file__).with_name(f"set_{number}.json")
    for load in json.loads(path.read_text("utf-8"))["questions"]:
        calls = tuple((call["tool"], call["arguments"]) for call in load["calls"])
        yield SetQuestion(load["text"], load["status"], calls, frozenset(load.get("also") or ()))


def is_as_expected(expected: tuple[str, Mapping[str, Any]], call: tuple[str, Mapping[str, Any]]) -> bool:
    """Whether a call is of the expected tool and has all that is expected of it."""
    wanted = {name: _plain(value) for name, value in expected[1].items() if value is not None}
    given = {name: _plain(value) for name, value in call[1].items()}
    return expected[0] == call[0] and wanted.items() <= given.items()


def _plain(value: Any) -> str:
    """A value as it is compared: a day is as its last second, and a number as its text."""
    return str(value).casefold().removesuffix(LAST_SECOND.casefold())
