"""What the library offers, loaded with the first of its names."""

from importlib.metadata import version

from agents.language_models.own_model import Model
from schemas.errors import ConfigError, DataError, OrderRefused, RuleError, ThinktwiceError
from schemas.guard import Account, GuardSettings, Order, Verdict
from schemas.playbook import DirectionRules, Expectation, Parameter, PlaybookDefinition
from schemas.proposal import PolicyProposal
from schemas.reflection import Finding, PolicyLevelReflectionRequest
from schemas.settings import Settings
from schemas.strategist_answer import StrategistAnswer
from services.model_calls.language_model import ModelReply
from services.ports import Critic, Judge, Strategist
from thinktwice.asking import ToolAnswer, ask
from thinktwice.backtesting import backtest
from thinktwice.guarding import Guard, guard
from thinktwice.inputs import Playbook, settings
from thinktwice.parts import finding
from thinktwice.research import feature, simulate
from thinktwice.result import BacktestResult
from thinktwice.stored import load
from thinktwice.studies import (
    AblationResult,
    CheckResult,
    FaultsResult,
    GateResult,
    TrialsResult,
    ablate,
    check,
    faults,
    gate,
    trials,
)
from thinktwice.sweeping import sweep
from trading_core.research.simulation import SimulationResult
from worker.studies.sweep.result import SweepResult

__version__ = version("thinktwice")

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
