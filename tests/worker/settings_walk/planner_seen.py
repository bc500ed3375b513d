"""Looks at how evidence is planned: what a model is asked, how often, and when definitions are read anew."""

import asyncio
import json
from typing import Any

import pytest

from agents.evidence_planner import ModelPlanner
from agents.planning.gathering import gather
from agents.tool_hosts.in_process import InProcessTools
from agents.tool_hosts.mcp import configured_tools
from schemas.errors import ToolRefused
from schemas.settings import Settings
from schemas.settings.planner import OWN
from services.ports import EvidenceQuestion
from tests.agents.planning.planned import Says
from tests.agents.tool_hosts.test_kept_definitions import Clock, Desk, settled
from tests.agents.tool_hosts.test_tools_of_other_servers import Book

CALL = {"client": OWN, "method": "runs", "params": {}}
UNSURE = json.dumps({"confidence": 0.8, "tools": [CALL]})
TURNS = (("one", "1"), ("two", "2"))


async def _refuses(arguments: Any, progress: Any) -> Any:
    raise ToolRefused("there is no run")


def gathered(settings: Settings) -> Any:
    """What is gathered of a question whose call fails, and what the model was asked for it."""
    shown, model = settings.planner, Says(UNSURE)
    found = asyncio.run(
        gather(
            EvidenceQuestion("Which runs are there?", {}, TURNS),
            ModelPlanner(model, shown, max_tokens=100),
            {OWN: InProcessTools({"runs": _refuses})},
            shown,
            attended=True,
            deadline_s=5.0,
        )
    )
    questions = [(request["prompt"], [tool.name for tool in request["tools"]]) for request in model.requested]
    return found.status, found.iterations, found.refined, questions


def definitions_read(settings: Settings) -> int:
    """How often a server is asked for its definitions within a minute."""
    desk, clock = Desk(), Clock()

    async def read() -> None:
        async with configured_tools("desk", settings.planner, {}, Book(), now_s=clock) as host:
            await host.tools()
            clock.now = 60.0
            await host.tools()
            await settled()

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("agents.tool_hosts.mcp.target_of", lambda server, environment: desk.server())
        asyncio.run(read())
    return desk.listings
