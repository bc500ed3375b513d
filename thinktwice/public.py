"""What the library offers, loaded with the first of its names."""

from importlib.metadata import version

from schemas.errors import ConfigError, DataError, RuleError, ThinktwiceError
from schemas.playbook import DirectionRules, Expectation, Parameter, PlaybookDefinition
from schemas.settings import Settings
from services.ports import Judge, Strategist
from thinktwice.backtesting import backtest
from thinktwice.inputs import Playbook, settings
from thinktwice.research import simulate
from thinktwice.result import BacktestResult
from trading_core.research.simulation import SimulationResult

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
    "RuleError",
    "Settings",
    "SimulationResult",
    "Strategist",
    "ThinktwiceError",
    "__version__",
    "backtest",
    "settings",
    "simulate",
]
