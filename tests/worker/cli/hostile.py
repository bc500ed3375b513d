"""Names that others chose to harm whoever prints them, and every command of the program over them.

`python -m tests.worker.cli.hostile` runs the walk in the present folder, one process for all commands; what
it prints is what they print, and after each a line with its exit code.
"""

import json
import os
import re
import shutil
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pandas as pd

from tests.services.store.stores import opened, seal_again

ESCAPE, MARKUP, LINES, TURNED = "\x1b[2JWIPED", "[/x]", "a\nerrors: 0", "\u202egnp.exe"
C1, STYLE, LONG = "\x9b2J\x1b]0;title\x07", "[bold red]:smile: x[/bold red]", "L" * 300
FOLDER = STYLE.replace("/", "-")
NAMES = (ESCAPE, MARKUP, f"{LINES} {STYLE}", f"{TURNED} {C1} {LONG}")
BANK = "faults.toml"
BARS, CONFIG, REQUEST = "bars.parquet", f"{MARKUP.replace('/', '')}\x1b[2Jrun.toml", "plan.json"
PLAYBOOKS = Path(__file__).resolve().parents[3] / "services" / "playbooks" / "definitions"
NOTE = "note.txt"
PLAN = Path(__file__).with_name("example_plan.json")
CODE, END = "exit code of", "that was"  # on stdout, and on stderr


def prepare(folder: Path) -> None:
    """Bars, a configuration, playbooks, a table of trades and a request, all with such names."""
    random = np.random.default_rng(5)
    frames = []
    for name in NAMES:
        close = 100.0 * np.exp(np.cumsum(random.normal(0.0005, 0.02, 160)))
        frame = pd.DataFrame({"open": close, "high": close * 1.01, "low": close * 0.99, "close": close})
        frames.append(
            frame.assign(
                symbol=name, volume=10.0, time=pd.date_range("2020-01-01", periods=len(frame), tz="UTC")
            )
        )
    pd.concat(frames).to_parquet(folder / BARS)
    text = json.dumps(f"{MARKUP} {ESCAPE} {C1} {TURNED}")
    (folder / "books").mkdir()
    for path in PLAYBOOKS.glob("*.toml"):
        shown = re.sub(
            r"^(title|description) = .*$",
            lambda found: f"{found[1]} = {text}",
            path.read_text("utf-8"),
            flags=re.M,
        )
        (folder / "books" / path.name).write_text(shown, "utf-8")
    (folder / CONFIG).write_text(f'[runtime]\ndata = "{BARS}"\nplaybooks = "books"\n', "utf-8")
    row = f'name = {text}\nseverity = "major"\nexpected = ["reader"]\n'
    (folder / BANK).write_text(f'[[fault]]\n{row}set = {{ "proposal.rationale" = {text} }}\n', "utf-8")
    message = f"The number of trades of {MARKUP} was 9999. {ESCAPE} {C1} {TURNED}: a good year."
    (folder / NOTE).write_text(message, "utf-8")
    rows = [
        f"{name},up/low,1d,2020-01-0{day}T00:00:00Z,2020-01-1{day}T00:00:00Z,0.{day}"
        for name in (MARKUP, STYLE, ESCAPE, TURNED)
        for day in range(1, 9)
    ]
    head = "playbook,regime,timeframe,entry_time,exit_time,r"
    (folder / "trades.csv").write_text("\n".join([head, *rows]) + "\n", "utf-8")


