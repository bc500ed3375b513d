"""The cap on the risk of a playbook, in a run: 1% of equity, or the account's own limit if that is more."""

import pytest

from schemas.settings import EnvelopeSettings, Settings
from services.playbooks.loader import load_playbooks
from tests.services.policy_checks.plans import changed
from tests.worker.shared_runs import embedded_bars, run_on


@pytest.mark.parametrize(("account", "noted"), [(0.005, True), (0.015, False)])
def test_run_playbook_over_the_risk_cap_is_noted_and_traded_unless_the_account_allows_it(account, noted):
    bold = tuple(changed(playbook, {"risk_fraction": 0.015}) for playbook in load_playbooks(None))
    settings = Settings(envelope=EnvelopeSettings(risk_fraction=account))
    policy = run_on(embedded_bars("2003-01-01", "2003-08-15"), settings, bold).document["policy_loop"]
    assert ("risk_fraction_over_cap" in policy["finding_codes"]) == noted
    assert policy["frozen"] > 0
