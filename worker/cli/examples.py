"""Examples of every command, as its help shows them: lines to type, the plainest first.

`BARS.csv` and the like stand for a file of yours, words in capitals for an id that another command lists.
"""

from collections.abc import Sequence
from typing import Any

EXAMPLES: dict[str, Sequence[str]] = {
    "": ("thinktwice backtest", "thinktwice init demo", "thinktwice why FILL"),
    "init": ("thinktwice init demo",),
    "backtest": (
        "thinktwice backtest",
        "thinktwice backtest --data BARS.csv --tz UTC --symbols AAPL,IBM",
        "thinktwice backtest thinktwice.toml --out results",
    ),
    "paper": (
        "thinktwice paper --symbols AAPL",
        "thinktwice paper --feed csv --data BARS.csv",
        "thinktwice paper thinktwice.toml --feed ccxt:kraken --symbols BTC/USD --timeframe 1h",
    ),
    "worker": (
        "thinktwice worker --feed csv --data BARS.csv",
        "thinktwice worker --run latest",
        "thinktwice worker --run latest --once --at 2004-06-30",
    ),
    "guard": (
        "thinktwice guard --limits guard.toml --mode enforce -- python broker_server.py",
        "thinktwice guard questions --db sqlite:///guard.sqlite",
    ),
    "guard proxy": ("thinktwice guard proxy --limits guard.toml -- python broker_server.py",),
    "guard serve": ("thinktwice guard serve --limits guard.toml --mode enforce",),
    "guard questions": ("thinktwice guard questions --db sqlite:///guard.sqlite",),
    "guard approve": ("thinktwice guard approve HASH --db sqlite:///guard.sqlite",),
    "guard refuse": ("thinktwice guard refuse HASH --db sqlite:///guard.sqlite",),
    "status": ("thinktwice status", "thinktwice status r0001 --json"),
    "kill": ("thinktwice kill on", "thinktwice kill off --run r0001"),
    "requests": ("thinktwice requests",),
    "runs": ("thinktwice runs", "thinktwice runs --db sqlite:///other.db --json"),
    "journal": (
        "thinktwice journal --kind entry_filled --kind exit_filled",
        "thinktwice journal latest --until 2004-06-30 --jsonl",
    ),
    "verify": ("thinktwice verify", "thinktwice verify r0001 --data moved/BARS.csv"),
    "why": ("thinktwice why FILL", "thinktwice journal --kind exit_filled  # lists the fills"),
    "report": ("thinktwice report", "thinktwice report latest REPORT --html report.html"),
    "reports": ("thinktwice reports", "thinktwice reports r0001"),
    "page": ("thinktwice page --html page.html", "thinktwice page r0001 --html page.html --open"),
    "playbooks": ("thinktwice playbooks list", "thinktwice playbooks export my_playbooks"),
    "playbooks export": (
        "thinktwice playbooks export my_playbooks",
        "thinktwice playbooks export learnt --run latest --at 2004-06-30",
        "thinktwice playbooks export copy thinktwice.toml",
    ),
    "playbooks list": ("thinktwice playbooks list",),
    "playbooks history": ("thinktwice playbooks history squeeze_breakout",),
    "playbooks rollback": ("thinktwice playbooks rollback squeeze_breakout --write my_playbooks",),
    "plans": ("thinktwice plans list", "thinktwice plans show PLAN"),
    "plans make": (
        "thinktwice plans make set-risk-fraction squeeze_breakout --value 0.0025 --into books",
        "thinktwice plans make report --into books",
    ),
    "plans make report": ("thinktwice plans make report REPORT --into books",),
    "plans make text": (
        'thinktwice plans make text "halve the risk of squeeze_breakout" --config model.toml --into books',
    ),
    "plans make set-eligibility": (
        "thinktwice plans make set-eligibility squeeze_breakout --regime up/low --ineligible --into books",
    ),
    "plans make set-threshold": (
        "thinktwice plans make set-threshold channel_breakout --parameter reward --value 2 --into books",
    ),
    "plans make set-invalidation": (
        "thinktwice plans make set-invalidation channel_breakout --parameter failure_atr --value 1 --into b",
    ),
    "plans make set-risk-fraction": (
        "thinktwice plans make set-risk-fraction squeeze_breakout --value 0.0025 --into books",
    ),
    "plans make replan": ("thinktwice plans make replan --run r0001",),
    "plans make open-experiment": (
        "thinktwice plans make open-experiment channel_breakout --parameter reward --value 2 --run r0001",
    ),
    "plans make rollback": ("thinktwice plans make rollback squeeze_breakout --into books",),
    "plans list": ("thinktwice plans list", "thinktwice plans list --run latest --state awaiting_approval"),
    "plans show": ("thinktwice plans show PLAN",),
    "plans diff": ("thinktwice plans diff PLAN",),
    "plans edit": (
        "thinktwice plans edit PLAN --set steps.1.value=0.003",
        "thinktwice plans edit PLAN --drop 2",
    ),
    "plans approve": ("thinktwice plans approve PLAN --hash HASH",),
    "plans cancel": ("thinktwice plans cancel PLAN",),
    "plans rollback": ("thinktwice plans rollback PLAN",),
    "ask": (
        "thinktwice ask trades --outcome lost --by playbook",
        'thinktwice ask "why did squeeze_breakout lose?"',
        'thinktwice ask "what does IBM look like?" --run r0001 --at 2008-06-30',
    ),
    "ask account": ("thinktwice ask account --at 2004-06-30",),
    "ask check": ("thinktwice ask check IBM squeeze_breakout long --stop 'close - 2 * atr_14'",),
    "ask costs": ("thinktwice ask costs --run r0001",),
    "ask decisions": ("thinktwice ask decisions --symbol IBM",),
    "ask gate": ("thinktwice ask gate --playbook squeeze_breakout",),
    "ask market": ("thinktwice ask market --symbol IBM",),
    "ask playbooks": ("thinktwice ask playbooks --playbook squeeze_breakout",),
    "ask reports": ("thinktwice ask reports --limit 3",),
    "ask rule": ("thinktwice ask rule 'crosses_above(sma_10, sma_30)' --symbol IBM",),
    "ask runs": ("thinktwice ask runs",),
    "ask trades": ("thinktwice ask trades --symbol IBM --period 2004",),
    "ask why": ("thinktwice ask why FILL",),
    "reflect": ("thinktwice reflect", "thinktwice reflect latest --at 2004-06-30 --out results"),
    "replan": ("thinktwice replan", "thinktwice replan latest --write new_playbooks"),
    "check": ("thinktwice check --example > plan.json", "thinktwice check plan.json"),
    "factcheck": ("thinktwice factcheck note.txt", "thinktwice factcheck - --run r0001 < note.txt"),
    "calibration": ("thinktwice calibration",),
    "deliberate": (
        "thinktwice deliberate note.txt --preset pass",
        'thinktwice deliberate note.txt --preset quality --question "What went wrong?"',
    ),
    "console": ("thinktwice console", "thinktwice console --port 8766 --config model.toml"),
    "console user": ("thinktwice console user list",),
    "console user add": ("thinktwice console user add ann --role operator",),
    "console user list": ("thinktwice console user list",),
    "console user remove": ("thinktwice console user remove ann",),
    "mcp": ("thinktwice mcp", "thinktwice mcp --transport http --port 8765 --run latest"),
    "mcp config": ("thinktwice mcp config",),
    "tools": ("thinktwice tools list",),
    "tools list": ("thinktwice tools list", "thinktwice tools list thinktwice.toml --server desk"),
    "tools pin": ("thinktwice tools pin thinktwice.toml --server desk",),
    "gate": (
        "thinktwice gate TRADES.csv --tz UTC --trials 20",
        "thinktwice gate TRADES.csv --looks monthly --playbooks my_playbooks",
    ),
    "faults": ("thinktwice faults", "thinktwice faults latest --least 0.9 --bank FAULTS.toml"),
    "sweep": (
        "thinktwice sweep --playbook channel_breakout --random 50",
        "thinktwice sweep thinktwice.toml --grid GRID.toml --out results",
    ),
    "ablate": (
        "thinktwice ablate --symbols AAPL,IBM",
        "thinktwice ablate --from 2004-01-01 --to 2006-12-31 --seeds 5 --out results",
    ),
    "trials": ("thinktwice trials", "thinktwice trials --pbo"),
    "scenarios": ("thinktwice scenarios",),
    "ask-again": (
        "thinktwice ask-again latest --samples 5",
        "thinktwice ask-again --prompt my_prompt.md --config other_model.toml --limit 20",
        "thinktwice ask-again r0001 --export inspect evaluation",
    ),
    "doctor": ("thinktwice doctor", "thinktwice doctor thinktwice.toml --feed ccxt:kraken --network"),
    "config": ("thinktwice config show",),
    "config show": ("thinktwice config show", "thinktwice config show thinktwice.toml"),
    "db": ("thinktwice db check", "thinktwice db backup copy.db"),
    "db upgrade": ("thinktwice db upgrade --db sqlite:///thinktwice.db",),
    "db check": ("thinktwice db check", "thinktwice db check --full"),
    "db prune": ("thinktwice db prune latest --before 2012-01-01",),
    "db backup": ("thinktwice db backup copy.db",),
    "db restore": ("thinktwice db restore copy.db --db sqlite:///restored.db",),
    "data": (
        "thinktwice data check BARS.csv --tz UTC",
        "thinktwice data fetch kraken BTC/USD --from 2024-01-01 --out btc.csv",
    ),
    "data fetch": (
        "thinktwice data fetch kraken BTC/USD --from 2024-01-01 --out btc.csv",
        "thinktwice data fetch yahoo AAPL --from 2015-01-01 --out aapl.csv",
        "thinktwice data fetch binance BTC/USDT ETH/USDT --timeframe 1d --from 2020-01-01 --out days.parquet",
    ),
    "data check": ("thinktwice data check BARS.csv --tz UTC",),
    "schema": ("thinktwice schema", "thinktwice schema PolicyLevelReflectionRequest"),
}


def write_examples(words: str, formatter: Any) -> None:
    """Write the lines of a command below a heading, each whole however narrow the terminal is.

    Args:
        words: of the command, with blanks between; empty for the program.
        formatter: what help is written to.
    """
    if words in EXAMPLES:
        with formatter.section("Examples"):
            for line in EXAMPLES[words]:
                formatter.write(f"{'':>{formatter.current_indent}}{line}\n")
