"""How often claims are false, as measured in worlds of known truth at the default settings, in %.

The figures are those of `measured_rates.json`, which `python -m benchmarks.gate_worlds.rates` writes.
"""

import json
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("measured_rates.json")
RATES: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
OPINION_TEXT = (
    f"losing is false in up to {RATES['losing_plain']:g} % of five years without a cause, "
    f"{RATES['losing_lasting']:g} % with shocks of 12 weeks or a factor of AR .9, "
    f"{RATES['losing_rare_winners']:g} % where a few trades a year live on rare large winners"
)


def rates_for(hypotheses: int) -> dict[str, Any]:
    """Every rate; a year without a cause at the next number of hypotheses that was measured, or the most."""
    many = {int(count): rate for count, rate in RATES["null_year_by_hypotheses"].items()}
    count = min((count for count in many if count >= hypotheses), default=max(many))
    kept = {name: rate for name, rate in RATES.items() if name != "null_year_by_hypotheses"}
    return {"hypotheses": count, "null_year": many[count], **kept}


def proven_text(hypotheses: int) -> str:
    """What stands beside a proven claim of a family of so many hypotheses."""
    found = rates_for(hypotheses)
    return (
        f"measured, a claim is false in {found['null_year']:g} % of years without a cause at "
        f"{found['hypotheses']} hypotheses, in {found['shock_of_12_weeks']:g} % with shocks of 12 weeks, "
        f"in {found['five_years_of_ar_9']:g} % of five years under a factor of AR .9"
    )
