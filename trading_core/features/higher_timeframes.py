"""Features on higher bars: the same graph, fed with longer bars that are seen once they are over.

A higher bar is the aggregate of the own bars of one UTC bucket. Its prices are known only on the one own bar
on which it is first seen and unknown on all others, so every operation, which leaves its state alone on an
unknown input, counts higher bars without knowing it; the result is held until the next one. Used by
`registry`.
"""

from trading_core.features import nodes as f
from trading_core.features.calendar import HIGHER_SECONDS, bucket_column
from trading_core.features.nodes import CLOSE, HIGH, LOW, OPEN, VOLUME, Node, Op

HIGHER_TIMEFRAMES = tuple(HIGHER_SECONDS)


def reads_only_bars(node: Node) -> bool:
    """Whether prices and volume are all that a graph reads: such a graph can be had on higher bars."""
    if node.op is Op.RAW:
        return node in (OPEN, HIGH, LOW, CLOSE, VOLUME)
    return all(reads_only_bars(part) for part in node.inputs)


def at_timeframe(node: Node, timeframe: str) -> Node:
    """The graph on bars of a higher timeframe, held from one such bar to the next.

    Args:
        node: a graph that `reads_only_bars`.
        timeframe: one of `HIGHER_TIMEFRAMES`.
    """
    bucket = f.raw(bucket_column(timeframe))
    higher = {
        OPEN: f.publish(f.first_of(OPEN, bucket), bucket),
        HIGH: f.publish(f.highest_of(HIGH, bucket), bucket),
        LOW: f.publish(f.lowest_of(LOW, bucket), bucket),
        CLOSE: f.publish(CLOSE, bucket),
        VOLUME: f.publish(f.total_of(VOLUME, bucket), bucket),
    }
    return f.hold(_replaced(node, higher), higher[CLOSE])


def _replaced(node: Node, higher: dict[Node, Node]) -> Node:
    if node not in higher:
        parts = tuple(_replaced(part, higher) for part in node.inputs)
        higher[node] = f.with_inputs(node, parts)
    return higher[node]
