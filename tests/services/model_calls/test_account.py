import json

import pytest

from schemas.errors import ModelError
from schemas.settings.llm import LlmSettings, ModelPrice
from services.journal.writer import JournalWriter
from services.model_calls.account import ModelAccount
from services.model_calls.budget import DAY_NS
from services.model_calls.language_model import ModelReply
from services.model_calls.record import Caller, Purse, RecordedCall, record_failure, record_reply
from trading_core.clock import SimulatedClock


class Rows:
    def __init__(self):
        self.rows = []

    async def write(self, rows):
        self.rows.extend(rows)


CLOCK_START = 7


def account(clock=None, **settings) -> tuple[ModelAccount, JournalWriter]:
    price = ModelPrice(model="m", input_usd=1e6, output_usd=2e6)
    journal = JournalWriter(Rows())
    return ModelAccount(
        LlmSettings(prices=(price,), **settings), journal, clock or SimulatedClock(CLOCK_START)
    ), journal


def settle(made: ModelAccount, model: str = "m") -> None:
    caller = Caller("anthropic", model, "policy_level_reflection", "ab" * 32)
    question = made.admit(caller, "", "", 1)
    made.settle(record_reply(question, ModelReply("x", model, 3, 1, 0.0, 2), 8.0), question)


def test_account_cost_is_in_the_currency_of_the_account():
    made, _ = account(quote_per_usd=0.5, per_run={"usd": None})
    settle(made)
    # 3 input and 2 cache-write tokens at one dollar, one output token at two.
    assert made.document()["usd"] == 7.0
    assert made.cost == made.document()["cost"] == 3.5


def test_account_document_counts_what_was_settled():
    made, _ = account(per_run={"usd": None})
    settle(made)
    settle(made)
    document = made.document()
    assert (document["calls"], document["requests"], document["outcomes"]) == (2, 2, {"reply": 2})
    assert document["tokens"] == {"input": 6, "output": 2, "cache_write": 4, "cache_read": 0}
    assert document["latency_ms"]["p50"] == 8.0


def test_account_day_is_that_of_the_bars():
    clock = SimulatedClock(CLOCK_START)
    made, journal = account(clock, per_day={"calls": 1}, per_run={"usd": None})
    settle(made)
    with pytest.raises(ModelError, match="per day"):
        settle(made)
    clock.advance(CLOCK_START + DAY_NS)
    settle(made)
    assert (journal.counts["model_call"], journal.counts["model_budget"]) == (2, 1)


def test_account_same_question_again_is_a_repeat():
    made, journal = account(per_run={"usd": None})
    seen: list[RecordedCall] = []
    made.keep = seen.append
    settle(made)
    settle(made)
    assert [call.repeat for call in seen] == [1, 2]
    assert seen[0].key == seen[1].key
    assert journal.counts["model_call"] == 2


def test_account_without_a_call_is_zero():
    document = account()[0].document()
    assert (document["calls"], document["usd"], document["cost"]) == (0, 0.0, 0.0)
    assert document["latency_ms"]["p50"] is None
    json.dumps(document)


def test_account_model_without_a_price_is_reported_and_counts_as_the_dearest():
    account = ModelAccount(LlmSettings(), JournalWriter(Rows()), SimulatedClock())
    for model in ("claude-haiku-5-5", "claude-next"):
        caller = Caller("anthropic", model, "policy_level_reflection", "ab" * 32)
        question = account.admit(caller, "s", "p", 16)
        account.settle(record_reply(question, ModelReply("{}", model, 1_000_000, 0, 1.0), 1.0), question)
    assert account.document()["unpriced"] == ["claude-next"]
    assert account.ledger.run.usd == pytest.approx(0.10 + 4.0)


def fails(made: ModelAccount, prompt: str, text: str | None) -> str | None:
    """What keeps the next question at a prompt from being asked, after one that failed or was answered so."""
    caller = Caller("anthropic", "m", prompt, "ab" * 32, reads=lambda text: text == "good")
    try:
        question = made.admit(caller, "", "", 1)
    except ModelError as error:
        return str(error)
    if text is None:
        made.settle(record_failure(question, ModelError("no", kind="server"), 1.0), question)
    else:
        made.settle(record_reply(question, ModelReply(text, "m", 1, 1, 0.0), 1.0), question)
    return None


def test_account_breaker_counts_for_each_prompt_and_counts_what_cannot_be_read():
    made, journal = account(
        breaker_failures=3, breaker_pause=5, per_run={"usd": None}, per_event={"calls": None}
    )
    assert [fails(made, "a", text) for text in (None, "prose", "[]")] == [None] * 3
    refused = fails(made, "a", "good")
    assert refused is not None
    assert "3 times in a row at prompt 'a'" in refused
    assert [fails(made, "b", text) for text in ("prose", "good", "prose", "prose")] == [None] * 4
    assert (made.opened, made.document()["unusable"], made.document()["outcomes"]["reply"]) == (1, 5, 6)
    assert journal.counts["model_breaker"] == 1


