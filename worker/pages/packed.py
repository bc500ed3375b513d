"""Data that a script of a page reads: small, the same bytes each time, and never markup.

Arrays go as base64 of deflated little-endian numbers, records as base64 of deflated JSON, and what frames
them is JSON in which no character can end a script element.
"""

import json
import zlib
from base64 import b64encode
from typing import Any

import numpy as np
import numpy.typing as npt

NS_PER_MS = 1_000_000
LEVEL = 9
UNSAFE = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}
LEAST, MOST = float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).max)


def script_json(value: Any) -> str:
    """JSON for a script element of a page.

    Raises:
        ValueError: a number is not finite.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(UNSAFE)


def packed_records(value: Any) -> str:
    """Plain data as base64 of raw deflated JSON; what is undefined is null."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return _packed(text.encode())


def packed_numbers(values: npt.NDArray[Any]) -> dict[str, str]:
    """Numbers with their type: `u4` for rows, `f4` for prices that it can hold in full, else `f8`."""
    if values.dtype.kind in "iu":
        kind = "u4" if not values.size or 0 <= values.min() <= values.max() < 2**32 else "f8"
    else:
        sizes = np.abs(values[np.isfinite(values) & (values != 0.0)])
        kind = "f4" if not sizes.size or LEAST <= sizes.min() <= sizes.max() < MOST else "f8"
    return {"type": kind, "data": _packed(np.ascontiguousarray(values, dtype=f"<{kind}").tobytes())}


def packed_times(ns: npt.NDArray[np.int64]) -> dict[str, str]:
    """Times as milliseconds."""
    return {"type": "f8", "data": _packed((ns / NS_PER_MS).astype("<f8").tobytes())}


def milliseconds_of(ns: int) -> float:
    """A time as a browser counts it."""
    return ns / NS_PER_MS


def _packed(data: bytes) -> str:
    deflate = zlib.compressobj(LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    return b64encode(deflate.compress(data) + deflate.flush()).decode()
