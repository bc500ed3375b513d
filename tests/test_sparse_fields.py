"""Fields whose default says nothing are left out of what is hashed."""

from schemas.playbook import DirectionRules

RULES = {"setup": "close > open", "stop": "close - atr_14", "target": "close + atr_14"}


def test_sparse_field_at_its_default_is_not_in_the_payload_and_comes_back_without_it():
    rules = DirectionRules(**RULES)
    assert "exit" not in rules.payload()
    assert "exit" not in rules.canonical_text()
    assert DirectionRules.model_validate(rules.payload()) == rules


def test_sparse_field_with_a_value_is_hashed():
    with_exit = DirectionRules(**RULES, exit="bars_held > 5")
    assert with_exit.payload()["exit"] == "bars_held > 5"
    assert with_exit.content_hash != DirectionRules(**RULES).content_hash
    assert DirectionRules.model_validate(with_exit.payload()) == with_exit


def test_trusted_contract_is_the_one_that_is_checked_defaults_included():
    trusted, checked = DirectionRules.trust(**RULES), DirectionRules(**RULES)
    assert trusted == checked
    assert (trusted.payload(), trusted.content_hash) == (checked.payload(), checked.content_hash)
    assert trusted.model_copy(update={"exit": "bars_held > 5"}).exit == "bars_held > 5"
