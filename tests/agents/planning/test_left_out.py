"""Nothing of a question is dropped in silence: it is answered, told in the first line, or asked back."""

import asyncio
import re

import pytest

from agents.planning.rule_planner import RulePlanner
from agents.planning.unmet_filters import unmet
from schemas.settings.planner import OWN
from services.ports import EvidenceQuestion
from tests.agents.planning.fakes import CONTEXT, OWN_TOOLS

# A question, the words of it that no tool takes, and what is left without them.
UNMET = {
    "trades of IBM above 100": ("above 100", "trades of IBM"),
    "trades of IBM from 100 to 120": ("from 100 to 120", "trades of IBM"),
    "profit of 500": ("profit of 500", None),
    "trades with a profit of more than 500": ("with a profit of more than 500", "trades"),
    "which trades lost more than 2R?": ("lost more than 2R", "which trades"),
    "which trades made between 1R and 2R?": ("made between 1R and 2R", "which trades"),
    "AAPL losers over $250": ("over $250", "AAPL losers"),
    "trades of AAPL held longer than 10 days": ("held longer than 10 days", "trades of AAPL"),
    "winners that were held at least a week": ("that were held at least a week", "winners"),
    "trades closed within 2 bars": ("closed within 2 bars", "trades"),
    "shorts with at least 20 bars": ("with at least 20 bars", "shorts"),
    "trades risking more than 1%": ("risking more than 1%", "trades"),
    "trades with conviction above 0.7": ("with conviction above 0.7", "trades"),
    "trades of squeeze_breakout with slippage over 5 bps": (
        "with slippage over 5 bps", "trades of squeeze_breakout",
    ),
    "playbooks with a win rate under 40%": ("with a win rate under 40%", "playbooks"),
    "symbols with more than 10 trades": ("with more than 10 trades", "symbols"),
    "trades of IBM above 100 held longer than 3 days": ("above 100", "trades of IBM"),
    "trades of squeeze_breakout that were not on IBM": (
        "that were not on IBM", "trades of squeeze_breakout",
    ),
    "show me the losers except IBM": ("except IBM", "show me the losers"),
    "which trades did not lose on IBM?": ("did not lose", "which trades on IBM"),
    "trades that never won in 2003": ("that never won", "trades in 2003"),
    "non-losing trades of IBM": ("non-losing", "trades of IBM"),
    "worst trade of IBM and best trade of AAPL": ("and best trade of AAPL", "worst trade of IBM"),
    "best and worst trade of IBM": ("best and", "worst trade of IBM"),
    "trades of all symbols but MSFT": ("but MSFT", "trades of all symbols"),
    "trades without AAPL": ("without AAPL", "trades"),
    "trades in up/low but not in 2004": ("but not in 2004", "trades in up/low"),
    "the win rate of squeeze_breakout without its best trade": (
        "without its best trade", "the win rate of squeeze_breakout",
    ),
    "is squeeze_breakout profitable without its best trade?": (
        "without its best trade", "is squeeze_breakout profitable",
    ),
    "neither IBM nor AAPL: how did the others do?": ("neither IBM nor AAPL", "how did the others do"),
    "the second worst trade": ("second", "the worst trade"),
    "the third biggest loss of IBM": ("third", "the biggest loss of IBM"),
    "the 2nd last trade": ("2nd", None),
    "first trade of IBM": ("first", "trade of IBM"),
    "the 3 oldest trades": ("oldest", "the 3 trades"),
    "every second trade": ("every second", "trade"),
    "half of the trades": ("half of the", "trades"),
    "three consecutive losses": ("consecutive", "three losses"),
    "the five trades before the last one": ("before the last one", "the five trades"),
    "last 3 winners of AAPL and last 2 losers of MSFT": (
        "last 3 winners of AAPL", "last 2 losers of MSFT",
    ),
    "top 5 winners and top 5 losers": ("top 5 winners", "top 5 losers"),
    "the worst trade of each symbol": ("of each symbol", "the worst trade"),
    "show the trades of IBM, sorted by duration": ("sorted by duration", "show the trades of IBM"),
    "trades that were stopped out": ("that were stopped out", "trades"),
    "Which trades won on AAPL but lost on IBM?": ("but lost on IBM", "Which trades won on AAPL"),
    "Which trades lost on IBM and won on AAPL?": ("and won on AAPL", "Which trades lost on IBM"),
    "trades of IBM that were not shorts": ("that were not shorts", "trades of IBM"),
    "max drawdown of mean_reversion?": ("max drawdown", "of mean_reversion"),
    "how many trades per year?": ("per year", "how many trades"),
    "how many trades a year does IBM make?": ("a year", "how many trades does IBM make"),
    "trades of IBM, Fridays only": ("Fridays only", "trades of IBM"),
    "what is the variance of the R of IBM?": ("variance", "what is the of the R of IBM"),
    "how did IBM do compared with the index?": ("compared with the index", "how did IBM do"),
    "trades of IBM in summer 2003": ("in summer", "trades of IBM 2003"),
    "trades of IBM in the first hour": ("in the first hour", "trades of IBM"),
    "trades at 10:30": ("at 10:30", "trades"),
    "reports that recommended retire": ("that recommended retire", "reports"),
    "gate status of proven clusters": ("proven", "gate status of clusters"),
    "what would squeeze_breakout have made with a stop of 2 ATR?": (
        "what would squeeze_breakout have made with a stop of 2 ATR", None,
    ),
}  # fmt: skip
TAKEN = (
    "did squeeze_breakout lose more than 5R?",
    "is the E-value of squeeze_breakout above 20?",
    "did IBM lose more than it won?",
    "how far is IBM below its 20 day high",
    "why are we not in AAPL?",
    "the last 3 trades of IBM",
    "show me at most 5 trades",
    "trades of IBM over 2004",
    "trades from 2003 to 2004",
    "trades between 2003-01-01 and 2003-06-30 of IBM",
    "trades of IBM until 12 March 2003 at 16:00",
    "how many trades were stopped out, compared with the other ways out?",
    "which clusters are proven?",
    "how many theses expired without an activation?",
    "what did the last report recommend?",
    "would a long IBM squeeze_breakout plan with a stop of 95 pass?",
)
# A question, what is told of it in the first line, and the same question without that.
TOLD = {
    "Ban squeeze_breakout in up/low. Why did it lose?": (
        "`thinktwice ask 'ban squeeze_breakout in up/low'` makes a change plan",
        "Why did squeeze_breakout lose?",
    ),
    "Why did squeeze_breakout lose? Retire it.": (
        "`thinktwice ask 'retire squeeze_breakout'` makes a change plan",
        "Why did squeeze_breakout lose?",
    ),
    "Delete the run. How did AAPL do?": ("'Delete the run.'. I read and change nothing.", "How did AAPL do?"),
    "Kill the run! What was the price of IBM?": (
        "`thinktwice kill on --run RUN`",
        "What was the price of IBM?",
    ),
    "How did AAPL do? What's the weather?": ("'What's the weather?'", "How did AAPL do?"),
    "what is squeeze_breakout, and who wrote it?": ("'who wrote it?'", "what is squeeze_breakout"),
    "how did IBM do and what will it do tomorrow?": ("'what will it do tomorrow?'", "how did IBM do"),
    "price of IBM on 2003-05-05? and on 2003-05-06?": ("'and on 2003-05-06?'", "price of IBM on 2003-05-05?"),
    "how many trades of IBM won, and what was the slippage?": (
        "'slippage', of which no figure is told",
        None,
    ),
    "is mean_reversion proven on IBM?": (
        "'IBM': what is proven is told by playbook",
        "is mean_reversion proven?",
    ),
    "are the longs of mean_reversion proven?": ("'longs': what is proven", None),
    "What does IBM look like in up/mid?": (
        "'up/mid': a market is told by symbol",
        "What does IBM look like?",
    ),
    "why was no trade taken in up/low?": ("'up/low': decisions are told by symbol", None),
    "what are the rules of mean_reversion on IBM?": ("'IBM': what a playbook is", None),
    "trades of IBM with their zorkmids": ("'zorkmids', of which nothing is known", "trades of IBM"),
}
SILENT = (
    "Hello! How did IBM do? Thanks.",
    "I have been away for a while. How did IBM do?",
    "did squeeze_breakout lose more than 5R?",
    "how much did IBM make after fees?",
    "how many trades of IBM won, and what were the fees?",
    "Is IBM in up/mid?",
    "What did the judge decide about squeeze_breakout?",
    "Why did squeeze_breakout lose? Do not change anything.",
)
ORDERED_WITHIN = (
    "show the rules of mean_reversion and set the risk of mean_reversion to half",
    "Please show the trades of IBM, buy IBM",
    "tell me how mean_reversion did and retire it",
)


