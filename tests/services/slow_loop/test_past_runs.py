"""What is known of a run of the slow loop that wrote a report."""

from dataclasses import replace

from schemas.judge import JudgeAction, ReplanVerdict
from schemas.vocabulary import RecommendedAction
from services.slow_loop.counters import SlowCounters
from services.slow_loop.past_runs import PastRun, PastRuns


def action(value: float) -> JudgeAction:
    return JudgeAction(kind="set_risk_fraction", playbook_id="beta", value=value, reason="test")


def test_actions_that_were_carried_out_are_sorted_out_once_a_run():
    carried, refused, waiting = (action(value) for value in (0.001, 0.002, 0.003))
    verdict = ReplanVerdict.model_construct(actions=(carried, refused, waiting))
    run = PastRun(
        1, 1, 1, "a", 0, RecommendedAction.HOLD, verdict=verdict, refused=(refused,), planned=(waiting,)
    )
    assert run.done == (carried,)
    assert run.done is run.done
    assert replace(run, enacted_at=2).done == (carried, waiting)


def test_judge_history_holds_what_was_carried_out_and_nothing_that_was_refused():
    carried, refused = action(0.001), action(0.002)
    verdict = ReplanVerdict.model_construct(actions=(carried, refused))
    runs = PastRuns()
    runs.add_outside([PastRun(1, 1, 1, "a", 0, RecommendedAction.HOLD, verdict=verdict, refused=(refused,))])
    assert [seen.value for seen in runs.judge_history(1, 1)] == [0.001]


def test_verdict_of_which_nothing_was_carried_out_counts_as_a_hold():
    verdict = ReplanVerdict.model_construct(
        decision=RecommendedAction.RESEARCH_EXPERIMENT, actions=(action(0.001),), refused=()
    )
    counters = SlowCounters()
    counters.count_verdict(verdict, acted=False)
    counters.count_verdict(verdict, acted=True)
    assert counters.replans == {"hold": 1, "research_experiment": 1}
