"""The guard in an agent of LangChain: its own graph, tools and middleware, a model that plays a script."""

import asyncio
import json
from contextlib import nullcontext
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware, ToolRetryMiddleware
from langchain.tools import tool
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command

import thinktwice as tt
from tests.doors.brokers import RIGHT, TOO_LARGE, fail, rows
from thinktwice.doors.langchain import GuardOrders

NAMES = {"place_order": {"quantity": "qty", "why": "thesis"}}
THREAD: Any = {"configurable": {"thread_id": "1"}}


class Script(FakeMessagesListChatModel):
    """Says one message after another, and takes tools as a model does."""

    def bind_tools(self, tools, **given):
        return self


def agent_of(model, tools, **given) -> Any:
    return create_agent(model, tools, **given)


def call(order, name="place_order", number=1):
    arguments = {**order, "qty": order["quantity"], "thesis": "it rose"}
    del arguments["quantity"]
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": f"call-{number}"}])


def play(*messages):
    return Script(responses=[*messages, AIMessage("done")])


@pytest.fixture
def place_order(broker):
    @tool
    def place_order(
        symbol: str,
        side: str,
        qty: float,
        kind: str = "market",
        price: float | None = None,
        stop: float | None = None,
        thesis: str = "",
    ) -> Any:
        """Send an order to the broker."""
        return broker.submit(symbol=symbol, side=side, qty=qty)  # fmt: skip

    return place_order


def replies(state):
    return [
        (message.status, message.content) for message in state["messages"] if isinstance(message, ToolMessage)
    ]


@pytest.mark.parametrize("asynchronous", [False, True])
def test_agent_sends_what_passes_and_its_model_is_told_why_an_order_is_refused(
    guard, broker, store, place_order, asynchronous
):
    model = play(call(TOO_LARGE), call(RIGHT, number=2))
    agent = agent_of(model, [place_order], middleware=[GuardOrders(guard, NAMES)])
    request = {"messages": [("user", "buy AAPL")]}
    state = asyncio.run(agent.ainvoke(request)) if asynchronous else agent.invoke(request)
    refused, passed = replies(state)
    assert refused[0] == "error"
    assert "quantity at most 100.0 would pass this check" in refused[1]
    assert passed == ("success", "accepted 1")
    assert broker.orders == [{"symbol": "AAPL", "side": "buy", "qty": 10.0}]
    checked = rows(store, "guard_verdict")
    assert [row["why"] for row in checked] == ["it rose", "it rose"]
    assert [row["verdict_id"] for row in rows(store, "guard_spent")] == [checked[1]["verdict"]["id"]]


def test_order_is_checked_with_the_defaults_of_its_tool(guard, broker, store):
    @tool
    def place_order(
        symbol: str, side: str, qty: float, kind: str = "limit", price: float = 100.0, stop: float = 95.0
    ) -> Any:
        """Send an order to the broker."""
        return broker.submit(symbol=symbol, qty=qty)

    short = {"symbol": "AAPL", "side": "buy"}
    model = play(call({**short, "quantity": 1_000.0}), call({**short, "quantity": 10.0}, number=2))
    agent = agent_of(model, [place_order], middleware=[GuardOrders(guard, NAMES)])
    refused, passed = replies(agent.invoke({"messages": [("user", "buy")]}))
    assert "quantity at most 100.0" in refused[1]
    assert (passed[0], broker.orders) == ("success", [{"symbol": "AAPL", "qty": 10.0}])
    order = rows(store, "guard_verdict")[0]["order"]
    assert (order["kind"], order["price"], order["stop"]) == ("limit", 100.0, 95.0)


def test_tool_whose_name_is_misspelt_is_named_where_another_is_called(guard, broker, place_order):
    agent = agent_of(play(call(RIGHT)), [place_order], middleware=[GuardOrders(guard, {"place_orders": {}})])
    with pytest.raises(tt.ConfigError, match="no tool is called 'place_orders'. Did you mean 'place_order'"):
        agent.invoke({"messages": [("user", "buy")]})
    assert broker.orders == []


def test_guard_in_mode_shadow_warns_of_tools_that_it_cannot_guard(shadow, broker, place_order):
    request = {"messages": [("user", "buy")]}
    agent = agent_of(play(call(RIGHT)), [place_order], middleware=[GuardOrders(shadow, {"place_orders": {}})])
    with pytest.warns(UserWarning, match="no tool is called 'place_orders'"):
        agent.invoke(request)
    before = [GuardOrders(shadow, NAMES), Adding(place_order), Quotes()]
    with pytest.warns(UserWarning, match="list GuardOrders behind that one"):
        agent_of(play(call(RIGHT)), [], middleware=before).invoke(request)
    assert len(broker.orders) == 2


