"""What an approved action makes of a playbook's composition: in force at once, without a trial. Pure.

The judge's actions prove themselves in shadow first, see `effect_of`; one that a person has approved acts as
it says.
"""

from schemas.judge import JudgeAction
from services.playbooks.action_effects import Limit, Refusal, Situation, effect_of
from services.playbooks.measures import RISK, Composition, revised, with_parameter
from services.playbooks.trials import DIRECTIONS


def approved_composition(action: JudgeAction, now: Situation) -> Composition | Refusal:
    """The composition in force after the action, or the bound that the present state sets."""
    composition = now.compositions[str(action.playbook_id)]
    if action.kind == "set_eligibility" and action.eligible:
        sides = DIRECTIONS if action.direction is None else (action.direction,)
        keys = {(side, str(action.regime)) for side in sides}
        bans = [measure for measure in composition.measures if measure.key in keys]
        if not bans:
            return Refusal("not_banned", f"no lesson has banned {action.playbook_id} in {action.regime}")
        return composition.without(bans)
    if action.kind in ("set_threshold", "set_invalidation"):
        baseline = with_parameter(composition.baseline, str(action.parameter), float(action.value or 0.0))
        return Composition(baseline, composition.measures)
    effect = effect_of(action, now)
    if isinstance(effect, Refusal):
        return effect
    if isinstance(effect, Limit):
        return Composition(composition.baseline, (*composition.measures, *effect.measures))
    raised = revised(composition.baseline, risk_fraction=action.value)
    rest = tuple(measure for measure in composition.measures if measure.key != RISK)
    return Composition(raised, rest)
