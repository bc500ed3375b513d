"""Tools of another server over MCP: each definition is pinned at first use, and refused when it changes.

The server is not trusted. It may page, hang, die, lie about a schema, send too much or give orders: a call
has a deadline of its own, an answer is bounded and stays data, and whatever goes wrong is a reply in one
sentence. Definitions are kept for a time and read anew in the background; a server that does not answer
leaves those that were read, or those that are pinned.
"""

import asyncio
import logging
import os
import re
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolRequest, CallToolRequestParams, CallToolResult, TextContent, Tool

from agents.tool_hosts.kept_definitions import Definitions, KeptDefinitions
from schemas.canonical import canonical_json
from schemas.errors import ConfigError, nearest
from schemas.settings.planner import PlannerSettings, ToolServer
from schemas.tool import ToolDefinition, ToolReply
from services.evidence.tools import quote_value
from services.model_calls.quoting import visible, visible_json
from services.ports import PinBook, ToolProgress

LOG = logging.getLogger("thinktwice.tools")
READ = "`thinktwice tools list CONFIG --server %s` shows what was accepted"
ACCEPT = "they are refused until `thinktwice tools pin CONFIG --server %s` accepts them"
# What the SDK says of another server's noise, tracebacks and all, goes to logs that are set up, if to any.
logging.getLogger("mcp").addHandler(logging.NullHandler())
MAY_WRITE = "its server says that it may write"
SILENT = "does not say that it only reads; accept it by `tools pin`"
TOOL_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
MOST_PAGES = 50
MOST_TOOLS = 500
LONGEST_DEFINITION = 65_536
LONGEST_ANSWER = 200_000
LONGEST_SAID = 300
DEADLINE_S = 10.0
TTL_S = PlannerSettings().schema_ttl_s
TYPES: Mapping[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "null": lambda value: value is None,
}


@dataclass(frozen=True)
class OfferedTool:
    """A definition as a server gives it, beside its pin."""

    definition: ToolDefinition
    pinned: str | None

    @property
    def changed(self) -> bool:
        """Whether it is another one than was accepted."""
        return self.pinned is not None and self.pinned != self.definition.content_hash

    @property
    def left_out(self) -> str | None:
        """Why no question gets it; None where it is offered, or was changed."""
        if self.definition.reads_only is False:
            return MAY_WRITE
        return SILENT if self.definition.reads_only is None and self.pinned is None else None