def walk() -> dict[tuple[str, ...], int]:
    """Every command with its arguments, and the exit code it must have."""
    bad = f"{MARKUP}{ESCAPE}{TURNED}"
    return {
        ("config", "show", CONFIG): 0,
        ("config", "show", bad): 2,
        ("init", bad): 2,
        ("init", f"begun {FOLDER}"): 0,
        ("backtest", CONFIG): 0,
        ("backtest", CONFIG, "--symbols", bad): 2,
        ("backtest", CONFIG, "--json", "--db", "sqlite:///other.db"): 0,
        ("paper", CONFIG): 0,
        ("paper", "--feed", bad): 2,
        ("status",): 0,
        ("status", "--json"): 0,
        ("status", bad): 2,
        ("runs",): 0,
        ("runs", "--json"): 0,
        ("trials",): 0,
        ("verify", "r0001"): 0,
        ("verify", "r0002", "--json"): 0,
        ("journal", "r0001", "--kind", "episode"): 0,
        ("journal", "r0001", "--kind", "policy_frozen", "--jsonl"): 0,
        ("journal", "latest", "--kind", bad): 2,
        ("why", "FILL", "--run", "r0001"): 0,
        ("why", bad, "--run", "r0001"): 2,
        ("ask", "which trades lost?", "--run", "r0001"): 0,
        ("ask", "which rules does mean_reversion have?", "--conversation", MARKUP): 0,
        ("ask", "market", "--run", "r0001", "--json"): 0,
        ("ask", "how did [/x] do?", "--run", "r0001"): 0,
        ("ask", "QUESTION", "--run", "r0001"): 3,
        ("ask", "runs"): 0,
        ("ask", "market", "--symbol", MARKUP): 0,
        ("ask", "market", "--symbol", bad): 2,
        ("ask", "playbooks", "--playbook", "mean_reversion"): 0,
        ("ask", "playbooks", "--playbook", bad): 2,
        ("ask", "trades", "--by", "symbol"): 0,
        ("ask", "trades", "--symbol", bad): 2,
        ("ask", "account", "--run", "r0001"): 0,
        ("ask", "account", "--at", bad): 2,
        ("ask", "costs", "--run", "r0001"): 0,
        ("ask", "decisions", "--symbol", ESCAPE): 0,
        ("ask", "decisions", "--symbol", bad): 2,
        ("ask", "reports", "--run", "r0001"): 0,
        ("ask", "reports", "--report", bad): 2,
        ("ask", "gate", "--playbook", bad): 2,
        ("ask", "why", "FILL"): 0,
        ("ask", "why", bad): 2,
        ("ask", "check", MARKUP, "mean_reversion", "long", "--run", "r0001"): 0,
        ("ask", "check", bad, bad, "long"): 2,
        ("ask", "rule", "close > sma_20", "--run", "r0001"): 0,
        ("ask", "rule", bad): 2,
        ("ask", bad): 2,
        ("ask", "account", "--run", bad): 2,
        ("ask", "what is proven?", "--server", bad): 2,
        ("page", "r0001", "--html", f"{FOLDER}.html"): 0,
        ("page", bad, "--html", "page.html"): 2,
        ("page", "r0001", "--html", bad): 2,
        ("report", "r0001"): 2,
        ("report", "r0001", bad): 2,
        ("reports", "r0001"): 0,
        ("reflect", "r0001"): 0,
        ("replan", "r0001"): 0,
        ("replan", bad): 2,
        ("kill", "on", "--run", "r0001"): 2,
        ("requests", "r0002"): 0,
        ("requests", bad): 2,
        ("scenarios", bad): 2,
        ("check", REQUEST): 3,
        ("check", bad): 2,
        ("check", "--example", "--playbook", bad): 2,
        ("guard", "questions"): 2,
        ("guard", "approve", bad): 2,
        ("guard", "refuse", bad): 2,
        ("guard", "serve", "--limits", bad): 2,
        ("guard", "proxy", "--limits", bad, "--", "true"): 2,
        ("schema", bad): 2,
        ("factcheck", REQUEST): 0,
        ("factcheck", NOTE, "--run", "r0001"): 1,
        ("factcheck", REQUEST, "--run", bad): 2,
        ("factcheck", bad): 2,
        ("calibration", "r0001"): 0,
        ("calibration", bad): 2,
        ("deliberate", REQUEST, "--preset", "quality", "--run", "latest"): 0,
        ("deliberate", bad, "--preset", "pass"): 2,
        ("deliberate", REQUEST, "--preset", bad): 2,
        ("deliberate", REQUEST, "--preset", "pass", "--run", bad): 2,
        ("console", "--host", bad): 2,
        ("console", "--config", bad): 2,
        ("console", "user", "list"): 0,
        ("console", "user", "remove", bad): 2,
        ("console", "user", "add", bad): 2,
        ("mcp", "--run", bad): 2,
        ("mcp", "--transport", bad): 2,
        ("mcp", "config", "--run", bad): 0,
        ("tools", "list"): 0,
        ("tools", "list", bad): 2,
        ("tools", "pin", "--server", bad): 2,
        ("gate", "trades.csv"): 0,
        ("sweep", CONFIG, "--playbook", "channel_breakout", "--random", "3", "--out", "swept"): 0,
        ("sweep", "--grid", bad): 2,
        ("sweep", "--playbook", bad): 2,
        ("gate", bad): 2,
        ("ablate", CONFIG, "--seeds", "0", "--out", "worth"): 0,
        ("faults", "r0001", "--bank", BANK, "--plans", "2"): 0,
        ("faults", bad): 2,
        ("faults", "--bank", bad): 2,
        ("worker", CONFIG, "--once", "--run", "r0001"): 0,
        ("worker", "--once", "--run", bad): 2,
        ("doctor", CONFIG): 0,
        ("doctor", bad): 1,
        ("playbooks", "list"): 0,
        ("playbooks", "history", "mean_reversion"): 0,
        ("playbooks", "history", bad): 2,
        ("playbooks", "rollback", bad, "--run", "r0001"): 2,
        ("playbooks", "export", f"books {FOLDER}", CONFIG): 0,
        ("playbooks", "export", "books of a run", "--run", "r0001"): 0,
        ("playbooks", "export", "nowhere", bad): 2,
        ("playbooks", "export", "nowhere", "--run", bad): 2,
        ("playbooks", "export", bad): 2,
        ("plans", "make", bad, "--into", "planned"): 2,
        ("plans", "make", "text", bad, "--into", "planned"): 2,
        ("plans", "make", "report", bad, "--into", "planned"): 2,
        ("plans", "make", "report", "--into", bad): 2,
        ("plans", "make", "rollback", bad, "--into", "planned"): 2,
        ("plans", "make", "set-eligibility", bad, "--regime", bad, "--ineligible", "--into", "planned"): 2,
        ("plans", "make", "replan", "--run", bad): 2,
        ("plans", "make", "set-threshold", bad, "--parameter", bad, "--value", "1", "--into", "planned"): 2,
        (
            "plans",
            "make",
            "set-invalidation",
            bad,
            "--parameter",
            bad,
            "--value",
            "1",
            "--into",
            "planned",
        ): 2,
        ("plans", "make", "open-experiment", bad, "--parameter", bad, "--value", "1", "--into", "planned"): 2,
        ("plans", "make", "set-risk-fraction", "mean_reversion", "--value", "0.003", "--into", "o"): 0,
        ("plans", "list"): 0,
        ("plans", "list", "--run", bad): 2,
        ("plans", "show", bad): 2,
        ("plans", "diff", bad): 2,
        ("plans", "edit", bad, "--drop", "1"): 2,
        ("plans", "approve", bad, "--hash", bad): 2,
        ("plans", "cancel", bad): 2,
        ("plans", "rollback", bad): 2,
        ("ask-again", bad): 2,
        ("ask-again", "r0001", "--prompt", bad): 2,
        ("ask-again", "r0001", "--export", "inspect", "evaluation"): 0,
        ("db", "upgrade"): 0,
        ("db", "check", "--full"): 0,
        ("db", "backup", f"{C1}copy.db"): 0,
        ("db", "restore", bad): 2,
        ("db", "prune", "--before", bad): 2,
        ("data", "fetch", bad, bad, "--from", "2020-01-01", "--out", f"{C1}.csv"): 2,
        ("data", "check", BARS): 0,
        ("data", "check", bad): 2,
        (bad,): 2,
    }


