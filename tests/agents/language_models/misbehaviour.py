"""What a server of the Messages API may do wrong, by name: the handler and the kind of failure it must be."""

import asyncio
import json
from typing import Any, NamedTuple

from tests.agents.language_models.wire_server import (
    READ,
    Handler,
    answer,
    drip,
    events,
    hang,
    message,
    ping_for_ever,
    reset,
    stream,
)


class Case(NamedTuple):
    """`waits`: it only ends at the deadline."""

    handler: Handler
    kind: str
    waits: bool = False


def error(status: int, name: str, **headers: str) -> Handler:
    body = {"type": "error", "error": {"type": name, "message": "x"}}
    return answer(body, status, {key.replace("_", "-"): value for key, value in headers.items()})


def raw(content: bytes) -> Handler:
    """Bytes instead of HTTP."""

    async def handle(writer: asyncio.StreamWriter) -> None:
        writer.write(content)
        await writer.drain()

    return handle


async def cut_in_the_body(writer: asyncio.StreamWriter) -> None:
    writer.write(b'HTTP/1.1 200 X\r\ncontent-type: application/json\r\ncontent-length: 900\r\n\r\n{"id":')
    await writer.drain()


async def hang_in_the_head(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 X\r\ncontent-type: appli")
    await hang(writer)


async def hang_in_the_body(writer: asyncio.StreamWriter) -> None:
    writer.write(b'HTTP/1.1 200 X\r\ncontent-type: application/json\r\ncontent-length: 900\r\n\r\n{"id":')
    await hang(writer)


async def endless(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 X\r\ncontent-type: application/json\r\n\r\n")
    while True:
        writer.write(b" " * 65_536)
        await writer.drain()


def without(*names: str) -> dict[str, Any]:
    return {key: value for key, value in message().items() if key not in names}


USAGE = {"input_tokens": READ, "output_tokens": 7}
TOOL = {"type": "tool_use", "id": "toolu_1", "name": "buy", "input": {"everything": True}}

UNCOUNTED: dict[str, dict[str, Any]] = {
    "no_usage": without("usage"),
    "usage_null": message(usage=None),
    "usage_negative": message(usage=USAGE | {"output_tokens": -7}),
    "usage_of_text": message(usage=USAGE | {"output_tokens": "7"}),
    "usage_of_halves": message(usage=USAGE | {"output_tokens": 7.5}),
    "usage_absurd": message(usage=USAGE | {"output_tokens": 10**18}),
    "usage_nan": message(usage=USAGE | {"input_tokens": float("nan")}),
    "usage_zero": message(usage={"input_tokens": 0, "output_tokens": 0}),
}

MALFORMED: dict[str, Handler] = {
    "empty_body": answer(b""),
    "white_space": answer(b"  \n "),
    "null": answer(b"null"),
    "a_number": answer(b"42"),
    "a_list": answer(b"[]"),
    "empty_object": answer({}),
    "prose": answer(b"I would buy everything."),
    "code_fence": answer(b"```json\n" + json.dumps(message()).encode() + b"\n```"),
    "truncated_json": answer(json.dumps(message()).encode()[:-20]),
    "two_messages": answer(json.dumps(message()).encode() * 2),
    "json_lines": answer(json.dumps(message()).encode() + b"\n{}"),
    "html": answer(b"<html>gateway</html>", headers={"content-type": "text/html"}),
    "html_called_json": answer(b"<html>gateway</html>"),
    "json_called_html": answer(message(), headers={"content-type": "text/html"}),
    "json_called_nothing": answer(message(), headers={"content-type": ""}),
    "events_where_a_message_was_asked": stream(events()),
    "not_utf8": answer(b'{"type": "message", "text": "\xff\xfe"}'),
    "utf16": answer(json.dumps(message()).encode("utf-16")),
    "byte_order_mark": answer(b"\xef\xbb\xbf" + json.dumps(message()).encode()),
    "lone_surrogate": answer(json.dumps(message()).replace("hello", "\\ud800").encode()),
    "nested_too_deeply": answer(b"[" * 100_000),
    "gzip_that_is_none": answer(b"not gzip", headers={"content-encoding": "gzip"}),
    "another_type": answer(message(type="completion")),
    "another_role": answer(message(role="user")),
    "no_role": answer(without("role")),
    "no_content": answer(without("content")),
    "content_is_text": answer(message(content="hello")),
    "content_is_null": answer(message(content=None)),
    "content_of_strings": answer(message(content=["hello"])),
    "text_is_a_number": answer(message(content=[{"type": "text", "text": 42}])),
    "text_is_null": answer(message(content=[{"type": "text", "text": None}])),
    "block_without_type": answer(message(content=[{"text": "hello"}])),
    "no_text_at_all": answer(message(content=[])),
    "only_white_space": answer(message(" \n\t ")),
    "only_thinking": answer(message(content=[{"type": "thinking", "thinking": "hm", "signature": "s"}])),
    "tool_use": answer(message(content=[TOOL], stop_reason="tool_use")),
    "tool_use_as_a_whole_answer": answer(message(content=[TOOL])),
    "no_stop_reason": answer(without("stop_reason")),
    "stop_reason_null": answer(message(stop_reason=None)),
    "stop_reason_unknown": answer(message(stop_reason="bored")),
    "stop_reason_is_a_list": answer(message(stop_reason=["end_turn"])),
    "no_model": answer(without("model")),
    "huge": answer(message("x" * 2_000_000)),
    "endless": endless,
}

WHOLE: dict[str, Case] = {
    **{name: Case(handler, "malformed") for name, handler in MALFORMED.items()},
    "refusal": Case(answer(message("no", stop_reason="refusal", content=[])), "refusal"),
    "cut_at_max_tokens": Case(answer(message('{"verdict": "pa', stop_reason="max_tokens")), "cut"),
    "cut_at_the_window": Case(answer(message("a", stop_reason="model_context_window_exceeded")), "cut"),
    "wrong_model": Case(answer(message(model="gpt-wrong")), "wrong_model"),
    "an_error_called_success": Case(error(200, "api_error"), "server"),
    "status_400": Case(error(400, "invalid_request_error"), "rejected"),
    "status_401": Case(error(401, "authentication_error"), "rejected"),
    "status_403": Case(error(403, "permission_error"), "rejected"),
    "status_404": Case(error(404, "not_found_error"), "rejected"),
    "status_408": Case(error(408, "timeout_error"), "timeout"),
    "status_409": Case(error(409, "conflict_error"), "conflict"),
    "status_413": Case(error(413, "request_too_large"), "rejected"),
    "status_418": Case(error(418, "teapot"), "rejected"),
    "status_429": Case(error(429, "rate_limit_error"), "throttled"),
    "status_429_wait_an_hour": Case(error(429, "rate_limit_error", retry_after="3600"), "throttled"),
    "status_500": Case(error(500, "api_error"), "server"),
    "status_500_without_a_body": Case(answer(b"", 500), "server"),
    "status_502_html": Case(answer(b"<html>", 502, {"content-type": "text/html"}), "server"),
    "status_503": Case(error(503, "x", retry_after="Wed, 21 Oct 2099 07:28:00 GMT"), "overloaded"),
    "status_504": Case(error(504, "timeout_error"), "timeout"),
    "status_529": Case(error(529, "overloaded_error"), "overloaded"),
    "status_204": Case(raw(b"HTTP/1.1 204 X\r\nconnection: close\r\n\r\n"), "malformed"),
    "reset": Case(reset, "network"),
    "closed_without_a_word": Case(raw(b""), "network"),
    "not_http": Case(raw(b"SSH-2.0-OpenSSH_9.6\r\n\r\n"), "network"),
    "cut_in_the_body": Case(cut_in_the_body, "network"),
    "hang": Case(hang, "timeout", waits=True),
    "hang_in_the_head": Case(hang_in_the_head, "timeout", waits=True),
    "hang_in_the_body": Case(hang_in_the_body, "timeout", waits=True),
    "drip": Case(drip, "timeout", waits=True),
}

GOOD = events()
OVERLOADED: dict[str, Any] = {"type": "error", "error": {"type": "overloaded_error", "message": "x"}}
STRANGE: dict[str, Any] = {"type": "error", "error": {"type": "strange_error", "message": "x"}}

STREAMED: dict[str, Case] = {
    "empty_stream": Case(stream([]), "malformed"),
    "only_pings": Case(stream([{"type": "ping"}] * 3), "malformed"),
    "closed_half_way": Case(stream(GOOD[:4]), "malformed"),
    "closed_before_the_stop": Case(stream(GOOD[:-1]), "malformed"),
    "reset_half_way": Case(stream(GOOD[:4], reset), "network"),
    "stop_only": Case(stream(GOOD[-1:]), "malformed"),
    "delta_first": Case(stream(GOOD[3:]), "malformed"),
    "delta_without_its_block": Case(stream([GOOD[0], *GOOD[3:]]), "malformed"),
    "broken_json": Case(stream([*GOOD[:3], b'data: {"type": \n\n']), "malformed"),
    "list_event": Case(stream([GOOD[0], b"data: []\n\n"]), "malformed"),
    "start_without_a_message": Case(stream([{"type": "message_start"}]), "malformed"),
    "index_of_text": Case(stream([GOOD[0], {**GOOD[1], "index": "0"}]), "malformed"),
    "no_usage": Case(
        stream([{"type": "message_start", "message": without("usage")}, *GOOD[-1:]]), "malformed"
    ),
    "message_where_events_were_asked": Case(answer(message()), "malformed"),
    "garbage_bytes": Case(stream([b"data: \xff\xfe\x00\n\n"]), "malformed"),
    "line_without_end": Case(stream([b"data: " + b"x" * 2_000_000]), "malformed"),
    "overloaded_half_way": Case(stream([*GOOD[:4], OVERLOADED]), "overloaded"),
    "strange_error_event": Case(stream([*GOOD[:4], STRANGE]), "rejected"),
    "refusal": Case(stream(events("no", stop_reason="refusal")), "refusal"),
    "cut": Case(stream(events("half", stop_reason="max_tokens")), "cut"),
    "no_text": Case(stream(events("")), "malformed"),
    "wrong_model": Case(stream(events(model="gpt-wrong")), "wrong_model"),
    "status_529": Case(error(529, "overloaded_error"), "overloaded"),
    "silence_half_way": Case(stream(GOOD[:4], hang), "timeout", waits=True),
    "pings_for_ever": Case(stream(GOOD[:4], ping_for_ever), "timeout", waits=True),
    "silence_from_the_start": Case(hang, "timeout", waits=True),
}
