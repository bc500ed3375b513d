"""A stranger's text is read for explicit orders of the other side, and for nothing else."""

import pytest

from services.policy_checks.orders import orders_against
from tests.each_case import check_each
from tests.services.policy_checks.injections import INJECTIONS


@check_each(
    ("direction", "text", "orders"),
    [
        ("long", "Go short.", ("Go short",)),
        ("long", "The trend is weak, so sell short here.", ("sell short here",)),
        ("long", "I go short now. Sellers rule.", ("I go short now",)),
        ("long", "Sell the rally!", ("Sell the rally",)),
        ("short", "Buy.", ("Buy",)),
        ("short", "The range holds; buy the dip.", ("buy the dip",)),
        ("short", "You should go long here", ("You should go long here",)),
        ("long", "Buy the dip and go long.", ()),
        ("short", "Sell short here.", ()),
        ("long", "Do not go short here.", ()),
        ("long", "Never sell this.", ()),
        ("long", "Don\u2019t sell it.", ()),
        ("long", "If the floor breaks, go short.", ()),
        ("long", "Once it fails, sell.", ()),
        ("long", "Sellers are short of stock.", ()),
        ("short", "Buyers are in control.", ()),
        ("short", "It is not wise to buy here.", ()),
        ("long", "", ()),
    ],
)
def test_orders_against_a_plan_are_its_explicit_clauses_alone(direction, text, orders):
    assert orders_against(text, direction) == orders


@pytest.mark.parametrize("direction", ["long", "short"])
def test_orders_against_takes_any_text(direction):
    assert all(isinstance(orders_against(injection.text * 20, direction), tuple) for injection in INJECTIONS)
