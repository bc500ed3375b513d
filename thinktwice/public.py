"""What the library offers, loaded with the first of its names."""

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
