"""What is known of a run of the slow loop that wrote a report."""

from dataclasses import replace

from schemas.judge import JudgeAction, ReplanVerdict
from schemas.vocabulary import RecommendedAction
from services.slow_loop.past_runs import PastRun


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
