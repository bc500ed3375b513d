"""What a check of a text costs once the facts of its run are read: 4,000 characters a time.

`uv run python -m benchmarks.fact_check_speed` prints the table. The texts are the labelled sentences of the
tests, true and false ones, and the narrative of a report, each cut at the same length. It is CPU time.
"""

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from services.deliberation.fact_check import check_facts
from tests.services.deliberation.recorded import recorded, recorded_report
from tools.docs_pages import table

CHARACTERS = 4_000
ROUNDS = 5
LIMIT_MS = 50.0
SENTENCES = Path(__file__).resolve().parents[1] / "tests" / "services" / "deliberation"


@dataclass(frozen=True)
class Checked:
    """CPU milliseconds of the checks of some texts, and how many claims they make."""

    texts: int
    claims: int
    spent_ms: tuple[float, ...]

    def percentile(self, share: float) -> float:
        """Milliseconds that this share of the checks stays within, in percent."""
        return float(np.percentile(self.spent_ms, share))


def texts() -> list[str]:
    """Texts of the length: sentences one behind another, and the narrative of the recorded report."""
    sentences = [line.split("|", 2)[2] for line in _lines() if "|" in line[:2]]
    whole = " ".join(sentences)
    cut = [whole[at : at + CHARACTERS] for at in range(0, len(whole) - CHARACTERS, CHARACTERS)]
    return [*cut, recorded_report().narrative[:CHARACTERS]]


def _lines() -> Iterator[str]:
    for file in sorted(SENTENCES.glob("*sentences*.txt")):
        yield from file.read_text("utf-8").splitlines()


def time_checks() -> Checked:
    """Every text five times, after one check that compiles the patterns and reads the facts."""
    facts, given = recorded(), texts()
    claims = sum(len(check_facts(text, facts).claims) for text in given)
    spent = []
    for text in given * ROUNDS:
        started = time.process_time()
        check_facts(text, facts)
        spent.append((time.process_time() - started) * 1e3)
    return Checked(len(given), claims, tuple(spent))


def check_table(checked: Sequence[Checked]) -> str:
    """One line a measurement."""
    rows = [
        (
            f"{CHARACTERS:,}", f"{item.texts}", f"{item.claims / item.texts:,.0f}",
            *(f"{item.percentile(share):.1f}" for share in (50.0, 95.0)), f"{LIMIT_MS:.0f}",
        )
        for item in checked
    ]  # fmt: skip
    return table(("characters", "texts", "claims each", "p50 ms", "p95 ms", "limit ms"), rows)


if __name__ == "__main__":
    sys.stdout.write(f"{check_table([time_checks()])}\n")
