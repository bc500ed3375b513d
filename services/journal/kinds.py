"""The closed list of journal kinds: what tick validation reports, and what the loops around it decide.

The writer refuses any other kind, so that a reader who asks for one (`--kind`) can be told the nearest name.
"""

from schemas.vocabulary import TickEventKind

GENESIS = "genesis"
RUN_FINISHED = "run_finished"

TICK_KINDS: frozenset[str] = frozenset(kind.value for kind in TickEventKind)
PLAN_KINDS: frozenset[str] = frozenset(
    {
        "two_phase_phase1_start",
        "two_phase_phase1_complete",
        "plan_decided",
        "plan_step",
        "two_phase_phase2_complete",
    }
)
GUARD_KINDS: frozenset[str] = frozenset(
    {
        "guard_opened",
        "guard_verdict",
        "guard_spent",
        "guard_settled",
        "guard_outcome",
        "guard_asked",
        "guard_decided",
        "guard_killed",
    }
)
LOOP_KINDS: frozenset[str] = frozenset(
    {
        GENESIS,
        "policy_event",
        "policy_skip",
        "policy_snapshot",
        "strategist_background",
        "policy_proposal",
        "policy_reflection",
        "proposal_clamped",
        "boundary_verdict",
        "policy_frozen",
        "policy_amended",
        "policy_evaluation",
        "entries_blocked",
        "episode",
        "expectation_measured",
        "shadow_episode",
        "shadow_trials",
        "slow_skip",
        "high_level_request",
        "high_level_report",
        "fact_check",
        "deliberation",
        "reflection_critique",
        "reflection_correction",
        "review_cycle",
        "chunk_outline",
        "chunk_write",
        "evidence_plan",
        "evidence_call",
        "replan_verdict",
        "action_refused",
        *PLAN_KINDS,
        *GUARD_KINDS,
        "model_call",
        "model_budget",
        "model_breaker",
        "playbook_version",
        "measure_renewed",
        "error",
        "run_random_veto",
        RUN_FINISHED,
    }
)
# What came from outside between two rows of bars of a live run; read back when the run is replayed.
INPUT_KINDS: frozenset[str] = frozenset(
    {"feed_anomaly", "answer_arrived", "report_arrived", "operator_command"}
)
# Long rows that a replay makes again and that no later decision reads back: `db prune` may take their text.
PRUNABLE_KINDS: frozenset[str] = frozenset(
    {"policy_snapshot", "policy_proposal", "policy_reflection", "boundary_verdict", "policy_evaluation"}
)
JOURNAL_KINDS: frozenset[str] = TICK_KINDS | LOOP_KINDS | INPUT_KINDS
