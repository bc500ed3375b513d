"""Garbage is collected seldom in a process of ours, and a process that was never told is left as it is."""

import gc

import pytest

from worker.runs.garbage import COLLECT_AT, all_is_loaded, loading_begins


@pytest.fixture(autouse=True)
def _as_before():
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_all_is_loaded_after_loading_keeps_it_out_of_collections():
    loading_begins()
    all_is_loaded()
    assert gc.get_freeze_count() > 0
    assert gc.get_threshold()[0] == COLLECT_AT


def test_all_is_loaded_in_a_process_of_others_changes_nothing():
    gc.set_threshold(700)
    frozen = gc.get_freeze_count()
    all_is_loaded()
    assert (gc.get_threshold()[0], gc.get_freeze_count()) == (700, frozen)
