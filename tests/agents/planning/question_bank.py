"""Questions written from the help page alone: seven intents of ten wordings, and forty that no tool answers.

A wording stands with the calls that answer it; several where either is right.
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
