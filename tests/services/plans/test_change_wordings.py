"""Changes as people word them become the typed form that means the same; anything else stays as it is."""

import pytest

from services.plans.change_wordings import stops_whole, typed_form
from services.plans.text_forms import has_form


@pytest.mark.parametrize(
    ("said", "form"),
    [
        ("turn off squeeze breakout", "retire squeeze_breakout"),
        ("drop trend_pullback", "retire trend_pullback"),
        ("take mean_reversion out of service for now", "retire mean_reversion"),
        ("stop trading mean_reversion in down/high", "ban mean_reversion in down/high"),
        ("don't let squeeze_breakout trade in up/extreme", "ban squeeze_breakout in up/extreme"),
        ("keep mean_reversion out of the down high regime", "ban mean_reversion in down/high"),
        ("ban longs of channel_breakout in down/high", "ban channel_breakout in down/high long"),
        ("ban short channel_breakout in a downtrend", "ban short channel_breakout in a downtrend"),
        ("allow mean_reversion again in up/high", "allow mean_reversion in up/high"),
        ("lift the ban on channel breakout in down/low", "allow channel_breakout in down/low"),
        ("lower the risk of mean_reversion to 0.5%", "set the risk of mean_reversion to 0.5 %"),
        (
            "cut momentum_continuation's risk to 0.25 percent",
            "set the risk of momentum_continuation to 0.25 %",
        ),
        ("raise the stop_mult of squeeze_breakout from 2 to 2.5", "set stop_mult of squeeze_breakout to 2.5"),
        ("undo the last change to trend_pullback", "roll back trend_pullback"),
        ("roll trend_pullback back", "roll back trend_pullback"),
        ("plan again", "replan"),
    ],
)
def test_change_in_words_becomes_the_form_that_means_the_same(said, form):
    assert typed_form(said) == form
    assert has_form(form) == (form != said)


@pytest.mark.parametrize(
    "said",
    [
        "cut the risk per trade in half",
        "why was mean_reversion banned",
        "should we retire mean_reversion",
        "set the risk of mean_reversion to something lower",
        "retire mean_reversion because it loses, and tell me why",
    ],
)
def test_statement_that_leaves_something_out_or_says_more_stays_as_it_is(said):
    assert typed_form(said) == said


@pytest.mark.parametrize(
    "said", ["kill the run", "pause the run", "stop trading", "close down", "kill everything"]
)
def test_what_stops_a_run_as_a_whole_names_no_playbook(said):
    assert typed_form(said) == said
    assert stops_whole(said) == (said != "close down")


def test_stop_of_a_playbook_is_no_stop_of_the_whole():
    assert not stops_whole("stop trading trend_pullback")
    assert typed_form("kill the run_up playbook") == "retire run_up"
