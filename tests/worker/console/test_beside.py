"""The console inside of a process that trades: one address, a thread of its own, the same end."""

import asyncio
import builtins
import socket
import threading

import httpx
import pytest

from services.store import open_store
from tests.worker.console.live_runs import stepped
from tests.worker.live.null_monitor import NullMonitor
from tests.worker.operations.asking import Shown, status
from worker.cli.options import console_at
from worker.console.app import console_app
from worker.console.beside import ConsoleThread
from worker.operations.monitoring import prepare
from worker.secrets.redaction import Redactor
from worker.settings import load_settings


def thread(folder, opened, port=0):
    settings = load_settings(None, flags={"runtime.db": ("--db", f"sqlite:///{folder}/none.db")}).settings
    return ConsoleThread(settings, prepare(settings.runtime.operations, Redactor([]), {}), port, opened)


def test_console_of_a_process_answers_for_it_and_ends_its_streams_with_it(tmp_path):
    with stepped(tmp_path) as run:
        run.to(3)
        with httpx.Client(base_url=run.url) as client:
            shown = client.get("/status").json()
            texts = [client.get(path).text for path in ("/health", "/metrics", "/ready")]
            refused = [
                client.get("/status", headers={"host": "evil.example.com"}).status_code,
                client.get("/status", headers={"origin": "https://evil.example.com"}).status_code,
                client.post("/status").status_code,
            ]
            assert client.get("/plans", headers={"accept": "text/html"}).status_code == 200
        lines = []
        opened = threading.Event()

        def read():
            with httpx.stream("GET", f"{run.url}/api/runs/latest/events", timeout=60) as response:
                for line in response.iter_lines():
                    lines.append(line)
                    opened.set()

        reading = threading.Thread(target=read)
        reading.start()
        assert opened.wait(60)
    reading.join(60)
    assert not reading.is_alive()
    assert (shown["run_id"], shown["bars_validated"]) == ("r0001", 6)
    assert texts[0] == "alive: r0001 running\n"
    assert "thinktwice_bars_validated_total 6.0" in texts[1]
    assert refused == [421, 403, 405]
    assert any(line.startswith("id: ") for line in lines)


def test_page_that_is_drawn_for_long_keeps_no_bar_waiting(tmp_path, monkeypatch):
    drawing, drawn = threading.Event(), threading.Event()

    def slow_app(*given):
        drawing.set()
        assert drawn.wait(60), "the process waited for its console"
        return console_app(*given)

    monkeypatch.setattr("worker.console.beside.console_app", slow_app)

    async def trade():
        async with await open_store(f"sqlite:///{tmp_path}/none.db", create=True):
            pass
        console = thread(tmp_path, lambda url, run_id: None)
        async with console.over(NullMonitor(lambda kind, detail: None)).around(Shown(status()), "r0001"):
            assert await asyncio.to_thread(drawing.wait, 60)
            turns = [await asyncio.sleep(0, turn) for turn in range(100)]
            drawn.set()
        return turns

    assert asyncio.run(trade()) == list(range(100))


def test_console_that_fails_is_logged_and_ends_nothing(tmp_path, capsys):
    async def trade():
        console = thread(tmp_path, lambda url, run_id: None)
        async with console.around(Shown(status()), "r0001"):
            await asyncio.sleep(0)
        return "traded on"

    assert asyncio.run(trade()) == "traded on"
    assert "console_died" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["paper", "worker"])
def test_console_whose_port_is_taken_is_refused_before_anything_is_made(shell, command):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        words = ("--feed", "replay") if command == "worker" else ()
        complaint = shell.complaint(command, *words, "--console-port", port)
    assert f"port {port}" in complaint
    assert "name another --console-port, or 0" in complaint
    assert not (shell.folder / "thinktwice.db").exists()


@pytest.mark.parametrize("words", [("paper",), ("worker", "--feed", "replay"), ("worker",)])
def test_console_without_its_package_says_in_one_line_what_to_install(shell, monkeypatch, words):
    plain = builtins.__import__

    def imported(name, *given, **named):
        if name == "fastapi":
            raise ImportError("none", name=name)
        return plain(name, *given, **named)

    monkeypatch.setattr(builtins, "__import__", imported)
    assert "pip install 'thinktwice[console]'" in shell.complaint(*words, "--console")


def test_console_of_a_process_has_the_port_of_the_command_by_default():
    assert [console_at(True, None), console_at(True, 0), console_at(False, 9_001)] == [8_766, 0, 9_001]
    assert console_at(False, None) is None


def test_console_of_a_worker_that_looks_once_is_refused(shell):
    assert "--console" in shell.complaint("worker", "--once", "--console")
