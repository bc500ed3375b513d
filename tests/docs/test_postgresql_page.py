"""The commands of the PostgreSQL page, line by line as they stand there, against a real server.

Only the addresses are put in: those of the page name servers that a reader has.
"""

import subprocess
from urllib.parse import urlsplit

import pytest

from tests.commands.started import on_path
from tools.docs_examples import shell_environment, shell_words
from tools.docs_pages import DOCS, fences

PAGE = DOCS / "how-to" / "use-postgresql.md"
WITH_DOCKER, OTHER_MARKET, FROM_HERE, OWN_SERVER, MOVE = (f.text for f in fences(PAGE) if f.language == "sh")
REVISION = "is at revision "


@pytest.fixture
def typed(tmp_path):
    """Runs lines of the page in one shell, with the password typed where the page reads it."""

    def run(lines, url, folder=tmp_path):
        server = urlsplit(url)
        lines = lines.replace("uv run ", "")
        for there in (
            "trader@db.example.org/thinktwice?sslmode=require",
            "thinktwice@127.0.0.1:5432/thinktwice",
        ):
            lines = lines.replace(
                there, f"{server.username}@{server.hostname}:{server.port}{server.path}{{mode}}"
            )
        lines = lines.format(mode="?sslmode=prefer") if "{mode}" in lines else lines
        done = subprocess.run(
            shell_words(f"set -e\n{lines}"),
            input=f"{server.password}\n",
            cwd=folder,
            env=shell_environment(on_path()),
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert str(server.password) not in done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done

    return run


def test_commands_for_a_server_that_one_has_make_the_tables_and_check_them(typed, postgres_url):
    done = typed(OWN_SERVER, postgres_url)
    assert done.returncode == 0, done.stderr
    assert "applied    0001 " in done.stdout
    assert REVISION in done.stdout
    assert done.stdout.endswith("checked    nothing is broken\n")


def test_server_without_encryption_is_refused_in_one_line_when_the_page_demands_it(typed, postgres_url):
    demanded = OWN_SERVER.replace("db.example.org", f"127.0.0.1:{urlsplit(postgres_url).port}")
    done = typed(demanded, postgres_url)
    assert done.returncode == 2
    [line] = done.stderr.strip().splitlines()
    assert "offers no encryption as the address demands it (sslmode)" in line


def test_commands_that_move_a_store_move_it_to_a_server_whose_database_is_empty(
    typed, fresh_postgres, tmp_path
):
    address = "\n".join(line for line in OWN_SERVER.splitlines() if "thinktwice db" not in line)
    years = (
        "thinktwice backtest --symbols AAPL --from 2004-01-01 --to 2004-12-31 --db sqlite:///thinktwice.db"
    )
    moved = typed(f"{address}\n{years} > made.txt\n{MOVE}uv run thinktwice verify latest\n", fresh_postgres())
    assert moved.returncode == 0, moved.stderr
    assert "replay     same" in moved.stdout
    again = typed(f"{OWN_SERVER}{MOVE.splitlines()[1]}\n", fresh_postgres())
    assert again.returncode == 2
    assert "restore into an empty database" in again.stderr


def test_database_of_the_containers_is_reached_from_this_machine_with_the_password_of_the_file(
    typed, postgres_url, tmp_path
):
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "db_password").write_text(f"{urlsplit(postgres_url).password}\n")
    done = typed(f"{FROM_HERE}uv run thinktwice db upgrade\n", postgres_url)
    assert (done.returncode, REVISION in done.stdout) == (0, True), done.stderr
