"""The command as clients start and reach it: standard streams, HTTP with its guard, `mcp config`."""

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import asynccontextmanager, suppress

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from services.evidence.tools import TOOLS
from tests.commands.started import python, thinktwice
from tests.worker.evidence_stores import CLOCK, server_of
from worker.mcp_server.serving import HttpAddress, http_app
from worker.review import run_views
from worker.review.rule_trial import PROCESS
from worker.slow_worker.subprocess import COMMAND

TOKEN = "c3b5a1f09e7d48260f1e8d7c6b3a594271d0e2f4"
HEAVY = """
import atexit, sys
from thinktwice.__main__ import main
atexit.register(lambda: print(sorted({"numba", "pandas"} & set(sys.modules)), file=sys.stderr))
main()
"""

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


def command(stored, *words):
    return StdioServerParameters(
        command=thinktwice(),
        args=["mcp", "--db", f"sqlite:///{stored}", *words],
        env={"PYTHONPATH": os.getcwd()},
    )


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_server_over_standard_streams_lists_and_answers(stored, mode):
    async def scenario():
        async with Client(command(stored, "--run", "r0001", "--at", CLOCK), mode=mode) as client:
            tools = (await client.list_tools()).tools
            return tools, (await client.call_tool("trades", {"limit": 1})).structured_content

    tools, payload = asyncio.run(scenario())
    assert [tool.name for tool in tools] == list(TOOLS)
    assert (payload["run_id"], payload["known_at"][:10]) == ("r0001", CLOCK)


