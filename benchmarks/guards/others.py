"""The other guards: each in an environment of its own, made from the pinned file beside its adapter."""

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.guards.cases import Case
from schemas.errors import ConfigError

FOLDER = Path(__file__).with_name("peers")
CAP_S = 900.0


@dataclass(frozen=True)
class OtherGuard:
    """A guard of a package registry; `name` is that of its adapter, `python` the oldest that it runs on."""

    title: str
    name: str
    python: str = "3.11"


OTHERS = (
    OtherGuard("AgentRisk", "agentrisk"),
    OtherGuard("Deadlatch", "deadlatch"),
    OtherGuard("PyFortis", "pyfortis"),
    OtherGuard("Mnemox Control", "mnemox", "3.12"),
    OtherGuard("deadman", "deadman"),
    OtherGuard("OpenPit", "openpit"),
    OtherGuard("Trading Risk Engine", "risk_engine"),
    OtherGuard("Position Risk MCP", "position_risk"),
)
# Named beside these in the registry, and why they are not asked.
NOT_ASKED: Mapping[str, str] = {
    "agentic-guardrails 0.3.0": "guards orders of option contracts alone",
    "agent-trading-guardrails 0.1.1": "checks prices between 0 and 1 of prediction markets, and no size",
    "kadmos-risk 0.2.0": "sizes an entry and is shown no order",
    "nanobook, vnpy-riskmanager, ml4t-live, irl-gateway": "part of an engine or server; not looked into",
    "TAS Guard": "no package of that name is in the registry",
}


def ask(guard: OtherGuard, cases: Sequence[Case], limits: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    """Its version, and why it stopped each case by the case's id; empty where it did not.

    Raises:
        ConfigError: it failed, or its environment cannot be made.
    """
    with tempfile.TemporaryDirectory() as name:
        given, out = Path(name) / "cases.json", Path(name) / "out.json"
        given.write_text(json.dumps({"cases": list(cases), "limits": dict(limits)}), "utf-8")
        requirements = ["--with-requirements", str(FOLDER / f"{guard.name}.txt")]
        python = ["uv", "run", "--quiet", "--no-project", "--python", guard.python, *requirements, "python"]
        script = [str(FOLDER / f"run_{guard.name}.py"), str(given), str(out)]
        environment = {key: value for key, value in os.environ.items() if key != "UV_PYTHON"}
        environment["UV_PYTHON_DOWNLOADS"] = "never"
        done = subprocess.run(
            [*python, *script], cwd=FOLDER, env=environment, capture_output=True, text=True, timeout=CAP_S,
            check=False,
        )  # fmt: skip
        if done.returncode:
            raise ConfigError(f"{guard.title} failed; its last words:\n{done.stderr[-2_000:]}")
        found = json.loads(out.read_text("utf-8"))
    return found["version"], found["reasons"]
