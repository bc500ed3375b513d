"""Units of measures and of figures, and which figure may be a value of which measure."""

from services.deliberation.mention import Mention
from services.deliberation.numerals import Figure
from services.evidence.catalogue import CATALOGUE

OF_AN_EXCURSION = frozenset({"mfe_p50", "mae_p80", "hold_p50"})
SIGNLESS = frozenset({"mae_p80", "mean_mae", "worst_mae", "worst_r", "worst_pnl"})
OF_MONEY = frozenset({"pnl", "fees", "gross_pnl", "mean_pnl", "mean_fees", "best_pnl", "worst_pnl"})
UNITS = {"R": "r", "r": "r", "%": "share", "$": "money", "€": "money", "£": "money"}


def measure_unit(question: str) -> str:
    """Unit of a measure."""
    if question in CATALOGUE:
        return CATALOGUE[question].unit
    return "r" if question == "profit" else question


def unit_of(held: Figure) -> str:
    """Unit of a figure: r, share, money, other for what no fact has, or empty."""
    lower = held.unit.casefold()
    if not held.unit or held.unit in UNITS:
        return UNITS.get(held.unit, "")
    if lower.startswith(("per", "pct")) and "point" not in lower:
        return "share"
    if lower.startswith(("bp", "basis")):
        return "bps"
    return "money" if lower.startswith(("dollar", "usd")) else "other"


def side_of(mention: Mention) -> str | None:
    """Gained or lost, where a word says so."""
    if mention.kind in ("direction", "result"):
        return None if mention.value == "flat" else str(mention.value)
    return None


def fits(question: str, unit: str, *, decimal: bool = True) -> bool:
    """Whether a figure in this unit may be a value of the measure; a bare one may be of any."""
    of_measure = measure_unit(question)
    if question == "profit":
        return unit in ("", "r", "money")
    if question in ("mean_r", "best_r", "worst_r") and unit == "money":
        return True
    if question in ("total_r", "mean_r", "median_r") and unit == "":
        return decimal
    return unit in ("", of_measure) or unit == "money" and of_measure == "price"