def test_server_lists_its_tools_without_numba_or_pandas(stored):
    questions = [
        INITIALIZE,
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]
    server = subprocess.Popen(
        [sys.executable, "-c", HEAVY, "mcp", "--db", f"sqlite:///{stored}"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    with server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write("".join(json.dumps(message) + "\n" for message in questions))
        server.stdin.flush()
        # Answers come in any order, and a client that hangs up before them gets none.
        answers = (json.loads(line) for line in server.stdout)
        listed = next(answer for answer in answers if answer.get("id") == 2)
        _, shown_text = server.communicate(timeout=60)
    assert [tool["name"] for tool in listed["result"]["tools"]] == list(TOOLS)
    assert (server.returncode, shown_text.strip().splitlines()[-1]) == (0, "[]")


@asynccontextmanager
async def over_http(stored, address):
    """An HTTP client of the application, without a socket."""
    async with server_of(stored) as server:
        app = http_app(server, address)
        async with app.router.lifespan_context(app):
            transport = httpx2.ASGITransport(app)
            async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8765") as http:
                yield http


LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
HEADERS = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}


def status_of(stored, address, **headers):
    async def scenario():
        async with over_http(stored, address) as http:
            return (await http.post("/mcp", json=LIST, headers={**HEADERS, **headers})).status_code

    return asyncio.run(scenario())


def test_token_host_and_origin_are_demanded(stored):
    open_to_all = HttpAddress(
        "0.0.0.0", 8765, TOKEN, hosts=("desk.example",), origins=("https://desk.example",)
    )
    bearer = {"authorization": f"Bearer {TOKEN}"}
    assert status_of(stored, open_to_all) == 401
    assert status_of(stored, open_to_all, authorization="Bearer " + TOKEN[:-1] + "0") == 401
    assert status_of(stored, open_to_all, **bearer) == 200
    assert status_of(stored, open_to_all, **bearer, host="desk.example") == 200
    assert status_of(stored, open_to_all, **bearer, host="evil.example") == 421
    assert status_of(stored, open_to_all, **bearer, origin="https://evil.example") == 403
    assert status_of(stored, open_to_all, **bearer, origin="https://desk.example") == 200
    loopback = HttpAddress("127.0.0.1", 8765, None)
    assert status_of(stored, loopback) == 200
    assert status_of(stored, loopback, host="evil.example:8765") == 421
    assert status_of(stored, loopback, origin="http://evil.example") == 403


def test_server_over_http_answers_both_protocols_with_the_token(stored):
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
    words = ["mcp", "--transport", "http", "--port", str(port), "--db", f"sqlite:///{stored}"]
    environment = {**os.environ, "THINKTWICE_MCP_TOKEN": TOKEN}
    process = subprocess.Popen([thinktwice(), *words], env=environment)
    try:
        _listening(port)

        async def scenario(mode):
            http = httpx2.AsyncClient(headers={"authorization": f"Bearer {TOKEN}"})
            async with (
                http,
                Client(
                    streamable_http_client(f"http://127.0.0.1:{port}/mcp", http_client=http), mode=mode
                ) as client,
            ):
                tools = (await client.list_tools()).tools
                return len(tools), (await client.call_tool("trades", {"limit": 1})).is_error

        for mode in ("auto", "legacy"):
            assert asyncio.run(scenario(mode)) == (len(TOOLS), False)
    finally:
        process.terminate()
        process.wait(timeout=20)


@pytest.mark.parametrize(
    ("words", "signum", "code"),
    [
        (["--transport", "http", "--port", "0"], signal.SIGINT, 130),
        (["--transport", "http", "--port", "0"], signal.SIGTERM, 143),
        ([], signal.SIGINT, 130),
    ],
)
def test_signal_ends_the_server_in_one_line(stored, words, signum, code):
    program = [thinktwice(), "mcp", "--db", f"sqlite:///{stored}", *words]
    with subprocess.Popen(
        program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        if words:
            assert "serving http://127.0.0.1:" in process.stderr.readline()
        else:
            process.stdin.write(json.dumps(INITIALIZE) + "\n")
            process.stdin.flush()
            process.stdout.readline()
        process.send_signal(signum)
        assert process.wait(timeout=30) == code
        assert process.stderr.read() == f"thinktwice: stopped by {signum.name}\n"


# Room for 16 connections.
FEW = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))
from thinktwice.__main__ import main
sys.argv[0:1] = ["thinktwice", "mcp"]
main()
"""


def test_connections_that_ask_nothing_keep_nobody_out(stored):
    words = ["--transport", "http", "--port", "0", "--db", f"sqlite:///{stored}"]
    with subprocess.Popen([python(), "-c", FEW, *words], stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            url = process.stderr.readline().split()[2]
            port = int(url.rpartition(":")[2].partition("/")[0])
            silent = [socket.create_connection(("127.0.0.1", port), timeout=30) for _ in range(40)]
            for held in silent:
                held.sendall(b"POST /mcp HTTP/1.1\r\n")
            accept = {"accept": "application/json, text/event-stream"}
            assert httpx2.post(url, json=INITIALIZE, headers=accept, timeout=30).status_code == 200
            for held in silent:  # each is closed
                with held, suppress(ConnectionResetError):
                    assert held.recv(1) == b""
        finally:
            process.terminate()


def test_port_that_is_taken_is_told_with_the_next_step(shell, stored):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        reply = shell.complaint("mcp", "--transport", "http", "--port", port, "--db", f"sqlite:///{stored}")
    assert f"cannot listen on '127.0.0.1' port {port}: Address already in use; name another --port" in reply


def _listening(port):
    until = time.monotonic() + 30
    while time.monotonic() < until:
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError("the server does not listen")


def test_bad_input_is_one_line_before_anything_is_served(shell, stored):
    db = f"sqlite:///{stored}"
    reached = shell.complaint("mcp", "--transport", "http", "--host", "0.0.0.0", "--db", db)
    assert (
        "--host '0.0.0.0' is reached by others: set THINKTWICE_MCP_TOKEN or THINKTWICE_MCP_TOKEN_FILE"
        in reached
    )
    assert "no run 'r9'" in shell.complaint("mcp", "--run", "r9", "--db", db)
    assert "had begun at no bar by that time" in shell.complaint("mcp", "--at", "1990-01-01", "--db", db)
    assert "--at 'soon' is not a time" in shell.complaint("mcp", "--at", "soon", "--db", db)
    assert "'ftp' is not one of 'stdio', 'http'" in shell.complaint("mcp", "--transport", "ftp", "--db", db)
    assert "there is no store" in shell.complaint("mcp")
    assert "--db stands before config: give it behind it" in shell.complaint("mcp", "--db", db, "config")
    for option in ("--allow-host", "--allow-origin", "--host", "--port"):
        shown = shell.complaint("mcp", "--db", db, option, "8080" if option == "--port" else "localhost")
        assert f"{option} is of HTTP: give --transport http, too" in shown


def test_weak_token_and_missing_extra_are_refused(shell, stored, monkeypatch):
    monkeypatch.setenv("THINKTWICE_MCP_TOKEN", "short")
    assert "THINKTWICE_MCP_TOKEN is too weak" in shell.complaint(
        "mcp", "--transport", "http", "--db", f"sqlite:///{stored}"
    )
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "pip install 'thinktwice[mcp]'" in shell.complaint("mcp", "--db", f"sqlite:///{stored}")


def test_printed_configuration_starts_the_server(shell, stored):
    shutil.copy(stored, shell.folder / "thinktwice.db")
    printed = json.loads(shell.run("mcp", "config", "--run", "latest", "--at", CLOCK).stdout)
    entry = printed["mcpServers"]["thinktwice"]
    at = entry["args"].index("--db")
    assert entry["args"][at : at + 2] == ["--db", f"sqlite:///{shell.folder}/thinktwice.db"]

    async def scenario():
        server = StdioServerParameters(command=entry["command"], args=entry["args"], cwd="/")
        async with Client(server) as client:
            return (await client.call_tool("trades", {"limit": 1})).structured_content["known_at"]

    assert asyncio.run(scenario()).startswith(CLOCK)


def test_connection_that_the_command_opens_cannot_write(shell, stored, monkeypatch):
    refused, opened = [], run_views.open_views

    async def tried(store, run, at):
        with pytest.raises(DBAPIError, match=r"readonly|attempt to write"):
            async with store._engine.begin() as connection:
                await connection.execute(text("update runs set name = 'mine'"))
        refused.append(store.url)
        return await opened(store, run, at)

    async def left(server):
        """The client is gone already."""

    monkeypatch.setattr(run_views, "open_views", tried)
    monkeypatch.setattr("worker.mcp_server.serving.serve_stdio", left)
    assert shell.run("mcp", "--db", f"sqlite:///{stored}").exit_code == 0
    assert refused == [f"sqlite:///{stored}"]


def test_packages_of_the_folder_that_a_client_works_in_are_not_run(shell, tmp_path):
    for name in ("worker", "services", "schemas"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("open('ran', 'w').close()\n", "utf-8")
    entry = json.loads(shell.run("mcp", "config").stdout)["mcpServers"]["thinktwice"]
    for command in ([entry["command"], *entry["args"][:3], "--help"], [*PROCESS, "--help"], [*COMMAND]):
        subprocess.run(command, cwd=tmp_path, input="", capture_output=True, text=True, timeout=60)
        assert not (tmp_path / "ran").exists(), command


def test_configuration_holds_no_password(shell):
    result = shell.run("mcp", "config", "--db", "postgresql://me:hunter22@db.example/trading?ssl=require")
    assert "hunter22" not in result.output
    assert "postgresql://me@db.example/trading?ssl=require" in result.stdout
    assert "THINKTWICE_DB_PASSWORD" in result.stderr
    web = json.loads(shell.run("mcp", "config", "--transport", "http", "--host", "10.0.0.7").stdout)[
        "mcpServers"
    ]
    assert web["thinktwice"]["url"] == "http://10.0.0.7:8765/mcp"
    assert web["thinktwice"]["headers"] == {"Authorization": "Bearer ${THINKTWICE_MCP_TOKEN}"}


def test_line_that_is_no_message_is_answered_and_the_next_one_heard(stored):
    words = [thinktwice(), "mcp", "--db", f"sqlite:///{stored}"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        lines = [
            json.dumps(INITIALIZE),
            "{nonsense",
            "[1]",
            json.dumps({"jsonrpc": "2.0", "id": 2, "method": "ping"}),
        ]
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write("".join(f"{line}\n" for line in lines))
        server.stdin.flush()
        answers = [json.loads(server.stdout.readline()) for _ in lines]
        server.stdin.close()
    assert sorted(str(answer["id"]) for answer in answers) == ["1", "2", "None", "None"]  # in any order
    errors = [answer["error"] for answer in answers if answer["id"] is None]
    assert [error["code"] for error in errors] == [-32700, -32700]
