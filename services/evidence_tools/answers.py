"""Which function answers which tool about a run."""

from collections.abc import Callable, Mapping
from typing import Any

from services.evidence.tool_results import ToolResult
from services.evidence_tools import lesson_answers, market_answers
from services.evidence_tools.run_view import RunView

Answer = Callable[[RunView, Any], ToolResult]
OF_A_RUN: Mapping[str, Answer] = {
    "market_snapshot": market_answers.market_snapshot,
    "episodes": market_answers.episodes,
    "explain_fill": market_answers.explain_fill,
    "playbooks": lesson_answers.playbooks,
    "reports": lesson_answers.reports,
    "gate_status": lesson_answers.gate_status,
}
