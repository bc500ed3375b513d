"""What a check of a report of 30 claims costs once the facts of its run are read; tokens of its question.

`uv run python -m benchmarks.claim_check_speed` prints the table. The claims are those of the rules on each
report of a recorded run, written in words and held against the run as of that report. It is CPU time. Tokens
of the question for a narrative are characters by four.
"""

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle, islice

import numpy as np

from prompts import load_prompt
from schemas.claims import Section
from services.claims.sections import write_sections
from services.evidence.run_facts import RunFacts
from services.high_level.report_sections import TOPICS, cells_of, rule_sections
from services.model_calls.quoting import quoted_json
from tests.services.deliberation.recorded import at_last_report, at_reports, last_report, reports_of
from tools.docs_pages import table

CLAIMS = 30
ROUNDS = 20
LIMIT_MS = 5.0
CHARACTERS_PER_TOKEN = 4


@dataclass(frozen=True)
class Checked:
    """CPU milliseconds of the checks of reports, and the tokens of the question for the last narrative."""

    reports: int
    spent_ms: tuple[float, ...]
    tokens: int

    def percentile(self, share: float) -> float:
        """Milliseconds that this share of the checks stays within, in percent."""
        return float(np.percentile(self.spent_ms, share))


def given_reports() -> list[tuple[Section, RunFacts]]:
    """30 claims on each report of the embedded run, with the facts of then."""
    found = []
    for (report, _), facts in zip(reports_of(), at_reports(), strict=True):
        claims = [claim for part in rule_sections(report, facts) for claim in part.claims]
        found.append((Section(topic=TOPICS[0], claims=tuple(islice(cycle(claims), CLAIMS))), facts))
    return found


def question_tokens() -> int:
    """Tokens of the question for the narrative of the last report, its instructions included."""
    prompt = load_prompt("high_level_reflection")
    cells = quoted_json(cells_of(last_report(), at_last_report()))
    request = prompt.render(cells=cells, topics=quoted_json(list(TOPICS)))
    return (len(prompt.system) + len(request)) // CHARACTERS_PER_TOKEN


def time_checks() -> Checked:
    """Every report's claims, after one check that fills what the facts remember."""
    given, spent = given_reports(), []
    for section, facts in given:
        write_sections([section], facts)
    for section, facts in given * ROUNDS:
        started = time.process_time()
        write_sections([section], facts)
        spent.append((time.process_time() - started) * 1e3)
    return Checked(len(given), tuple(spent), question_tokens())


def check_table(checked: Sequence[Checked]) -> str:
    """One line a measurement."""
    rows = [
        (
            f"{CLAIMS}", f"{item.reports}",
            *(f"{item.percentile(share):.1f}" for share in (50.0, 95.0)), f"{LIMIT_MS:.0f}",
            f"{item.tokens:,}",
        )
        for item in checked
    ]  # fmt: skip
    return table(("claims", "reports", "p50 ms", "p95 ms", "limit ms", "tokens of the question"), rows)


if __name__ == "__main__":
    sys.stdout.write(f"{check_table([time_checks()])}\n")
