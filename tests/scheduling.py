"""Which files the processes of one session take together: those that look at the same long runs.

Each process makes such a run once, for all its files; two processes with one file each would make it twice.
"""

from typing import Any

from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]  # ships no types

SAME_RUNS = {
    "embedded and losing runs": (
        "worker/runs/test_signals.py",
        "agents/planning/test_run_evidence.py",
        "agents/test_judge_evidence.py",
        "docs/test_documented_contracts.py",
        "services/evidence_tools/test_evidence_buffer.py",
        "services/evidence_tools/test_report_rows.py",
        "services/slow_loop/test_loop_facts.py",
        "worker/cli/test_check_contradictions.py",
        "worker/cli/test_gate.py",
        "worker/cli/test_summary.py",
        "worker/test_amendments_in_a_session.py",
        "worker/test_backtest_on_embedded_bars.py",
        "worker/test_judge_evidence_in_runs.py",
        "worker/test_planted_world.py",
        "worker/test_slow_loop_analyses.py",
        "worker/test_slow_loop_wires.py",
        "worker/test_trials_of_runs.py",
    ),
    "slice of the embedded bars": (
        "worker/cli/test_why.py",
        "worker/runs/test_contamination.py",
        "worker/runs/test_why_no_trade.py",
        "worker/test_backtest_is_point_in_time.py",
        "worker/test_memory_wires.py",
        "worker/test_slow_loop_gates.py",
        "worker/test_strategist_background.py",
    ),
    "stored planted run": (
        "worker/cli/test_bad_input.py",
        "worker/cli/test_factcheck.py",
        "worker/cli/test_plans.py",
        "worker/cli/test_playbooks.py",
        "worker/cli/test_replan.py",
    ),
}
_SCOPES = {f"tests/{name}": runs for runs, names in SAME_RUNS.items() for name in names}


class LoadRunScheduling(LoadFileScheduling):  # type: ignore[misc]  # as above
    """File by file, as `--dist loadfile`, and files that share runs as if they were one."""

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(super()._split_scope(nodeid))


def scope_of(file: str) -> str:
    """The runs that a file shares with others, or the file itself."""
    return _SCOPES.get(file, file)


def scheduler(config: Any, log: Any) -> LoadFileScheduling | None:
    """For `--dist loadfile`; None leaves the choice to xdist."""
    return LoadRunScheduling(config, log) if config.getvalue("dist") == "loadfile" else None
