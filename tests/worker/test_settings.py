import math
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import ConfigError
from schemas.settings import LlmSettings, Settings
from worker.settings import ENVIRONMENT, FIELDS, SECTIONS, load_settings

NAMES = sorted({key.split(".")[-1] for key in FIELDS} | set(SECTIONS) | {"sed", "mode "})
VALUES = st.recursive(
    st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["off", "full", "long", "1d"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
    max_leaves=8,
)


def toml_text(value):
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else str(value).replace("+", "")
    if isinstance(value, int):
        return str(value)
    if isinstance(value, list):
        return f"[{', '.join(map(toml_text, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{toml_text(key)} = {toml_text(inner)}" for key, inner in value.items()) + "}"
    escaped = "".join(char if char.isalnum() and char.isascii() else f"\\U{ord(char):08x}" for char in value)
    return f'"{escaped}"'


def settings_of(tmp_path, text, environment=None, flags=None):
    path = tmp_path / "config.toml"
    path.write_text(text)
    return load_settings(path, environment=environment or {}, flags=flags)


def test_settings_without_anything_are_the_defaults():
    resolved = load_settings(environment={})
    assert resolved.settings == Settings()
    assert {origin for _, _, origin in resolved.rows()} == {"default"}
    assert [key for key, _, _ in resolved.rows()] == list(FIELDS)


@pytest.mark.parametrize(
    ("flag", "variable", "in_file", "expected"),
    [
        (4, "3", "2", (4, "flag --seed")),
        (None, "3", "2", (3, "env THINKTWICE_SEED")),
        (None, None, "2", (2, "file ")),
        (None, None, None, (0, "default")),
    ],
)
def test_settings_flag_beats_environment_beats_file_beats_default(
    tmp_path, flag, variable, in_file, expected
):
    environment = {} if variable is None else {"THINKTWICE_SEED": variable}
    text = "" if in_file is None else f"seed = {in_file}"
    resolved = settings_of(tmp_path, text, environment, {"seed": ("--seed", flag)})
    value, origin = expected
    assert resolved.settings.seed == value
    assert resolved.origins.get("seed", "default").startswith(origin)


def test_settings_runtime_is_not_hashed_and_everything_else_is(tmp_path):
    base = settings_of(tmp_path, "").settings.config_hash
    assert (
        settings_of(tmp_path, "[runtime]\ndb = 'sqlite:///x.db'\nflush_rows = 7").settings.config_hash == base
    )
    assert settings_of(tmp_path, "[gate]\nq = 0.2").settings.config_hash != base


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("[relfection]\nmode = 'off'", "no section or setting 'relfection'. Did you mean 'reflection'?"),
        ("[feed]\npoll_s = 1.0", "no section or setting 'feed'. Did you mean [runtime.feed]?"),
        ("feed = 1", "no section or setting 'feed'. Did you mean [runtime.feed]?"),
        ("sed = 1", "Did you mean 'seed'?"),
        ("[llm]\nzzqq = 1", "quote_per_usd, per_event, per_day, per_run, decision_share, attempts"),
        ("[execution]\nfeebps = 1", "no setting 'feebps' in section [execution]. Did you mean 'fee_bps'?"),
        ("[judge]\nzzz = 1", "It has replan"),
        ("[execution]\nfee_bps = 'five'", "execution.fee_bps = 'five': input should be a valid number"),
        ("[execution]\nfee_bps = 5000.0", "less than or equal to 1000"),
        ("seed = '3'", "seed = '3': input should be a valid integer"),
        ("seed = true", "seed = True"),
        ("reflection = 'off'", "'reflection' is a section"),
        ("[policy_loop]\nevents = ['heartbeats']", "policy_loop.events[0]"),
        ("[envelope]\nno_learn_zones = [{start = 1, end = 2, reson = 'x'}]", "no_learn_zones[0].reson"),
        ("[gate]\nreference_r = nan", "the number is not finite"),
        ("seed = ", "is not TOML"),
        ("seed = 1\nseed = 2", "is not TOML"),
        ("[reflection]\nmode = 'full'", "needs a model: set llm.model"),
    ],
)
def test_settings_that_do_not_fit_name_key_value_and_next_step(tmp_path, text, part):
    with pytest.raises(ConfigError) as caught:
        settings_of(tmp_path, text)
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value", "part"),
    [
        ("THINKTWICE_SEDE", "1", "Did you mean 'THINKTWICE_SEED'?"),
        ("THINKTWICE_GATE_Q", "1", "Did you mean 'THINKTWICE_GATE__Q'?"),
        ("THINKTWICE_GATE__Q", "much", "env THINKTWICE_GATE__Q: gate.q = 'much'"),
        ("THINKTWICE_DATA__SYMBOLS", "[1", "is not a JSON list"),
    ],
)
def test_settings_environment_that_does_not_fit_is_named(name, value, part):
    with pytest.raises(ConfigError) as caught:
        load_settings(environment={name: value, "HOME": "/"})
    assert part in str(caught.value)


