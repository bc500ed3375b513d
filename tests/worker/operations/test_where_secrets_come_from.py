"""Secrets come from the environment or from files; a file of settings with one in it is refused."""

import json

import pytest

from schemas.config import Settings
from schemas.errors import ConfigError
from worker.models import model_key
from worker.settings import load_settings

PASSWORD = "c4nary-passw0rd"
FULL = Settings.model_validate({"reflection": {"mode": "full"}, "llm": {"provider": "anthropic"}})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f'[runtime]\ndb = "postgresql://me:{PASSWORD}@host/db"\n', "runtime.db holds a password"),
        (
            f'[runtime]\ndb = "postgresql://host/db?user=me&password={PASSWORD}"\n',
            "runtime.db holds a password",
        ),
        (f'[llm]\napi_key = "{PASSWORD}"\n', "'llm.api_key' looks like a secret"),
        (
            f'anthropic_api_key = "{PASSWORD}"\n',
            "looks like a secret: give it in the environment or in a file",
        ),
        (f'[runtime.operations]\ntoken = "{PASSWORD}"\n', "'runtime.operations.token' looks like a secret"),
        (f'[runtime.operations]\nwebhook_url = "https://x/{PASSWORD}"\n', "looks like a secret"),
    ],
)
def test_file_of_settings_with_a_secret_is_refused_without_showing_it(shell, text, said):
    (shell.folder / "mine.toml").write_text(text)
    told = shell.complaint("config", "show", "mine.toml")
    assert said in told
    assert "file mine.toml" in told
    assert PASSWORD not in told


def test_store_address_comes_from_a_file_that_the_environment_names(shell, monkeypatch):
    (shell.folder / "address").write_text(f"postgresql://me:{PASSWORD}@host/db\n")
    monkeypatch.setenv("THINKTWICE_RUNTIME__DB_FILE", "address")
    shown = json.loads(shell.run("config", "show", "--json").stdout)["settings"]["runtime.db"]
    assert shown == {"value": "postgresql://me:***@host/db", "origin": "env THINKTWICE_RUNTIME__DB_FILE"}
    monkeypatch.setenv("THINKTWICE_RUNTIME__DB", "sqlite:///x.db")
    assert "THINKTWICE_RUNTIME__DB and THINKTWICE_RUNTIME__DB_FILE are both set" in shell.complaint("runs")


def test_names_of_secrets_are_no_settings_and_a_misspelt_one_is_refused():
    environment = {"THINKTWICE_OPERATIONS_TOKEN": PASSWORD, "THINKTWICE_WEBHOOK_SECRET_FILE": "x"}
    assert load_settings(environment=environment).origins == {}
    with pytest.raises(ConfigError, match="names no setting") as refused:
        load_settings(environment={"THINKTWICE_OPERATION_TOKEN": PASSWORD})
    assert PASSWORD not in str(refused.value)


def test_model_key_comes_from_the_variable_or_from_a_file(tmp_path):
    (tmp_path / "key").write_text(f"{PASSWORD}\n")
    assert model_key(FULL, {"ANTHROPIC_API_KEY": PASSWORD}) == PASSWORD
    assert model_key(FULL, {"ANTHROPIC_API_KEY_FILE": str(tmp_path / "key")}) == PASSWORD
    with pytest.raises(ConfigError, match="needs a key: set ANTHROPIC_API_KEY"):
        model_key(FULL, {})


def test_complaint_shows_no_secret_that_a_library_put_into_its_message(shell, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", PASSWORD)
    assert PASSWORD not in shell.complaint("runs", "--db", f"postgresql://{PASSWORD}")
