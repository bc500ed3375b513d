"""thinktwice as a library: backtests with reflection from a script or a notebook.

```python
import thinktwice as tt

result = tt.backtest(df)          # a DataFrame of bars; without one, the embedded daily bars
result.summary["total_return"]
result.trades                     # a DataFrame
print(result.why(result.trades["fill_id"].iloc[-1]))
```

What stands in `__all__` is the library; everything else may change without notice.
"""

from importlib.metadata import version

from schemas.errors import ConfigError, DataError, ThinktwiceError
from schemas.playbook import DirectionRules, Expectation, Parameter, PlaybookDefinition
from schemas.settings import Settings
from services.ports import Judge, Strategist
from thinktwice.backtesting import backtest
from thinktwice.inputs import Playbook, settings
from thinktwice.result import BacktestResult

__version__ = version("thinktwice")

__all__ = [
    "BacktestResult",
    "ConfigError",
    "DataError",
    "DirectionRules",
    "Expectation",
    "Judge",
    "Parameter",
    "Playbook",
    "PlaybookDefinition",
    "Settings",
    "Strategist",
    "ThinktwiceError",
    "__version__",
    "backtest",
    "settings",
]