class McpTools:
    """The tools of one server.

    Args:
        name: of the server in the settings.
        target: what the SDK's client connects to.
        pins: definitions that were accepted.
        deadline_s: longest wait for one answer.
        ttl_s: how long definitions are good; 0: they are read each time.
        now_s: a clock that only runs forward.
    """

    def __init__(
        self,
        name: str,
        target: Any,
        pins: PinBook,
        *,
        deadline_s: float = DEADLINE_S,
        ttl_s: float = TTL_S,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self._target, self._pins, self._deadline_s = target, pins, deadline_s
        self._client: Client | None = None
        self._stack = AsyncExitStack()
        self._definitions = KeptDefinitions(name, self._look, ttl_s=ttl_s, now_s=now_s)
        self._refused: set[str] = set()

    async def __aenter__(self) -> Self:
        try:
            async with asyncio.timeout(self._deadline_s):
                self._client = await self._stack.enter_async_context(Client(_hear_answers(self._target)))
        except Exception as error:  # noqa: BLE001 - of another's server; the pinned definitions stay
            self._warn("tool_server_silent", error)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._definitions.close()
        try:
            await self._stack.aclose()
        except Exception as failure:  # noqa: BLE001 - as above; there is nothing left to close
            self._warn("tool_server_broke_off", failure)

    async def tools(self) -> tuple[ToolDefinition, ...]:
        """Definitions that may be used: those that are as they were pinned; new ones are pinned now."""
        return await self._or_pinned(await self._definitions.read())

    async def list_offered(self) -> list[OfferedTool]:
        """What the server offers now, beside the pins; of a silent server what is pinned.

        Raises:
            ConfigError: the server is silent and nothing is pinned.
        """
        pinned = await self._pins.pins_of(self.name)
        listed = await self._list_tools()
        if listed is None and not pinned:
            raise ConfigError(f"server {self.name!r} does not answer and nothing of it is pinned: start it")
        definitions = list(pinned.values()) if listed is None else listed
        hashes = {name: definition.content_hash for name, definition in pinned.items()}
        return [OfferedTool(item, hashes.get(item.name)) for item in definitions]

    async def accept(self) -> list[OfferedTool]:
        """Pin every definition as it is now.

        Raises:
            ConfigError: the server does not answer.
        """
        listed = await self._list_tools()
        if listed is None:
            raise ConfigError(f"server {self.name!r} does not answer: start it, and pin then")
        await self._pins.pin(self.name, listed)
        self._definitions.forget()
        return [OfferedTool(item, item.content_hash) for item in listed]

    async def call(
        self, name: str, arguments: Mapping[str, Any], progress: ToolProgress | None = None
    ) -> ToolReply:
        """The answer of one tool, as data."""
        known = await self._or_pinned(await self._definitions.last_read())
        usable = {definition.name: definition for definition in known}
        if name in self._refused:
            return _fail(f"{self.name}.{name} changed since it was pinned: `thinktwice tools pin` accepts it")
        if name not in usable:
            return _fail(f"{self.name} has no tool {quote_value(name)}.{nearest(name, usable)}")
        if not usable[name].reads_only:
            return _fail(f"{self.name}.{name} is not offered: `thinktwice tools list` says why")
        if self._client is None:
            return _fail(f"server {self.name} does not answer: ask without it, or start it")
        try:
            async with asyncio.timeout(self._deadline_s):
                result = await self._call(self._client, name, arguments, progress)
            return self._reply(usable[name], result)
        except TimeoutError:
            return _fail(f"{self.name}.{name} did not answer within {self._deadline_s:g} s: ask for less")
        except MCPError as error:
            return _fail(f"{self.name}.{name} refused the call: {_quote(str(error))}")
        except Exception as error:  # noqa: BLE001 - of another's server: it ends this call and nothing else
            self._warn("tool_call_broke_off", error)
            self._definitions.forget()  # a server that is started again may be another
            return _fail(f"{self.name}.{name} broke off: ask again, or without it")

    @staticmethod
    async def _call(
        client: Client, name: str, arguments: Mapping[str, Any], progress: ToolProgress | None
    ) -> CallToolResult:
        """One call as the SDK makes it, without its check of the answer by the server's own schema.

        A pattern or a reference of another's schema can take for ever, and no deadline ends that check.
        """
        params = CallToolRequestParams(name=name, arguments=dict(arguments))
        request = CallToolRequest(params=params)
        return await client.session.send_request(request, CallToolResult, progress_callback=progress)

    async def _or_pinned(self, read: Definitions | None) -> Definitions:
        return read if read is not None else _vouch_for((await self._pins.pins_of(self.name)).values())

    async def _look(self) -> Definitions | None:
        """Those of what is offered that are as they are pinned; None where the server does not say."""
        pinned, listed = await self._pins.pins_of(self.name), await self._list_tools()
        if listed is None:
            return None
        silent = [item for item in listed if item.name not in pinned and item.reads_only is None]
        new = [item for item in listed if item.name not in pinned and item not in silent]
        if new:
            await self._pins.pin(self.name, new)
            LOG.warning(
                "tools_pinned_at_first_use",
                extra={"server": self.name, "tools": [item.name for item in new], "next": READ % self.name},
            )
        held = {**{item.name: item for item in [*new, *silent]}, **pinned}
        self._refused = {item.name for item in listed if item != held[item.name]}
        if self._refused:
            LOG.warning(
                "tools_changed_since_pinned",
                extra={"server": self.name, "tools": sorted(self._refused), "next": ACCEPT % self.name},
            )
        known = [item for item in listed if item.name not in self._refused and item not in silent]
        return (*_vouch_for(known), *silent)

    async def _list_tools(self) -> list[ToolDefinition] | None:
        """Every page of definitions; None when the server does not give them."""
        if self._client is None:
            return None
        try:
            async with asyncio.timeout(self._deadline_s):
                return await self._pages(self._client)
        except Exception as error:  # noqa: BLE001 - of another's server; the pinned definitions stay
            self._warn("tool_server_silent", error)
            return None

    async def _pages(self, client: Client) -> list[ToolDefinition]:
        found: dict[str, ToolDefinition] = {}
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            page = await client.list_tools(cursor=cursor)
            room = MOST_TOOLS - len(found)
            if len(page.tools) > room:
                LOG.warning("tools_cut", extra={"server": self.name, "left_out": len(page.tools) - room})
            for tool in page.tools[:room]:
                definition = _definition(tool)
                if definition is None or definition.name in found:
                    LOG.warning("tool_dropped", extra={"server": self.name, "tool": quote_value(tool.name)})
                else:
                    found[definition.name] = definition
            cursor = page.next_cursor
            if cursor is None:
                break
        else:
            cut = {"server": self.name, "pages": MOST_PAGES, "tools": len(found)}
            LOG.warning("tool_pages_cut", extra=cut)
        return list(found.values())

    def _reply(self, definition: ToolDefinition, result: CallToolResult) -> ToolReply:
        name = definition.name
        texts = [part.text for part in result.content if isinstance(part, TextContent)]
        if result.is_error:
            return _fail(f"{self.name}.{name}: {_quote(' '.join(texts))}")
        document = result.structured_content
        if definition.output_schema is not None and not _fits(document, definition.output_schema):
            return _fail(f"{self.name}.{name} answered otherwise than its schema says: ask without it")
        text = visible_json(canonical_json({"text": "\n".join(texts)} if document is None else document))
        if len(text) > LONGEST_ANSWER:
            return _fail(
                f"{self.name}.{name} answered {len(text):,} characters: ask for less than {LONGEST_ANSWER:,}"
            )
        return ToolReply(text=text)

    def _warn(self, event: str, error: Exception) -> None:
        LOG.warning(event, extra={"server": self.name, "error": type(error).__name__})


def configured_tools(
    name: str, settings: PlannerSettings, environment: Mapping[str, str], pins: PinBook, **further: Any
) -> McpTools:
    """The tools of a server of the settings; `further` as of `McpTools`.

    Raises:
        ConfigError: the variable of its token is not set.
    """
    target = target_of(settings.servers[name], environment)
    return McpTools(name, target, pins, ttl_s=settings.schema_ttl_s, **further)


def target_of(server: ToolServer, environment: Mapping[str, str]) -> Any:
    """What the SDK's client connects to.

    Raises:
        ConfigError: the variable of its token is not set.
    """
    token = None if server.token_env is None else environment.get(server.token_env)
    if server.token_env is not None and not token:
        raise ConfigError(f"planner.servers: {server.token_env} is not set: set it, or leave token_env out")
    if server.url is None:
        program, *arguments = server.command
        handed = {server.token_env: token} if server.token_env and token else None
        return StdioServerParameters(command=program, args=arguments, env=handed)
    return _over_http(server.url, {} if token is None else {"authorization": f"Bearer {token}"})


def _hear_answers(target: Any) -> Any:
    """A target of which nothing but answers is heard: what a program writes to stderr is no line of ours."""
    return _over_streams(target) if isinstance(target, StdioServerParameters) else target


@asynccontextmanager
async def _over_streams(program: StdioServerParameters) -> AsyncIterator[Any]:
    """Streams to a program that is started here."""
    with open(os.devnull, "w", encoding="utf-8") as nowhere:  # noqa: ASYNC230 - it waits for nothing
        async with stdio_client(program, errlog=nowhere) as streams:
            yield streams


@asynccontextmanager
async def _over_http(url: str, headers: dict[str, str]) -> AsyncIterator[Any]:
    """Streams to a server, over a client that is closed with them."""
    async with (
        create_mcp_http_client(headers=headers) as http,
        streamable_http_client(url, http_client=http) as streams,
    ):
        yield streams


def _definition(tool: Tool) -> ToolDefinition | None:
    """A definition within bounds; None for one that no prompt could hold."""
    if TOOL_NAME.fullmatch(tool.name) is None:
        return None
    definition = ToolDefinition(
        name=tool.name,
        description=tool.description or "",
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        reads_only=None if tool.annotations is None else tool.annotations.read_only_hint,
    )
    return definition if len(definition.canonical_text()) <= LONGEST_DEFINITION else None


def _vouch_for(pinned: Iterable[ToolDefinition]) -> Definitions:
    """Definitions as they are offered: whoever pins one vouches for what it does not say, that it reads."""
    return tuple(
        item.model_copy(update={"reads_only": True}) if item.reads_only is None else item for item in pinned
    )


def _fits(document: Any, schema: Mapping[str, Any]) -> bool:
    """Whether an answer has the fields that a schema names, by plain types; what lies deeper is data."""
    required, properties = schema.get("required", ()), schema.get("properties", {})
    if not isinstance(document, dict) or not isinstance(required, Sequence):
        return False
    return all(name in document for name in required) and (
        not isinstance(properties, Mapping)
        or all(_is_of(document[name], rule) for name, rule in properties.items() if name in document)
    )


def _is_of(value: Any, rule: Any) -> bool:
    """Whether a value is of the type that a rule names; any value where it names none."""
    named = rule.get("type") if isinstance(rule, Mapping) else None
    return not isinstance(named, str) or named not in TYPES or TYPES[named](value)


def _fail(sentence: str) -> ToolReply:
    return ToolReply(text=sentence, is_error=True)


def _quote(text: str) -> str:
    """Words of another's server on one line, cut."""
    return visible(" ".join(text.split()))[:LONGEST_SAID]
