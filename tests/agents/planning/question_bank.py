"""Questions written from the help page alone: seven intents of ten wordings, and forty that no tool answers.

A wording stands with the calls that answer it; several where either is right. `TURNED` has questions of words
that are all known or nearly so, in which one word turns, narrows or compares what the others say.
"""

from typing import Any

Calls = list[tuple[str, dict[str, Any]]]
OF_IBM: Calls = [("trades", {"symbol": "IBM"})]
LOST: Calls = [("trades", {"symbol": "IBM", "outcome": "lost"})]
MARKET: Calls = [("market", {"symbol": "IBM"})]
UPDATE: Calls = [*MARKET, *OF_IBM]
BOOK: Calls = [("playbooks", {"playbook_id": "squeeze_breakout"})]
CASE: Calls = [
    ("trades", {"playbook_id": "squeeze_breakout", "outcome": "lost"}),
    ("gate", {"playbook_id": "squeeze_breakout"}),
    *BOOK,
]
FILL: Calls = [("why", {"fill_id": "7c1f09aa"})]

INTENTS: dict[str, dict[str, list[Calls]]] = {
    "snapshot": {
        "What is the price of IBM?": [MARKET],
        "In which regime is IBM?": [MARKET],
        "Show me the market of IBM.": [MARKET],
        "what does IBM look like now?": [MARKET],
        "IBM regime and price please": [MARKET],
        "Give me a snapshot of IBM": [MARKET],
        "What was the close of IBM on 2005-06-30?": [
            [("market", {"symbol": "IBM", "at": "2005-06-30T23:59:59Z"})]
        ],
        "Which features does IBM have right now?": [MARKET],
        "what are IBM's indicators": [MARKET],
        "How is the market of IBM at the moment?": [MARKET],
    },
    "episodes": {
        "Which trades of IBM lost?": [LOST],
        "How many trades of IBM lost?": [LOST],
        "list the losing trades of IBM": [LOST],
        "How did squeeze_breakout do in 2005?": [
            [("trades", {"playbook_id": "squeeze_breakout", "period": "2005"})]
        ],
        "What was the worst trade of IBM?": [
            [("trades", {"symbol": "IBM", "order": "worst", "limit": 1})],
            [("trades", {"symbol": "IBM", "order": "worst"})],
        ],
        "the last 5 trades of squeeze_breakout in up/low": [
            [("trades", {"playbook_id": "squeeze_breakout", "regime": "up/low", "limit": 5})]
        ],
        "What did IBM earn from 2004 to 2005?": [[("trades", {"symbol": "IBM", "period": "2004/2005"})]],
        "winning shorts of IBM": [[("trades", {"symbol": "IBM", "outcome": "won", "direction": "short"})]],
        "Show me the longest trades.": [[("trades", {"order": "longest"})]],
        "What's the win rate of squeeze_breakout?": [[("trades", {"playbook_id": "squeeze_breakout"})]],
    },
    "context": {
        "Give me an update on that symbol from before.": [UPDATE],
        "And that symbol's price?": [MARKET],
        "which trades of that symbol lost?": [LOST],
        "How is that symbol doing?": [OF_IBM, UPDATE],
        "Any update on that stock?": [UPDATE],
        "what about the regime of that symbol": [MARKET],
        "show me the trades of the same symbol": [OF_IBM],
        "What does it look like now?": [MARKET],
        "What did it earn?": [OF_IBM],
        "an overview of that symbol, please": [UPDATE],
    },
    "chain": {
        "Why did squeeze_breakout lose?": [CASE],
        "why does squeeze_breakout lose money?": [CASE],
        "Explain the losses of squeeze_breakout": [CASE],
        "What are the reasons for the losses of squeeze_breakout?": [CASE],
        "What is the cause of the losses of squeeze_breakout?": [CASE],
        "What does IBM look like, and which trades of IBM lost?": [[*MARKET, *LOST]],
        "What is the price of IBM and what are the rules of squeeze_breakout?": [[*MARKET, *BOOK]],
        "Why is squeeze_breakout losing?": [CASE],
        "Why did the last trade of IBM lose?": [
            [("trades", {"symbol": "IBM", "outcome": "lost", "limit": 1})]
        ],
        "What did squeeze_breakout earn, and is it proven?": [
            [
                ("trades", {"playbook_id": "squeeze_breakout"}),
                ("gate", {"playbook_id": "squeeze_breakout"}),
            ]
        ],
    },
    "fill": {
        "Why did fill 7c1f09aa happen?": [FILL],
        "Explain fill 7c1f09aa": [FILL],
        "why 7c1f09aa": [FILL],
        "What caused the fill 7c1f09aa?": [FILL],
        "What was the reason for fill 7c1f09aa?": [FILL],
        "Show me how fill 7c1f09aa came about": [FILL],
        "tell me about fill 7c1f09aa": [FILL],
        "What is behind fill 7c1f09aa?": [FILL],
        "Why was the fill 7c1f09aa made?": [FILL],
        "Trace 7c1f09aa back": [FILL],
    },
    "playbook": {
        "Show me the rules of squeeze_breakout.": [BOOK],
        "What is the definition of squeeze_breakout?": [BOOK],
        "How is squeeze_breakout defined?": [BOOK],
        "What are the parameters of squeeze_breakout?": [BOOK],
        "list all versions of squeeze_breakout": [BOOK],
        "Describe the playbook squeeze_breakout": [BOOK],
        "squeeze_breakout rules": [BOOK],
        "What is the setup of squeeze breakout?": [BOOK],
        "How did squeeze_breakout change?": [BOOK],
        "what changes were made to squeeze_breakout": [BOOK],
    },
    "ambiguous": {
        "Tell me something interesting.": [],
        "How is it going?": [],
        "What should I know?": [],
        "help": [],
        "Is everything alright?": [],
        "Why?": [],
        "What happened?": [],
        "anything new?": [],
        "And the other one?": [],
        "show me more": [],
    },
}
BESIDE = (
    "What will IBM cost tomorrow?", "Should I sell IBM?", "Is IBM a good trade?",
    "Which trades would have won without stops?", "What is the price of oil?", "Who wrote squeeze_breakout?",
    "Which trades of IBM lost more than 2R?", "Why do losing trades of IBM not stop at the target?",
    "What is the correlation of IBM and MSFT?", "What is the drawdown of squeeze_breakout?",
    "Which trades of IBM did not lose?", "Show me the trades except IBM.", "How do I trade IBM?",
    "When will IBM leave its regime?", "What news moved IBM in 2005?", "What is the Sharpe ratio of IBM?",
    "What were the trades of GOOG?", "Is the price of IBM above its average?", "How long is a trade allowed?",
    "What if the stop of squeeze_breakout were wider?", "Which trades lost on a Monday?",
    "Which trades of IBM were entered before noon?", "What is the best price of IBM?",
    "Which regime loses most after a winning trade?", "Buy IBM at the close.", "What is the dividend of IBM?",
    "Compare squeeze_breakout with the S&P 500.", "Which trades should have been bigger?",
    "Can I trade IBM?", "How much tax is due on the trades of IBM?", "What does IBM do for a living?",
    "Why is the price of IBM falling?", "Which trades of IBM did the judge stop?", "Trades of IBM above 100?",
    "Is squeeze_breakout better than trend_pullback?", "How many losing trades in a row did IBM have?",
    "What is the weather in the regime up/low?", "Which trades were held over a weekend?",
    "What did IBM earn last year?", "Would a wider stop have saved the last trade of IBM?",
)  # fmt: skip
TURNED: dict[str, tuple[str, ...]] = {
    "an order of what is not listed": (
        "What was the biggest loss?", "biggest loser of AAPL", "the 3 biggest losers of MSFT",
        "best symbol", "worst regime", "Which playbook performed best?",
        "which symbol has the best win rate", "Which strategy performed worst in 2008?", "best IBM",
        "worst squeeze_breakout", "IBM worst", "the best of IBM", "how did the best regime do",
        "regime of the best trade", "the worst run", "largest return",
    ),
    "an order against the outcome": (
        "Why did the best trade lose?", "best losing trade", "the best losers of IBM", "worst winner",
        "Why did the longest trade lose?", "Why did the worst trade of IBM lose?",
        "Why was the last trade of IBM the worst?", "the last worst trade",
    ),
    "an order of more than one list": (
        "best trades by symbol", "last 5 trades by regime", "the worst trade of IBM and MSFT",
        "why did the last trade of IBM and MSFT lose",
    ),
    "some of what was picked": (
        "Which of the last 5 trades lost?", "How many of the last 10 trades won?",
        "Which of the 5 worst trades were shorts?", "The last 5 trades that lost",
        "Which of the last 5 trades are of IBM?", "trades of the 5 worst",
    ),
    "figures of what was picked": (
        "How did IBM do in the last 5 trades?", "What did the last 5 trades of IBM earn?",
        "win rate of the last 10 trades", "how did the last trade of IBM do",
        "in the last trade how did IBM do", "how did worst trades do", "performance of the best trade",
        "results of the last trade",
    ),
    "a time before or after": (
        "Which trades won before 2004?", "How did MSFT do before 2008?", "losers before 2008-06-30",
        "the trade before the last", "Why did the trade before the last lose?",
        "In which regime was AAPL before?", "price of AAPL before the last bar", "trades after 2004",
        "the last but one trade", "an update on that symbol from before 2004",
    ),
    "a time of another thing": (
        "trades closed in 2004", "trades at the end of 2004", "trades at 2004-06", "costs on 2005-06-30",
        "decisions on 2005-06-30", "reports on 2005-06-30", "return on 2005-06-30",
        "drawdown on 2005-06-30", "sharpe at the end of 2004",
        "regime of IBM by the end of 2004-06 in 2005", "current drawdown", "trades now", "now the trades",
        "last regime of IBM",
    ),
    "half a regime": (
        "How did AAPL do in the down regime?", "trades in the down regime",
        "channel_breakout in the up regime", "trades of the regime",
    ),
    "yes or no": (
        "Is MSFT profitable?", "Was channel_breakout profitable in 2005?", "was 2008 profitable",
        "Are all trades of AAPL winners?", "did all shorts lose", "all longs win", "every trade won",
        "Did IBM lose in 2004?", "Has IBM won?", "Were the last 5 trades losers?",
    ),
    "how much": (
        "How much did IBM lose?", "What did IBM lose in 2004?", "How badly did IBM lose?",
        "which trades of IBM earn", "trades of IBM in profit", "What is in profit?",
    ),
    "a kind of name": (
        "which playbook won", "losing playbook", "which regime lost", "the regime by playbook",
        "list the trades by their regime", "the playbook", "which playbooks are active",
        "Which playbooks changed?", "which trade made 7c1f09aa",
    ),
    "a number after a verb": (
        "Which trades of AAPL earned 50?", "losing trades held 20", "which trades earned 100",
        "trades held for 20", "IBM lost 5 trades", "trades lost 5", "trade 5", "shorts 2",
        "5 of the trades", "5 prices of IBM", "5 versions of squeeze_breakout", "trades for the last 5",
    ),
    "the most or the whole": (
        "maximum exposure", "largest exposure", "total exposure", "maximum equity", "max cash",
        "total costs", "mean price of IBM",
    ),
    "another thing of the account": (
        "volatility of the account", "trend of the account", "state of the account", "return on equity",
        "cash in open positions", "cash and equity",
    ),
    "two groups": (
        "trades by symbol and playbook", "trades by direction and regime", "trades by symbol, playbook",
        "trades by symbol by playbook", "how did squeeze_breakout do by symbol and regime",
    ),
    "names of two kinds in one list": (
        "trades of IBM and squeeze_breakout", "trades of IBM, squeeze_breakout",
        "How did IBM and squeeze_breakout do?",
    ),
    "two lists in one": (
        "longs and winners of IBM", "losing trades and shorts of IBM",
        "Which trades of IBM lost, which shorts of MSFT?", "how many losers were long", "trades of longs",
        "results of losers",
    ),
    "a part without the names of another": (
        "What is the price of AAPL and what are the trades?",
        "What did squeeze_breakout earn in 2004, and which trades lost?",
        "Show me the trades of IBM. Give me the losers.",
        "Which trades of IBM lost in 2004 and which trades of MSFT won?",
    ),
    "a word that is no direction": (
        "How did IBM do in the long run?", "in the short run, which trades lost?", "trades that were long",
        "Why was the last trade short?", "how long did squeeze_breakout hold",
    ),
    "what was not named": (
        "price of that", "Which of these lost?", "and what about the losers?", "describe the run",
        "parameters of the run", "What is the interval of the run?", "review the run",
        "trades of the last run", "finished runs", "evidence of squeeze_breakout", "How is IBM?",
        "How is squeeze_breakout?", "How is the market?",
    ),
    "an order to do": (
        "please trade IBM", "please hold IBM", "please change the rules of squeeze_breakout",
        "Can you trade IBM?", "how did IBM trade",
    ),
    "the effect for the cause": (
        "What did fill 7c1f09aa cause?", "exit of 7c1f09aa", "order of fill 7c1f09aa",
    ),
}  # fmt: skip