def turned_away(
    made: ModelAccount,
    prompt: str,
    purse: Purse,
    status: int | None = 404,
    kind: str = "rejected",
    text: str = "HTTP 404 no such model",
    *,
    retryable: bool = False,
) -> None:
    """A question that its server turned away."""
    question = made.admit(Caller("anthropic", "gone", prompt, "ab" * 32, purse=purse), "", "", 1)
    failure = ModelError(text, retryable=retryable, kind=kind, status=status)
    made.settle(record_failure(question, failure, 1.0), question)


@pytest.mark.parametrize(
    ("purse", "lost"),
    [(Purse.EVENT, True), (Purse.DECISION, True), (Purse.TEXT, False), (Purse.EVIDENCE, False)],
)
def test_account_seat_turned_away_three_times_is_not_asked_again_though_another_answers(purse, lost):
    made, journal = account(per_run={"usd": None}, per_event={"calls": None}, unknown_price="zero")
    for _ in range(3):
        settle(made)
        turned_away(made, "gone", purse)
    assert (made.lost is not None) is lost
    assert journal.counts["model_breaker"] == 1
    with pytest.raises(ModelError, match="not asked any more") as caught:
        turned_away(made, "gone", purse)
    assert caught.value.context["kind"] == "lost"
    if not lost:
        settle(made)


def test_account_restored_remembers_how_often_a_seat_was_turned_away():
    made, _ = account(per_run={"usd": None}, per_event={"calls": None}, unknown_price="zero")
    for _ in range(2):
        turned_away(made, "gone", Purse.EVENT)
    again, _ = account(per_run={"usd": None}, per_event={"calls": None}, unknown_price="zero")
    again.restore(json.loads(json.dumps(made.state())))
    turned_away(again, "gone", Purse.EVENT)
    assert again.lost == "HTTP 404 no such model"


def roomy() -> ModelAccount:
    return account(per_run={"usd": None}, per_event={"calls": None}, unknown_price="zero")[0]


@pytest.mark.parametrize(
    ("status", "kind", "lost"),
    [(402, "rejected", True), (429, "rejected", True), (None, "rejected", True), (413, "rejected", False)],
)
def test_account_without_credit_is_turned_away_for_good(status, kind, lost):
    made = roomy()
    for _ in range(3):
        turned_away(made, "gone", Purse.EVENT, status, kind)
    assert (made.lost is not None) is lost


@pytest.mark.parametrize(
    ("shown", "retryable", "lost"),
    [
        (["quota spent"] * 3, False, True),
        (["quota spent"] * 3, True, False),
        (["used 7 of 9", "used 8 of 9", "used 9 of 9"], False, False),
    ],
)
def test_account_throttled_alike_through_all_tries_of_three_questions_is_lost(shown, retryable, lost):
    made = roomy()
    for words in shown:
        turned_away(made, "gone", Purse.EVENT, 429, "throttled", words, retryable=retryable)
    assert (made.lost is not None) is lost


@pytest.mark.parametrize(("every", "lost_at"), [(2, None), (3, 8), (4, 3)])
def test_account_seat_that_is_answered_now_and_then_is_lost_by_its_last_ten_questions(every, lost_at):
    made, request = roomy(), 0
    for request in range(1, 41):
        if request % every:
            turned_away(made, "gone", Purse.EVENT)
        else:
            caller = Caller("anthropic", "gone", "gone", "ab" * 32, purse=Purse.EVENT)
            question = made.admit(caller, "", "", 1)
            made.settle(record_reply(question, ModelReply("x", "gone", 1, 1, 0.0), 1.0), question)
        if made.lost is not None:
            break
    assert (request if made.lost else None) == lost_at
    (seat,) = made.document()["seats"]
    assert (seat["questions"], seat["answered"]) == (request, request // every)


def test_account_asks_a_lost_model_once_more_and_its_answer_decides():
    made, _ = account(per_run={"usd": None}, per_event={"calls": None}, unknown_price="zero")
    for _ in range(3):
        turned_away(made, "gone", Purse.EVENT)
    assert made.failing()["gone (gone)"].reason == made.lost == "HTTP 404 no such model"
    assert made.retry_lost() == ["gone (gone)"]
    assert not made.document()["lost"]
    turned_away(made, "gone", Purse.EVENT)
    assert made.lost == "HTTP 404 no such model", "one refusal more, and it is not asked any more"
    with pytest.raises(ModelError, match="not asked any more"):
        turned_away(made, "gone", Purse.EVENT)
    made.retry_lost()
    question = made.admit(Caller("anthropic", "gone", "gone", "ab" * 32, purse=Purse.EVENT), "", "", 1)
    made.settle(record_reply(question, ModelReply("x", "gone", 1, 1, 0.0), 1.0), question)
    for _ in range(2):
        turned_away(made, "gone", Purse.EVENT)
    assert (made.document()["lost"], made.retry_lost()) == (False, []), (
        "it answered: three refusals are needed again"
    )
