"""The certificates that are trusted are read once, and again where the environment names others."""

import ssl

import certifi
import pytest

from agents.language_models.anthropic import AnthropicModel
from agents.language_models.http_client import certificates
from agents.language_models.openai import OpenAIModel
from trading_core.tick_guard import TickGuard


@pytest.mark.parametrize("model", [AnthropicModel, OpenAIModel])
def test_models_read_the_trusted_certificates_once(model, monkeypatch):
    shared = certificates()
    assert shared.verify_mode is ssl.CERT_REQUIRED
    assert shared.check_hostname
    read = []
    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", lambda *args, **named: read.append(args))
    for name in ("one", "another"):
        model(name, api_key="key-of-a-test", guard=TickGuard()).open()
    assert read == []


def test_other_file_of_certificates_is_read(monkeypatch):
    before = certificates()
    monkeypatch.setenv("SSL_CERT_FILE", certifi.where())
    assert certificates() is not before
    assert certificates() is certificates()
