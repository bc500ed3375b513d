"""The way of a report to the judge: an inbox in the store from which each report is taken exactly once.

The worker that reflects never writes into the journal of a run: that chain has one writer, the trading
process. So a report waits here until a consumer takes it. At each bar close the trading process

1. takes the oldest waiting report (`take`),
2. asks the judge, and journals request, report, verdict and what they change at that bar,
3. acknowledges with the verdict and the close of that bar (`deliver`).

A consumer that dies between 1 and 3 loses its hold after a while and the report is taken again, under a
higher epoch; the acknowledgement of the old hold is then refused. One that died after 2 finds the report's id
in its own journal when it starts again: it does not ask the judge again, but acknowledges with the verdict
that stands there. So there is one verdict for a report, whoever dies when.
"""

from dataclasses import dataclass
from typing import Protocol

from schemas.judge import ReplanVerdict
from schemas.slow_reflection import HighLevelReflectionReport, HighLevelReflectionRequest


@dataclass(frozen=True)
class TakenReport:
    """A report in the hands of one consumer, with the request it answers.

    Attributes:
        run_id: the run, `job` and `slot` (ns): the natural key of the report.
        report_id: id of the report's content, by which verdicts and playbook versions name it.
        epoch: number of this hold; an acknowledgement under another one is refused.
    """

    run_id: str
    job: str
    slot: int
    report_id: str
    request: HighLevelReflectionRequest
    report: HighLevelReflectionReport
    consumer: str
    epoch: int


class ReportInbox(Protocol):
    """Reports on their way to the judge, oldest first."""

    async def take(self, run_id: str, consumer: str, hold_ms: int) -> TakenReport | None:
        """The oldest report that no consumer holds, held for `hold_ms` of database time; None without one."""
        ...

    async def deliver(self, taken: TakenReport, verdict: ReplanVerdict, arrived_at: int) -> bool:
        """Store the verdict and mark the report as delivered, in one transaction.

        Args:
            taken: as it came from `take`.
            verdict: the judge's; its id is that of its content.
            arrived_at: ns; the bar close at which the report reached the judge.

        Returns:
            False when this hold has been lost: another consumer has the report, or has delivered it.
        """
        ...
