"""A broker, and a guard before it that refuses, with its store."""

import pytest

import thinktwice as tt
from tests.doors.brokers import LIMITS, Broker


@pytest.fixture
def broker():
    return Broker()


@pytest.fixture
def store(tmp_path):
    return tmp_path / "guard.sqlite"


@pytest.fixture
def guard(store):
    with tt.guard(LIMITS, store=f"sqlite:///{store}", mode="enforce") as opened:
        yield opened


@pytest.fixture
def shadow(store):
    with tt.guard(LIMITS, store=f"sqlite:///{store}", mode="shadow") as opened:
        yield opened
