"""Secrets come from the environment or from files; a file of settings with one in it is refused."""

import json

import pytest

from schemas.errors import ConfigError
from schemas.settings import Settings
from schemas.settings.providers import model_name
from services.store.urls import parse_url
from worker.models import model_key
from worker.operations.logs import configure_logging
from worker.settings import load_settings

PASSWORD = "c4nary-passw0rd"
FULL = Settings.model_validate(
    {"reflection": {"mode": "full"}, "llm": {"model": "anthropic/claude-haiku-5-5"}}
)


@pytest.mark.parametrize(
    ("text", "quoted"),
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
def test_file_of_settings_with_a_secret_is_refused_without_showing_it(shell, text, quoted):
    (shell.folder / "mine.toml").write_text(text)
    message = shell.complaint("config", "show", "mine.toml")
    assert quoted in message
    assert "file mine.toml" in message
    assert PASSWORD not in message


def test_store_address_comes_from_a_file_that_the_environment_names(shell, monkeypatch):
    (shell.folder / "address").write_text(f"postgresql://me:{PASSWORD}@host/db\n")
    monkeypatch.setenv("THINKTWICE_RUNTIME__DB_FILE", "address")
    shown = json.loads(shell.run("config", "show", "--json").stdout)["settings"]["runtime.db"]
    assert shown == {"value": "postgresql://me:***@host/db", "origin": "env THINKTWICE_RUNTIME__DB_FILE"}
    monkeypatch.setenv("THINKTWICE_RUNTIME__DB", "sqlite:///x.db")
    assert "THINKTWICE_RUNTIME__DB and THINKTWICE_RUNTIME__DB_FILE are both set" in shell.complaint("runs")


@pytest.mark.parametrize("password", [PASSWORD, "c4nary p@ss:/?#[]%41+&=\\'\"é", "@:/"])
def test_password_of_the_store_comes_from_a_file_of_its_own_whatever_is_in_it(
    shell, tmp_path, monkeypatch, password
):
    (tmp_path / "password").write_text(f"{password}\n", "utf-8")
    monkeypatch.setenv("THINKTWICE_RUNTIME__DB", "postgresql://me@host:5432/db?sslmode=require")
    monkeypatch.setenv("THINKTWICE_DB_PASSWORD_FILE", "password")
    address = load_settings().settings.runtime.db
    server = parse_url(address).server
    assert server is not None
    assert (server.username, server.password, server.host, server.database) == ("me", password, "host", "db")
    shown = shell.run("config", "show", "--json").stdout
    assert json.loads(shown)["settings"]["runtime.db"] == {
        "value": "postgresql://me:***@host:5432/db?sslmode=require",
        "origin": "env THINKTWICE_RUNTIME__DB",
    }
    with configure_logging(load_settings().settings) as logs:
        assert logs.redactor.text(f"refused {password}, {address}").count("***") >= 2
        assert password not in logs.redactor.text(f"{password} {address}")
    assert (
        load_settings(flags={"runtime.db": ("--db", "sqlite:///x.db")}).settings.runtime.db
        == "sqlite:///x.db"
    )


@pytest.mark.parametrize(
    ("address", "quoted"),
    [
        ("postgresql://host/db", "names no user. It goes with postgresql://USER@HOST/DATABASE"),
        ("postgresql://me:c4nary-older@host/db", "holds a password already"),
    ],
    ids=["no user", "two passwords"],  # an address in an identifier is an address in the environment
)
def test_password_of_the_store_that_has_no_place_is_refused_without_showing_it(
    shell, monkeypatch, address, quoted
):
    monkeypatch.setenv("THINKTWICE_RUNTIME__DB", address)
    monkeypatch.setenv("THINKTWICE_DB_PASSWORD", PASSWORD)
    shown = shell.complaint("runs")
    assert quoted in shown
    assert PASSWORD not in shown
    assert "c4nary" not in shown


def test_names_of_secrets_are_no_settings_and_a_misspelt_one_is_refused():
    environment = {"THINKTWICE_OPERATIONS_TOKEN": PASSWORD, "THINKTWICE_WEBHOOK_SECRET_FILE": "x"}
    assert load_settings(environment=environment).origins == {}
    with pytest.raises(ConfigError, match="names no setting") as refused:
        load_settings(environment={"THINKTWICE_OPERATION_TOKEN": PASSWORD})
    assert PASSWORD not in str(refused.value)


def test_model_key_comes_from_the_variable_or_from_a_file(tmp_path):
    (tmp_path / "key").write_text(f"{PASSWORD}\n")
    claude, local, own = map(model_name, ("anthropic/claude-x", "ollama/qwen3:8b", "some-where/x"))
    assert model_key(FULL, {"ANTHROPIC_API_KEY": PASSWORD}, claude) == PASSWORD
    assert model_key(FULL, {"ANTHROPIC_API_KEY_FILE": str(tmp_path / "key")}, claude) == PASSWORD
    with pytest.raises(ConfigError, match="needs a key: set ANTHROPIC_API_KEY"):
        model_key(FULL, {}, claude)
    assert model_key(FULL, {"ANTHROPIC_API_KEY": PASSWORD}, local) == "none", "it wants no key"
    assert model_key(FULL, {"SOME_WHERE_API_KEY": PASSWORD}, own) == PASSWORD


def test_complaint_shows_no_secret_that_a_library_put_into_its_message(shell, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", PASSWORD)
    assert PASSWORD not in shell.complaint("runs", "--db", f"postgresql://{PASSWORD}")
