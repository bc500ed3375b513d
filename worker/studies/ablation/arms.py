"""The arms of an ablation: one configuration, run with and without each tier on the same bars.

An arm changes which tiers are on and nothing else.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from schemas.errors import ConfigError
from schemas.settings import Settings
from services.statistics.blocks import Floats
from services.statistics.calendar_units import BlockUnit, Integers, unit_numbers
from worker.runs.run_result import RunResult


class Arm(StrEnum):
    """What is on. `fast_only` is the arm with the slow loop off."""

    NO_REFLECTION = "no_reflection"
    FAST_ONLY = "fast_only"
    DETERMINISTIC = "deterministic"
    FULL = "full"
    RANDOM_VETO = "random_veto"


MEANING = {
    Arm.NO_REFLECTION: "neither reflection; strategist, judge, freeze and envelope as ever",
    Arm.FAST_ONLY: "fast reflection by rules, slow loop off",
    Arm.DETERMINISTIC: "both reflections by rules",
    Arm.FULL: "both, with the configured model",
    Arm.RANDOM_VETO: "no reflection; plans vetoed by a coin as often as fast_only did",
}
_MODES = {
    Arm.NO_REFLECTION: "off",
    Arm.FAST_ONLY: "deterministic",
    Arm.DETERMINISTIC: "deterministic",
    Arm.FULL: "full",
    Arm.RANDOM_VETO: "off",
}
NO_MODEL = "no model configured"


def settings_of(arm: Arm, base: Settings) -> Settings:
    """The configuration of an arm; replies come from a cassette only where a model of the loops is asked.

    Raises:
        ConfigError: a model strategist with a cassette: every arm asks it other questions.
    """
    if base.policy_loop.strategist != "rules" and base.runtime.llm != "live":
        raise ConfigError(
            f"runtime.llm {base.runtime.llm!r}: an ablation asks a model strategist other questions in every "
            "arm, which no one cassette holds: use --llm live, or the strategist 'rules'"
        )
    reflection = base.reflection.model_copy(update={"mode": _MODES[arm]})
    slow = base.high_level.model_copy(update={"enabled": arm is not Arm.FAST_ONLY})
    runtime = base.runtime
    if arm is not Arm.FULL:
        runtime = runtime.model_copy(update={"llm": "live", "cassette": None})
    return base.model_copy(update={"reflection": reflection, "high_level": slow, "runtime": runtime})


def has_model(base: Settings) -> bool:
    """Whether the arm with a model can be run."""
    return "none" not in (base.llm.fast_model, base.llm.slow_model)


@dataclass(frozen=True)
class ArmResult:
    """What one run of one arm came to.

    Attributes:
        seed: of the coin; None for any other arm.
        run_id: in the store; None for a coin's run that was not kept.
        head_hash: of its journal, kept or not.
        document: the JSON document of the run.
        labels: bar labels, ns (T,).
        curve: cash, then equity at every close (T + 1,).
        gross: gross exposure over equity at every close (T,).
    """

    arm: Arm
    seed: int | None
    run_id: str | None
    head_hash: str
    config_hash: str
    document: dict[str, Any]
    labels: Integers
    curve: Floats
    gross: Floats

    @classmethod
    def of(
        cls,
        arm: Arm,
        result: RunResult,
        settings: Settings,
        run_id: str | None,
        seed: int | None,
    ) -> "ArmResult":
        """The figures of a finished run, without the run itself.

        An account that is gone stays so to the last bar: arms are compared block by block.
        """
        document = result.document(run_id or "", "")
        left = result.session.bars.shape[0] - len(result.equity[1])
        equity = np.pad(np.array(result.equity[1]), (0, left), "edge")
        gross = np.pad(np.array(result.gross), (0, left))
        return cls(
            arm,
            seed,
            run_id,
            document["journal"]["head_hash"],
            settings.config_hash,
            document,
            result.session.bars.times.copy(),
            np.concatenate(([settings.account.cash], equity)),
            _share_of(gross, equity),
        )

    @property
    def exposure(self) -> float:
        """Share of bars with any position."""
        return float(np.mean(self.gross > 0.0))

    @property
    def mean_gross(self) -> float:
        """Mean gross exposure over equity, over all bars."""
        return float(np.mean(self.gross))

    @property
    def cost_share(self) -> float:
        """What models cost, over the cash at the start."""
        return float(self.document["performance"]["model_cost"]) / float(self.curve[0])

    def block_returns(self, unit: BlockUnit) -> Floats:
        """Return of each calendar block (b,), by time; the cost of models is spread evenly over them."""
        labels = unit_numbers(self.labels, unit)
        ends = np.append(np.flatnonzero(np.diff(labels)), len(labels) - 1)
        values = self.curve[np.concatenate(([0], ends + 1))]
        return _share_of(np.diff(values), values[:-1]) - self.cost_share / len(ends)


def _share_of(amounts: Floats, equity: Floats) -> Floats:
    """Amounts as fractions of equity; of an account that is gone nothing is held, gained or lost."""
    return np.divide(amounts, equity, out=np.zeros_like(amounts), where=equity > 0.0)
