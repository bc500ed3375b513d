"""`thinktwice faults`: the table, the document, and exit 1 below the least."""

import json
import re

import pytest
from typer.testing import CliRunner

import thinktwice as tt
from services.policy_checks import expectation
from tests.agents.language_models.wire_server import answer, message
from tests.agents.strategies.questions import ABSTAIN, change, propose
from tests.worker.strategist_wire import StrategistOnTheWire
from tests.worker.wire import GOOD, wire
from tools.docs_pages import DOCS
from worker.cli import app
from worker.studies.faults.planting import CheckedPlan
from worker.studies.faults.right_plans import plans_of_run

SURE = '[[fault]]\nname = "sure"\nseverity = "major"\nexpected = ["rule"]\n'
PLANTED = 'set = { "proposal.conviction" = 0.93 }\n'
HOSTILE = 'set = { "proposal.rationale" = "\\u001b[31mred\\u001b[0m [bold]" }\n'
MODEL = '[llm]\nmodel = "anthropic/claude-test"\n[[llm.prices]]\nmodel = "claude-test"\n'
MODEL += "input_usd = 0.1\noutput_usd = 0.5\n"
MODEL += '[[llm.prices]]\nmodel = "claude-opus-5-5"\ninput_usd = 4.0\noutput_usd = 20.0\n'


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A run of half a year, and where it is stored."""
    url = f"sqlite:///{tmp_path_factory.mktemp('faults') / 'runs.sqlite'}"
    result = tt.backtest(start="2003-01-01", end="2003-12-31", progress=False)
    return result, result.save(url), url


def run(*words):
    return CliRunner().invoke(app, ["faults", *words])


def test_faults_of_a_stored_run_are_those_of_its_result(stored):
    result, run_id, url = stored
    done = run(run_id, "--db", url, "--least", "0.9", "--json")
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document["below_least"] == []
    assert document["right"]["plans"] == min(40, document["plans"]) > 10
    for found in (tt.faults(result, least=0.9), tt.faults(run_id, db=url, least=0.9)):
        assert json.loads(json.dumps(found.document)) == document
    assert run(run_id, "--db", url, "--least", "0.9").stdout == f"{found}\n"
    assert found.kinds.loc["kill switch on", "codes"] == {"kill_switch": document["right"]["plans"]}


def test_plans_of_a_run_stand_under_the_guardrails_of_its_settings_and_its_active_playbooks(stored):
    envelope = stored[0].settings.envelope.model_copy(update={"allowed_symbols": ("IBM",)})
    settings = stored[0].settings.model_copy(update={"envelope": envelope})
    plans = plans_of_run(stored[0].index, settings)
    assert len(plans) > 10
    for plan in plans:
        assert isinstance(plan, CheckedPlan)
        assert plan.request.invariants.allowed_symbols == ("IBM",)
        assert plan.request.proposal.playbook_id in plan.request.invariants.allowed_playbooks
        assert plan.request.playbook == plan.playbooks.get(plan.request.playbook.id).definition


def test_faults_without_a_run_are_planted_into_plans_over_embedded_bars():
    done = run("--plans", "3")
    assert done.exit_code == 0, done.output
    kinds = [line for line in done.stdout.splitlines() if line.startswith("stop on the wrong side ")]
    assert kinds[0].split()[5:9] == ["3", "3", "0", "0"]
    assert "right plans, as they are: 0 of 3 refused" in done.stdout
    assert "does not apply: the engine counts buckets" in done.stdout
    words = [line for line in done.stdout.splitlines() if line.startswith("as we now know ")]
    assert words[0].split()[4:8] == ["3", "0", "3", "0"]


def test_faults_exit_1_and_name_the_kind_where_less_is_stopped_than_asked_for(stored, monkeypatch):
    _, run_id, url = stored
    monkeypatch.setattr(expectation, "conviction_is_over_confident", lambda *questions: None)
    done = run(run_id, "--db", url, "--least", "0.9", "--plans", "5")
    assert done.exit_code == 1
    assert done.stderr == "thinktwice: less than 90.0 % stopped: conviction 0.93 without cases\n"


def test_faults_of_a_bank_of_ones_own_stand_in_the_table_with_their_texts_escaped(stored, tmp_path):
    _, run_id, url = stored
    (tmp_path / "own.toml").write_text(SURE + HOSTILE)
    done = run(run_id, "--db", url, "--plans", "2", "--bank", str(tmp_path / "own.toml"))
    assert done.exit_code == 0, done.output
    assert "passed, sure: proposal.rationale: \\x1b[31mred\\x1b[0m [bold]" in done.stdout
    assert "\x1b[31m" not in done.stdout


def test_faults_of_a_bank_that_cannot_be_used_exit_2(tmp_path):
    (tmp_path / "own.toml").write_text(SURE)
    done = run("--bank", str(tmp_path / "own.toml"))
    assert done.exit_code == 2
    assert "own.toml' cannot be read: fault.0: " in done.stderr
    assert done.stderr.count("\n") == 1


def test_faults_with_a_reader_that_is_not_configured_exit_2(stored):
    _, run_id, url = stored
    done = run(run_id, "--db", url, "--reader")
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)


@pytest.mark.usefixtures("over_the_cap")
def test_faults_with_a_reader_ask_the_configured_model_where_rules_let_pass(stored, tmp_path, monkeypatch):
    _, run_id, url = stored
    (tmp_path / "model.toml").write_text(MODEL)
    with wire(monkeypatch, GOOD) as server:
        words = ("--reader", "--config", str(tmp_path / "model.toml"), "--db", url, "--plans", "2")
        done = run(run_id, *words)
        assert done.exit_code == 0, done.output
        assert len(server.requests) == 2, "each fault of the bank is stopped before anybody reads"
    assert "models: reply 2 " in done.stdout


def test_faults_with_a_strategist_are_planted_into_plans_that_the_model_proposes_at_the_runs_snapshots(
    stored, tmp_path, monkeypatch
):
    def decide(request):
        first, number = request.bases[0], len(strategist.requested)
        sure = [change("conviction", 0.93)] if number > 2 else []
        because = first["plan"]["because"]
        return ABSTAIN if number == 1 else propose(first["id"], *sure, because=because)

    _, run_id, url = stored
    (tmp_path / "model.toml").write_text(MODEL)
    with wire(monkeypatch, strategist := StrategistOnTheWire(decide)) as server:
        strategist.server = server
        words = ("--strategist", "--config", str(tmp_path / "model.toml"), "--db", url, "--plans", "4")
        done = run(run_id, *words, "--json")
    assert done.exit_code == 0, done.output
    document, right = json.loads(done.stdout), json.loads(done.stdout)["right"]
    assert (document["strategist"], document["asked"], len(strategist.requested)) == (True, 4, 4)
    assert (right["plans"], right["refused"], right["codes"]["over_confident"]) == (3, 2, 2)
    assert document["model"]["outcomes"] == {"reply": 4}
    assert document["kinds"][0]["planted"] == document["kinds"][0]["stopped"] == 1


def test_faults_exit_1_where_the_strategist_proposed_nothing_to_plant_into(stored, tmp_path, monkeypatch):
    _, run_id, url = stored
    seat = 'fast = "anthropic/claude-test"\n'
    (tmp_path / "model.toml").write_text(MODEL.replace(seat, f'{seat}strategist = "anthropic/claude-test"\n'))
    with wire(monkeypatch, strategist := StrategistOnTheWire(lambda request: ABSTAIN)) as server:
        strategist.server = server
        words = ("--strategist", "--config", str(tmp_path / "model.toml"), "--db", url, "--plans", "4")
        done = run(run_id, *words)
    assert done.exit_code == 1, done.output
    assert "0 of 0 refused (95 %: -), proposed at 0 of 4 questions" in done.stdout
    assert done.stderr == ("thinktwice: no fault was planted: 0 plans for 4 questions, 0 of them refused\n")


@pytest.mark.usefixtures("over_the_cap")
def test_faults_exit_1_where_the_reader_gave_no_verdict(stored, tmp_path, monkeypatch):
    _, run_id, url = stored
    (tmp_path / "model.toml").write_text(MODEL.replace("fast = ", "model = "))
    with wire(monkeypatch, answer(message("I would rather not say."))):
        words = ("--reader", "--config", str(tmp_path / "model.toml"), "--db", url, "--plans", "2")
        done = run(run_id, *words)
    assert done.exit_code == 1, done.output
    text = "the second reader gave no verdict on any of 2 plans: "
    assert done.stderr.startswith(f"thinktwice: {text}")
    assert done.stderr.count("\n") == 1


def test_faults_of_a_run_without_a_reflected_plan_are_refused():
    result = tt.backtest(start="2003-01-01", end="2003-06-30", reflection="off", progress=False)
    with pytest.raises(tt.ConfigError, match="the run reflected on no plan by a playbook"):
        tt.faults(result)
    with pytest.raises(tt.ConfigError, match="plans is 0: give 1 or more"):
        tt.faults(result, plans=0)
    with pytest.raises(tt.ConfigError, match="bank 5: give the path of a file or folder"):
        tt.faults(result, bank=5)  # type: ignore[arg-type]


OPEN = {"by_place": "PLACE", "codes": "CODE", "why_broken": "CODE", "why_not": "REASON"}
TEXTS = {"expected", "passed_texts", "below_least"}


def keys_of(document, path=""):
    """Keys as the page writes them."""
    found = set()
    for key, value in document.items():
        name = f"{path}{key}"
        if key in OPEN:
            found.add(f"{name}.{OPEN[key]}")
        elif key == "right":
            found |= keys_of(value, "right.")
        elif key == "kinds":
            found |= set().union(*(keys_of(kind, "kinds[].") for kind in value))
        else:
            found.add(f"{name}[]" if key in TEXTS else name)
    return found


def test_faults_document_has_every_documented_key_and_no_other(stored):
    page = (DOCS / "reference" / "faults-document.md").read_text("utf-8")
    documented = re.findall(r"^\| `([^`]+)`", page, re.MULTILINE)
    assert keys_of(tt.faults(stored[0], plans=1).document) == set(documented)
    assert len(documented) == len(set(documented))