# Of a store in which names and ids were changed, and with them the chain.
READING = {
    ("runs",): 0,
    ("status",): 0,
    ("status", "--json"): 0,
    ("journal", "latest"): 2,
    ("why", "FILL", "--run", "r0001"): 2,
    ("reports",): 0,
    ("requests",): 0,
    ("playbooks", "list"): 2,
    ("playbooks", "history", "mean_reversion"): 2,
    ("report",): 2,
    ("db", "check", "--full"): 1,
    ("verify", "r0001"): 1,
    ("verify", "latest"): 1,
}


def tamper(path: Path) -> None:
    """Change what a store says of its runs: names, ids, symbols, words of a process and of its documents."""
    bad = f"{MARKUP}{ESCAPE}"
    with closing(opened(path)) as store, store:
        for column in ("name", "status", "mode"):
            store.execute(f"update runs set {column} = ?", (bad,))
        store.execute("update runs set environment = ?", (json.dumps({"python": bad}),))
        store.execute("update runs set document = replace(document, 'channel_breakout', ?)", (MARKUP,))
        store.execute("update journal set symbol = ?", (bad,))
        store.execute(
            "update journal set payload = replace(unpacked(payload), 'channel_breakout', ?)",
            (f"{MARKUP}\x9b2J",),
        )
        store.execute("update trading_processes set owner = ?", (bad,))
        for table in ("runs", "journal", "trading_processes", "paper_bars", "paper_orders", "savepoints"):
            store.execute(f"update {table} set run_id = ? where run_id = 'r0002'", (f"r0002{bad}",))
    seal_again(path)


