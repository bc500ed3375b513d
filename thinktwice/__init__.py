"""thinktwice as a library: backtests with reflection from a script or a notebook.

```python
import thinktwice as tt

result = tt.backtest(df)          # a DataFrame of bars; without one, the embedded daily bars
result.summary["total_return"]
result.trades                     # a DataFrame
print(result.why(result.trades["fill_id"].iloc[-1]))
```

What stands in `__all__` is the library; everything else may change without notice. Names are loaded when they
are first used: the command line starts in this package, and must hear Ctrl-C at once.
"""

import sys
from typing import TYPE_CHECKING, Any

# ruff: noqa: F403, F405 - what a checker of types sees is the list of the other module

if TYPE_CHECKING:
    from schemas.errors import OrderRefused
    from schemas.guard import Account, GuardSettings, Order, Verdict
    from thinktwice.guarding import Guard, guard
    from thinktwice.public import *

__all__ = [
    "AblationResult",
    "Account",
    "BacktestResult",
    "CheckResult",
    "ConfigError",
    "Critic",
    "DataError",
    "DirectionRules",
    "Expectation",
    "FaultsResult",
    "Finding",
    "GateResult",
    "Guard",
    "GuardSettings",
    "Judge",
    "Model",
    "ModelReply",
    "Order",
    "OrderRefused",
    "Parameter",
    "Playbook",
    "PlaybookDefinition",
    "PolicyLevelReflectionRequest",
    "PolicyProposal",
    "RuleError",
    "Settings",
    "SimulationResult",
    "Strategist",
    "StrategistAnswer",
    "SweepResult",
    "ThinktwiceError",
    "ToolAnswer",
    "TrialsResult",
    "Verdict",
    "__version__",
    "ablate",
    "ask",
    "backtest",
    "check",
    "faults",
    "feature",
    "finding",
    "gate",
    "guard",
    "load",
    "settings",
    "simulate",
    "sweep",
    "trials",
]


# A guard stands in front of an agent that is not to wait for the engine: its names load nothing of that.
GUARD = ("Account", "Guard", "GuardSettings", "Order", "OrderRefused", "Verdict", "guard")
RUNS = ("ablate", "backtest", "faults", "load", "simulate", "sweep")  # need the engine


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in GUARD:
        from thinktwice import guarding

        return getattr(guarding, name)
    if name not in RUNS or "thinktwice.public" in sys.modules:
        from thinktwice import public
    else:
        from worker.runs.readiness import loading

        with loading():
            from thinktwice import public
    return getattr(public, name)


def __dir__() -> list[str]:
    return __all__
