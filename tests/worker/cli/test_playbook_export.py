"""`playbooks export`: files that trade as what was exported."""

import json

import pytest

from schemas.canonical import ns_to_datetime
from services.playbooks.loader import EMBEDDED, load_playbooks
from tests.worker.cli.checking import run as quoted

BARS = ("--symbols", "AAPL,IBM", "--from", "2003-01-01", "--to", "2003-09-30")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def head(*words):
    done = quoted("backtest", *words, *BARS, "--json")
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)["journal"]["head_hash"]


def test_exported_playbooks_trade_as_the_embedded_the_configured_and_those_of_a_run(here):
    embedded = head()
    assert quoted("playbooks", "export", "out").exit_code == 0
    assert {path.name for path in EMBEDDED.glob("*.toml")} < {path.name for path in (here / "out").iterdir()}
    (here / "run.toml").write_text('[runtime]\nplaybooks = "out"\n')
    assert head("run.toml") == embedded
    for source in ("run.toml", "--run=r0001"):
        folder = f"out of {source}"
        assert quoted("playbooks", "export", folder, source).exit_code == 0
        (here / "other.toml").write_text(f'[runtime]\nplaybooks = "{folder}"\n')
        assert head("other.toml") == embedded, source


def test_run_is_exported_as_it_stood_at_a_time(planted):
    def exported(folder, *words):
        done = planted.run("playbooks", "export", folder, "--run", "latest", "--json", *words)
        assert done.exit_code == 0, done.stderr
        made = json.loads((planted.folder / folder / "lifecycle.json").read_text("utf-8"))
        return (
            json.loads(done.stdout)["files"],
            {episode["playbook_id"]: episode for episode in made["active"]},
            made,
        )

    rows = planted.run("journal", "latest", "--jsonl", "--kind", "playbook_version").stdout.splitlines()
    first = json.loads(rows[0])["known_at"]
    files, at_first, _ = exported("first", "--at", ns_to_datetime(first).isoformat())
    assert {version["version"] for version in at_first.values()} == {1}
    assert files == ["buys_strength.toml", "channel_breakout.toml", "mean_reversion.toml", "lifecycle.json"]
    _, at_end, made = exported("end")
    assert max(version["version"] for version in at_end.values()) > 1
    assert made["candidates"]
    assert {playbook.id: playbook.version for playbook in load_playbooks(planted.folder / "end")} == {
        name: version["version"] for name, version in at_end.items()
    }


def test_files_of_an_export_are_replaced_by_the_next(here):
    assert quoted("playbooks", "export", "out").stdout.startswith(
        "wrote 5 playbooks of the embedded strategy into out"
    )
    assert quoted("playbooks", "export", "out", "--json").exit_code == 0


def test_playbook_that_was_edited_is_not_lost_to_the_next_export(here):
    assert quoted("playbooks", "export", "mine").exit_code == 0
    edited = here / "mine" / "channel_breakout.toml"
    edited.write_text(edited.read_text("utf-8") + "# mine\n", "utf-8")
    there = {path: path.read_bytes() for path in edited.parent.iterdir()}
    refused = quoted("playbooks", "export", "mine")
    assert refused.exit_code == 2
    assert "'channel_breakout.toml' there is not as lifecycle.json says it was written" in refused.stderr
    assert "name another folder, or remove" in refused.stderr
    assert {path: path.read_bytes() for path in edited.parent.iterdir()} == there
    edited.unlink()
    assert quoted("playbooks", "export", "mine").exit_code == 0
    assert edited.exists()
