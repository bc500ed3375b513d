"""The facts of phase 1, from what the slow loop knows of a run: in the run, and from its stored rows."""

from collections.abc import Mapping

from schemas.settings import Settings
from services.plans.drafting import CHARACTERS_A_TOKEN, PlanFacts
from services.playbooks.measures import duration_ns
from services.slow_loop.loop_facts import LoopFacts

NS = 1_000_000_000


def facts_of(
    facts: LoopFacts,
    clock: int,
    closes: Mapping[str, float],
    atr: Mapping[str, float],
    settings: Settings,
) -> PlanFacts:
    """Everything that a plan is drafted from, as of a time.

    Args:
        facts: the fold of the run's rows up to the time.
        clock: the close of the last bar, ns.
        closes: last closes by symbol, in price; atr: mean true ranges of 14 bars.
        atr: see `mean_true_range`.
        settings: of the run.
    """
    plans, state = settings.plans, facts.run_state
    definitions = {definition.id: definition for definition in facts.definitions(clock)}
    waits = max(int(plans.expires_s * NS), duration_ns(plans.expires_bars, facts.timeframe))
    return PlanFacts(
        at=clock,
        expires_at=clock + waits,
        definitions=definitions,
        next_versions=facts.next_versions(clock),
        judge=settings.judge,
        earlier=facts.earlier(clock),
        positions=tuple(state.held[symbol] for symbol in sorted(state.held)),
        symbols={name: state.symbols_of(name) for name in definitions},
        closes=closes,
        atr=atr,
        kill_switch=state.kill_switch,
        safe_mode=state.safe_mode,
        open_experiments=facts.open_experiments(clock),
        longest=plans.execution_tokens * CHARACTERS_A_TOKEN,
    )
