"""What a recommendation would change, in words."""

from collections.abc import Mapping
from typing import Any


def change_words(change: Mapping[str, Any]) -> str:
    """`try stop_atr 2 on paper`; what the words leave out follows by name, and nothing is `no change`."""
    told, names = _sentence(change)
    rest = [f"{name} {change[name]}" for name in sorted(change.keys() - names)]
    return ", ".join([*told, *rest]) or "no change"


def _sentence(change: Mapping[str, Any]) -> tuple[list[str], set[str]]:
    """The words of a complete change, and the fields that they tell."""
    match change:
        case {"kind": "set_eligibility", "regime": regime, "eligible": bool(eligible)}:
            side = f" {change['direction']}" if change.get("direction") else ""
            verb = "trade again" if eligible else "ban"
            return [f"{verb}{side} in {regime}"], {"kind", "regime", "eligible", "direction"}
        case {"kind": "set_risk_fraction", "value": float(value)}:
            return [f"risk {100 * value:g} % of equity a trade"], {"kind", "value"}
        case {"kind": "open_experiment", "parameter": parameter, "value": int() | float() as value}:
            return [f"try {parameter} {value:g} on paper"], {"kind", "parameter", "value"}
        case {"kind": str(), "parameter": parameter, "value": int() | float() as value}:
            return [f"trade with {parameter} {value:g}"], {"kind", "parameter", "value"}
        case {"kind": "replan"}:
            return ["plan anew"], {"kind"}
    return [], set()