def planned(text):
    return asyncio.run(RulePlanner().plan(EvidenceQuestion(text, CONTEXT), {OWN: OWN_TOOLS}))


def called(plan):
    return [(call.method, dict(call.params)) for call in plan.tools]


@pytest.mark.parametrize("text", UNMET)
def test_filter_that_no_tool_takes_is_asked_back_with_a_question_that_works(text):
    words, rest = UNMET[text]
    plan = planned(text)
    assert (plan.confidence, plan.tools) == (0.0, ())
    assert plan.clarification.startswith(f"No tool takes “{words}”. ")
    instead = re.search(r"Without it: `(.*)`\.$", plan.clarification)
    assert (instead and instead[1]) == rest
    if rest is not None:
        again = planned(rest)
        assert again.tools
        assert again.clarification is None


@pytest.mark.parametrize("text", TAKEN)
def test_figure_that_is_no_filter_or_that_a_tool_takes_is_not_asked_back(text):
    plan = planned(text)
    assert plan.tools
    assert plan.clarification is None


def test_amounts_of_a_plan_or_a_rule_are_no_filters():
    assert unmet("long IBM with a stop of 95", "check") is None
    assert unmet("close > 100", "rule") is None


@pytest.mark.parametrize("text", TOLD)
def test_part_that_is_left_out_is_told_and_the_others_are_looked_up(text):
    told, alone = TOLD[text]
    plan = planned(text)
    assert plan.clarification.startswith("Not taken up: ")
    assert told in plan.clarification
    assert "\n" not in plan.clarification
    assert called(plan)
    if alone is not None:
        assert called(plan) == called(planned(alone))


@pytest.mark.parametrize("text", SILENT)
def test_greetings_and_reasons_are_not_told_of(text):
    plan = planned(text)
    assert plan.tools
    assert plan.clarification is None


@pytest.mark.parametrize("text", ORDERED_WITHIN)
def test_order_in_a_part_is_no_filter_of_it(text):
    plan = planned(text)
    assert not plan.tools
    assert "I read and change nothing" in plan.clarification


def test_what_is_told_of_a_question_cannot_be_taken_for_ours():
    plan = planned("How did IBM do? Who\u202ewrote\u001b[31m this `rm`?")
    assert "\u202e" not in plan.clarification
    assert "\u001b" not in plan.clarification
