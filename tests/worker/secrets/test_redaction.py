"""Secrets are found by their values, in every form they take, and by how they look; nothing else is lost."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from schemas.errors import ConfigError
from tests.each_case import check_each
from worker.secrets.redaction import MASK, Redactor, known_secrets, masked_webhook, redactor_of
from worker.secrets.secrets import is_secret_name, secret, strong, where_secrets_belong

CANARY = "c4nary-Value/with+signs=7"
HOOK = "https://hooks.example.com/services/T0000/B0000/abcdefghijklmnopqrst?key=0123456789abcdef0"


@check_each(
    "text",
    [
        "postgresql://me:pa55word@host/db",
        "https://user:hunter22@example.com/x",
        "Authorization: Bearer abcdef.0123456789",
        "authorization: basic dXNlcjpwYXNzd29yZA==",
        '{"api_key": "0123456789abcdef"}',
        "{'password': 'correcthorse'}",
        "x-api-key=0123456789abcdef",
        "password: 0123456789",
        "token: '0123456789'",
        "?token=0123456789abcdef&x=1",
        "sk-ant-api03-AAAAAAAAAAAAAAAAAAAAAAAA",
        "ghp_abcdefghijklmnopqrstuvwxyz0123",
        "xoxb-1234567890-abcdefghij",
        "AKIAABCDEFGHIJKLMNOP",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
        '\\"secret\\": \\"0123456789\\"',
    ],
)
def test_text_that_looks_like_a_secret_is_masked(text):
    found = Redactor().text(f"before {text} after")
    assert MASK in found
    assert found.startswith("before ")
    assert found.endswith(" after")
    secrets = (
        "pa55word",
        "hunter22",
        "0123456789",
        "correcthorse",
        "AAAAAAAA",
        "abcdefghij",
        "dXNlcj",
        "c2lnb",
    )
    assert not [name for name in secrets if name in found]


@pytest.mark.parametrize(
    "text",
    [
        "policy p0001 frozen at 2024-01-01T00:00:00Z",
        "tokens: 1234 input_tokens=99999 output 7",
        "sqlite:///thinktwice.db",
        "https://example.com:8080/path?x=1",
        "secretary of the token ring passed",
        "'x' looks like a secret: give it in a file; password: none was given",
        "breaker opened after 5 failures: retry at 12:00:00",
        '{"slot": 1704067200000000000, "r": -0.5}',
    ],
)
def test_text_without_a_secret_stays_as_it_is(text):
    assert Redactor().text(text) == text


@given(st.text(min_size=8, max_size=40).filter(lambda name: name.strip() == name and name not in "<< *** >>"))
def test_known_value_is_gone_from_text_as_it_is_and_as_python_quotes_it(value):
    reply = Redactor([value]).text(f"<< {value} >> {value!r}")
    assert value not in reply


def test_known_value_is_found_quoted_in_an_address_in_json_and_in_repr():
    value = 'a"b\\c d%é0123456789'
    redactor = Redactor([value])
    for form in (value, "a%22b%5Cc%20d%25%C3%A90123456789", '"a\\"b\\\\c d%\\u00e90123456789"', repr(value)):
        assert "0123456789" not in redactor.text(f"<{form}>")


def test_short_password_is_masked_as_a_word_and_leaves_other_words_alone():
    redactor = redactor_of({}, "postgresql://me:data@host/db")
    assert redactor.text("password data of a database") == f"password {MASK} of a database"


def test_known_secrets_come_from_variables_files_addresses_and_webhooks(tmp_path):
    (tmp_path / "key").write_text("from-a-file-0123456789\n")
    (tmp_path / "db").write_text("postgresql://me:from-db-file@host/db\n")
    found = known_secrets(
        {
            "SOME_API_KEY": "some-api-key-0123",
            "PGPASSWORD": "pg-password",
            "ANTHROPIC_API_KEY_FILE": str(tmp_path / "key"),
            "THINKTWICE_RUNTIME__DB": "postgresql://me:p%40ss@host/db?password=in-the-query",
            "THINKTWICE_RUNTIME__DB_FILE": str(tmp_path / "db"),
            "THINKTWICE_WEBHOOK_URL": HOOK,
            "OTHER_TOKEN_FILE": str(tmp_path / "absent"),
            "PWD": "/home/somebody",
            "A_KEY_NAME": "not-a-secret-here",
        },
        ["postgresql://x:as-an-option@h/d"],
    )
    assert {
        "some-api-key-0123",
        "pg-password",
        "from-a-file-0123456789",
        "p%40ss",
        "in-the-query",
        "from-db-file",
        "abcdefghijklmnopqrst",
        "0123456789abcdef0",
        "as-an-option",
    } <= found
    assert not {"/home/somebody", "not-a-secret-here"} & found
    assert "p@ss" not in Redactor(found).text("refused: p@ss")


def test_key_of_a_model_is_a_secret_from_twelve_characters_on():
    words = {"ANTHROPIC_API_KEY": "backtest", "OPENAI_API_KEY": "not-needed0"}
    assert known_secrets(words) == frozenset()
    text = "thinktwice backtest: the key is not-needed0"
    assert redactor_of(words).text(text) == text
    assert known_secrets({"OPENAI_API_KEY": "not-needed-0"}) == {"not-needed-0"}


def test_value_masks_fields_by_name_and_text_within_anything():
    redactor = Redactor([CANARY])
    masked = redactor.value(
        {
            "api_key": 12345,
            "password": None,
            "deep": [{"note": f"x{CANARY}x", "n": 1.5, "ok": True}, (SecretStr("s"),)],
            "error": ValueError(CANARY),
        }
    )
    assert masked["api_key"] == MASK
    assert masked["password"] is None
    assert masked["deep"] == [{"note": f"x{MASK}x", "n": 1.5, "ok": True}, [MASK]]
    assert CANARY not in str(masked)


def test_value_that_holds_itself_ends():
    endless: list[object] = []
    endless.append(endless)
    assert MASK in str(Redactor().value(endless))


def test_webhook_is_shown_without_its_path():
    assert masked_webhook(HOOK) == f"https://hooks.example.com/{MASK}"
    assert masked_webhook("http://u:p@127.0.0.1:99/x") == f"http://127.0.0.1:99/{MASK}"
    assert masked_webhook("http://[") == MASK
    assert masked_webhook("http://h:notaport/x") == MASK


@pytest.mark.parametrize("piece", ["a", "token=", "://", "bearer ", "eyJ", "x_", "'", "\\", "a:"])
def test_hostile_text_costs_no_more_than_its_length(piece):
    # A pattern that backtracks would take minutes for this.
    started = time.process_time()
    Redactor([CANARY]).text(piece * 50_000)
    assert time.process_time() - started < 5.0


@pytest.mark.parametrize(
    ("environment", "quoted"),
    [
        ({"X": "1", "X_FILE": "f"}, "X and X_FILE are both set"),
        ({"X_FILE": "absent"}, "X_FILE: file 'absent' cannot be read: No such file"),
        ({"X_FILE": "empty"}, "does not hold one secret on one line"),
        ({"X_FILE": "lines"}, "does not hold one secret on one line"),
        ({"X_FILE": "bytes"}, "is not UTF-8 text"),
    ],
)
def test_secret_that_cannot_be_read_is_refused_without_showing_it(environment, quoted, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "lines").write_text(f"{CANARY}\nmore\n")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe" + CANARY.encode())
    with pytest.raises(ConfigError, match=quoted) as refused:
        secret("X", environment)
    assert CANARY not in str(refused.value)
    assert refused.value.__cause__ is None or CANARY not in repr(refused.value.__cause__)


def test_secret_is_the_variable_or_the_file_or_nothing(tmp_path):
    (tmp_path / "file").write_text(f"{CANARY}\n")
    assert secret("X", {"X": CANARY}) == CANARY
    assert secret("X", {"X_FILE": str(tmp_path / "file")}) == CANARY
    assert secret("X", {"X": "", "X_FILE": ""}) is None


def test_strong_secret_is_long_and_varied():
    assert strong("c3b5a1f09e7d48260f1e8d7c6b3a5942")
    assert not strong("c3b5a1f09e7d4826")
    assert not strong("0123456789abcdef" * 4)
    assert not strong("c3b5a1f09e7d4826" * 2)
    assert not strong("abcdefghijklmnopqrstuvwxyz0123456789")
    assert not strong("a" * 64)


def test_names_of_secrets_are_known():
    for name in (
        "ANTHROPIC_API_KEY",
        "api_key",
        "llm.api_key",
        "DB_PASSWORD",
        "PGPASSWORD",
        "AWS_SECRET_ACCESS_KEY",
    ):
        assert is_secret_name(name), name
    for name in ("PWD", "max_tokens", "seed", "PATH", "tokenizer"):
        assert not is_secret_name(name), name
    assert "ANTHROPIC_API_KEY" in where_secrets_belong("llm.api_key")