def test_fault_of_the_guard_lets_no_order_leave_an_agent(guard, broker, place_order, monkeypatch):
    monkeypatch.setattr(guard, "spend", fail)
    agent = agent_of(play(call(RIGHT)), [place_order], middleware=[GuardOrders(guard, NAMES)])
    [(status, text)] = replies(agent.invoke({"messages": [("user", "buy")]}))
    assert (status, text) == ("error", "the guard has a fault")
    assert broker.orders == []


def test_order_that_other_middleware_repeats_is_checked_each_time(guard, broker, store):
    @tool
    def place_order(
        symbol: str, side: str, qty: float, kind: str, price: float, stop: float, thesis: str
    ) -> str:
        """Send an order to a broker that takes it and then breaks off."""
        broker.submit(symbol=symbol)
        raise ConnectionError("broke off")

    repeat = ToolRetryMiddleware(max_retries=2, initial_delay=0, jitter=False)
    agent = agent_of(play(call(RIGHT)), [place_order], middleware=[GuardOrders(guard, NAMES), repeat])
    [(_, text)] = replies(agent.invoke({"messages": [("user", "buy")]}))
    assert len(broker.orders) == 1, "the second is the same order within a minute"
    assert "duplicate" in text
    assert len(rows(store, "guard_spent")) == 1


def test_order_that_a_person_edited_is_checked_as_it_was_edited(guard, broker, store, place_order):
    asking = HumanInTheLoopMiddleware(interrupt_on={"place_order": True})
    agent = agent_of(
        play(call(RIGHT)),
        [place_order],
        middleware=[GuardOrders(guard, NAMES), asking],
        checkpointer=InMemorySaver(),
    )
    agent.invoke({"messages": [("user", "buy")]}, THREAD)
    assert rows(store, "guard_verdict") == []
    edited = {"name": "place_order", "args": call(TOO_LARGE).tool_calls[0]["args"]}
    decision = {"decisions": [{"type": "edit", "edited_action": edited}]}
    state = agent.invoke(Command(resume=decision), THREAD)
    assert replies(state)[0][0] == "error"
    assert broker.orders == []


class Quotes(AgentMiddleware[Any, Any, Any]):
    """Has a tool of its own, without which an agent has no node for tools."""

    tools = [tool("quote", description="The last price.")(lambda symbol: "100")]


class Adding(AgentMiddleware[Any, Any, Any]):
    """Adds a tool when it is called, as dynamic tools are."""

    def __init__(self, added):
        super().__init__()
        self.added = added

    def wrap_tool_call(self, request, handler):
        return handler(request.override(tool=self.added))


@pytest.mark.parametrize("last", [True, False])
def test_tool_that_other_middleware_adds_is_guarded_or_not_run(guard, broker, place_order, last):
    door = GuardOrders(guard, NAMES)
    order = [Adding(place_order), door] if last else [door, Adding(place_order)]
    agent = agent_of(play(call(TOO_LARGE), call(RIGHT, number=2)), [], middleware=[*order, Quotes()])
    with nullcontext() if last else pytest.raises(tt.ConfigError, match="list GuardOrders behind"):
        agent.invoke({"messages": [("user", "buy")]})
    assert [order["qty"] for order in broker.orders] == ([10.0] if last else [])


def test_other_tools_run_without_a_verdict(guard, store):
    @tool
    def quote(symbol: str) -> str:
        """The last price."""
        return json.dumps({symbol: 100.0})

    reply = AIMessage("", tool_calls=[{"name": "quote", "args": {"symbol": "AAPL"}, "id": "call-1"}])
    agent = agent_of(play(reply), [quote], middleware=[GuardOrders(guard, NAMES)])
    assert replies(agent.invoke({"messages": [("user", "price?")]})) == [("success", '{"AAPL": 100.0}')]
    assert rows(store, "guard_verdict") == []


def test_graph_with_a_tool_node_of_its_own_is_guarded_by_the_same_two_functions(guard, broker, place_order):
    door = GuardOrders(guard, NAMES)
    node = ToolNode([place_order], wrap_tool_call=door.wrap_tool_call, awrap_tool_call=door.awrap_tool_call)
    graph = StateGraph(MessagesState).add_node("tools", node).add_edge(START, "tools").compile()
    state = graph.invoke({"messages": [call(TOO_LARGE)]})
    assert replies(state)[0][0] == "error"
    assert asyncio.run(graph.ainvoke({"messages": [call(RIGHT)]}))["messages"][-1].content == "accepted 1"
    assert len(broker.orders) == 1