def run(words: tuple[str, ...]) -> None:
    """Run one command and say how it ended."""
    from worker.cli import app

    filled = [fill_of(Path("thinktwice.db")) if word == "FILL" else word for word in words]
    try:
        app(filled)
    except SystemExit as end:
        sys.stdout.flush()
        sys.stderr.flush()
        print(f"\n{CODE} {json.dumps(words)}: {end.code}", flush=True)
        print(f"{END} {json.dumps(words)}: {end.code}", file=sys.stderr, flush=True)


def codes(printed: str) -> dict[tuple[str, ...], list[int]]:
    """The exit codes of every command, from what the walk printed."""
    found: dict[tuple[str, ...], list[int]] = {}
    for words, code in re.findall(rf"^{CODE} (\[.*\]): (\d+)$", printed, re.MULTILINE):
        found.setdefault(tuple(json.loads(words)), []).append(int(code))
    return found


def fill_of(path: Path) -> str:
    """A fill of the first run."""
    with opened(path) as store:
        found = store.execute(
            "select unpacked(payload) from journal where kind like '%_filled' limit 1"
        ).fetchone()
    return str(json.loads(found[0])["fill_id"])


def request(folder: Path) -> None:
    """A request whose symbol and words are hostile."""
    plan = json.loads(PLAN.read_text("utf-8"))
    plan["snapshot"]["symbol"] = f"{MARKUP}{ESCAPE}{LINES}"
    plan["proposal"]["conviction"] = 0.9
    (folder / REQUEST).write_text(json.dumps(plan), "utf-8")


def main() -> None:
    """Walk over all commands, then over those that read a store which was changed."""
    folder = Path.cwd()
    prepare(folder)
    request(folder)
    for words in walk():
        run(words)
    shutil.copy(folder / "thinktwice.db", folder / "tampered.db")
    tamper(folder / "tampered.db")
    os.environ["THINKTWICE_RUNTIME__DB"] = "sqlite:///tampered.db"
    for words in READING:
        run(words)


if __name__ == "__main__":
    main()