def test_settings_environment_lists_booleans_and_nothing():
    environment = {
        "THINKTWICE_DATA__SYMBOLS": "AAPL, IBM",
        "THINKTWICE_POLICY_LOOP__EVENTS": '["heartbeat"]',
        "THINKTWICE_HIGH_LEVEL__ENABLED": "false",
        "THINKTWICE_POLICY_LOOP__HEARTBEAT_S": "",
        "THINKTWICE_CACHE_DIR": "/somewhere",
    }
    settings = load_settings(environment=environment).settings
    assert settings.data.symbols == ("AAPL", "IBM")
    assert [str(event) for event in settings.policy_loop.events] == ["heartbeat"]
    assert not settings.high_level.enabled
    assert settings.policy_loop.heartbeat_s is None


def test_settings_file_that_cannot_be_read_is_one_line(tmp_path):
    for path in (tmp_path / "missing.toml", tmp_path):
        with pytest.raises(ConfigError, match="config file"):
            load_settings(path, environment={})
    (tmp_path / "latin.toml").write_bytes(b"seed = 1 # \xe4")
    with pytest.raises(ConfigError, match="not UTF-8"):
        load_settings(tmp_path / "latin.toml", environment={})


def settings_or_complaint(load):
    try:
        return load().settings
    except ConfigError as error:
        return str(error)


@given(st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=4))
def test_settings_any_toml_gives_settings_or_one_line(tmp_path_factory, tree):
    text = "\n".join(f"{toml_text(key)} = {toml_text(value)}" for key, value in tree.items())
    assert tomllib.loads(text).keys() == tree.keys()
    found = settings_or_complaint(lambda: settings_of(tmp_path_factory.getbasetemp(), text))
    if isinstance(found, str):
        assert "\n" not in found
    else:
        assert Settings.model_validate(found.payload()).config_hash == found.config_hash


@given(st.dictionaries(st.sampled_from(sorted(ENVIRONMENT)), st.text(max_size=12), max_size=3))
def test_settings_any_environment_gives_settings_or_one_line(environment):
    found = settings_or_complaint(lambda: load_settings(environment=environment))
    assert isinstance(found, Settings) or "\n" not in found


def test_seat_without_a_model_and_word_that_names_none_are_refused_with_the_next_step(tmp_path):
    file = tmp_path / "s.toml"
    next_step = "needs a model: set llm.model (--model), like anthropic/claude-haiku-5-5"
    for text, reply in (
        ("[policy_loop]\nstrategist = 'model'", f"policy_loop.strategist 'model' {next_step}"),
        ("[judge]\nreplan = 'model'", f"judge.replan 'model' {next_step}"),
        ("[reflection]\nmode = 'full'\n[llm]\nslow = 'openai/x'", f"reflection.mode 'full' {next_step}"),
        (
            "[llm]\nmodel = 'gpt-6'",
            "'gpt-6' names no provider and model: write provider/name, like anthropic/",
        ),
        ("[llm]\nfast = 'openai/'", "'openai/' names no provider and model"),
    ):
        file.write_text(text, "utf-8")
        with pytest.raises(ConfigError) as caught:
            load_settings(file, environment={})
        assert reply in str(caught.value)


def keys_of(payload: dict[str, Any], prefix: str = "") -> set[str]:
    found: set[str] = set()
    for name, value in payload.items():
        key = f"{prefix}{name}"
        found |= {key} if key in FIELDS else keys_of(value, f"{key}.")
    return found


def test_hash_covers_every_setting_but_where_things_lie_and_how_they_are_asked():
    left_out = {key for key in FIELDS if key.startswith("runtime.")} | {"llm.base_url"}
    left_out |= {"planner.schema_ttl_s", "planner.history", "planner.servers"}
    assert keys_of(Settings().hashed_values()) == set(FIELDS) - left_out


@pytest.mark.parametrize("word", ["openai/gpt-6-sol", "openrouter/vendor/x:free@http://127.0.0.1:1/v1"])
def test_model_of_every_seat_is_one_word_of_a_file_the_environment_or_an_option(tmp_path, word):
    file = tmp_path / "s.toml"
    file.write_text(f"llm.model = '{word}'", "utf-8")
    ways = (
        load_settings(file, environment={}),
        load_settings(environment={"THINKTWICE_LLM__MODEL": word}),
        load_settings(environment={}, flags={"llm.model": ("--model", word)}),
    )
    for resolved in ways:
        llm = resolved.settings.llm
        assert {llm.fast_model, llm.slow_model, llm.strategist_model, llm.judge_model} == {word}
    seats = {"THINKTWICE_LLM__MODEL": word, "THINKTWICE_LLM__SLOW": "ollama/x"}
    llm = load_settings(environment=seats).settings.llm
    assert (llm.fast_model, llm.slow_model, llm.judge_model) == (word, "ollama/x", "ollama/x")


def test_hash_reads_what_is_asked_and_not_where():
    def of(**llm: Any) -> str:
        return Settings(llm=LlmSettings.model_validate(llm)).config_hash

    assert of(base_url="http://127.0.0.1:1/v1") == of(), "where a model is asked decides nothing"
    assert of(model="vllm/x@http://127.0.0.1:1/v1", judge="vllm/y") == of(
        model="vllm/x@http://127.0.0.1:2/v1", judge="vllm/y@http://127.0.0.1:2/v1"
    )
    changes: tuple[dict[str, Any], ...] = (
        {},
        {"structured_output": False},
        {"accept_models": ("x",)},
        {"model": "vllm/x"},
        {"effort": "high"},
    )
    assert len({of(**change) for change in changes}) == len(changes)
