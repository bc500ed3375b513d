"""Where evidence may be asked for: servers of tools besides our own."""

import re
from typing import Literal

from pydantic import Field, field_validator, model_validator

from schemas.contract import Contract, FrozenMap

SERVER_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}")
OWN = "thinktwice"


class ToolServer(Contract):
    """One server of tools over MCP: a program that is started, or an address that is reached."""

    command: tuple[str, ...] = Field(default=(), description="program and arguments of a server over stdio")
    url: str | None = Field(default=None, description="address of a server over streamable HTTP")
    token_env: str | None = Field(
        default=None, description="variable with the server's token: sent to `url`, handed to `command`"
    )

    @model_validator(mode="after")
    def _is_reached_one_way(self) -> "ToolServer":
        if bool(self.command) == (self.url is not None):
            raise ValueError("a server has either command or url: give one of them")
        return self

    @field_validator("url")
    @classmethod
    def _is_web_address(cls, url: str | None) -> str | None:
        if url is not None and not url.startswith(("http://", "https://")):
            raise ValueError("write http:// or https:// and the address of the server")
        return url


class PlannerSettings(Contract):
    """How evidence is asked for: by the judge about a recommendation, by a person with `thinktwice ask`."""

    judge: Literal["off", "rules", "model"] = Field(
        default="rules",
        description="who plans what a judge that asks a model reads about a change: nobody, rules, or it",
    )
    confidence_threshold: float = Field(
        default=0.7,
        ge=0,
        le=1,
        description="below this confidence a plan is a question back, unattended nothing",
    )
    enable_reflection: bool = Field(
        default=True, description="whether a plan is looked at again after its calls, and refined"
    )
    max_iterations: int = Field(default=2, ge=1, le=5, description="plans for one question at most")
    schema_ttl_s: int = Field(
        default=3_600,
        ge=0,
        le=604_800,
        description="seconds that definitions of tools are kept, then refreshed",
    )
    history: int = Field(
        default=5, ge=0, le=50, description="turns of a conversation that the planner is shown"
    )
    native_tools: bool = Field(
        default=True, description="whether a model plans by its provider's own calling of tools"
    )
    servers: FrozenMap[str, ToolServer] = Field(
        default={},
        description="servers of tools by name, each a table of `command` or `url`, and `token_env`",
    )

    @field_validator("servers")
    @classmethod
    def _have_names(cls, servers: FrozenMap[str, ToolServer]) -> FrozenMap[str, ToolServer]:
        for name in servers:
            if SERVER_NAME.fullmatch(name) is None or name == OWN:
                raise ValueError(f"{name!r} is no name of a server: lower-case letters and digits, not {OWN}")
        return servers
