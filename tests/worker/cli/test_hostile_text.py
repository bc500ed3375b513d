"""Every command over hostile names: none of them acts on a terminal or passes a pipe, and none ends it."""

import ast
import re

import pytest
import typer

from tests.commands.started import python, run_to_end
from tests.worker.cli import hostile
from tests.worker.cli.terminals import UNSEEN, in_terminal
from tools.docs_pages import ROOT
from worker.cli import app
from worker.cli.printing import print_document, print_json, print_line
from worker.pages.text_parts import rows_table

WORDS = ["-m", "tests.worker.cli.hostile"]
# As they are to be read: markup as it is, what acts on a terminal written out.
READABLE = ("[/x]", r"\x1b[2JWIPED", r"a\nerrors: 0", r"\u202egnp.exe", r"\x9b2J\x1b]0;title\x07", ":smile:")


def demand_codes(printed: str) -> None:
    expected = {words: [code] for words, code in hostile.walk().items()}
    for words, code in hostile.READING.items():
        expected.setdefault(words, []).append(code)
    assert hostile.codes(printed) == expected


def demand_readable(printed: str) -> None:
    assert "MarkupError" not in printed
    for name in READABLE:
        assert name in printed, name


def test_every_command_shows_hostile_names_in_a_terminal_and_obeys_none(tmp_path):
    seen = in_terminal(["python", *WORDS], tmp_path, columns=200)
    seen.demand_clean()
    assert seen.code == 0, seen.end
    demand_codes(seen.text)
    demand_readable(seen.text)


def test_every_command_shows_hostile_names_in_a_pipe_and_passes_none_on(tmp_path):
    done = run_to_end([python(), *WORDS], tmp_path)
    assert done.returncode == 0, done.stderr[-3_000:]
    demand_codes(done.stdout)
    demand_readable(done.stdout)
    # `journal --jsonl` in a pipe is the stored text byte for byte: JSON, in which no control character is.
    lines = [line for line in done.stdout.splitlines(keepends=True) if not line.startswith('{"seq":')]
    for printed in ("".join(lines), done.stderr):
        found = UNSEEN.search(printed)
        assert found is None, repr(printed[found.start() - 500 : found.end()] if found else "")
    assert "\x1b" not in done.stdout
    pages = [*tmp_path.rglob("*.html"), *tmp_path.rglob("*.md")]
    assert pages, "ablate writes them"
    assert [path.name for path in pages if UNSEEN.search(path.read_text("utf-8"))] == []
    assert "Traceback" not in done.stderr
    for reply, code in complaints(done.stderr):
        assert code != "2" or reply.count("\n") == 1, reply


def complaints(printed: str) -> list[tuple[str, str]]:
    """What each command wrote on stderr, and its exit code; how far it is, it tells every five seconds."""
    printed = re.sub(r"^\[\d+:\d\d\] .*\n", "", printed, flags=re.MULTILINE)
    parts = re.split(rf"^{hostile.END} \[.*\]: (\d+)\n", printed, flags=re.MULTILINE)
    return list(zip(parts[::2], parts[1::2], strict=False))


def test_walk_over_hostile_names_covers_every_command():
    def leaves(command: object, path: tuple[str, ...] = ()) -> set[tuple[str, ...]]:
        below = getattr(command, "commands", None)
        if below is None:
            return {path}
        return {leaf for name, inner in below.items() for leaf in leaves(inner, (*path, name))}

    walked = {words[:k] for words in hostile.walk() for k in (1, 2, 3)}
    assert leaves(typer.main.get_command(app)) <= walked


def test_commands_have_no_way_to_print_but_the_console():
    """Raw text reaches a terminal through these calls; they stand in the modules that make it readable."""
    allowed = {"printing.py", "screen.py", "progress.py", "bar.py"}
    found = [
        f"{path.name}: {ast.unparse(node)}"
        for path in (ROOT / "worker" / "cli").glob("*.py")
        if path.name not in allowed
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and _prints(node)
    ]
    assert found == []


def _prints(node: ast.Call) -> bool:
    called = ast.unparse(node.func)
    ways = {"print", "typer.echo", "typer.secho", "sys.stdout.write", "sys.stderr.write"}
    markup = any(keyword.arg == "markup" for keyword in node.keywords)
    return called in ways or called.endswith((".from_markup", "Console")) or markup


@pytest.mark.parametrize("text", [hostile.ESCAPE, hostile.LINES, hostile.TURNED, hostile.C1])
def test_text_that_acts_on_a_terminal_is_written_out_wherever_it_is_put(text, capsys):
    print_document({}, False, lambda _: [text, (text, text), rows_table([{text: text}], [text])])
    print_line(text)
    print_json({text: text})
    printed = capsys.readouterr().out
    assert UNSEEN.search(printed) is None, repr(printed)
