import os
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.errors import ConfigError
from schemas.playbook import PlaybookDefinition
from services.playbooks import loader
from services.playbooks.loader import EMBEDDED, load_playbooks, parse_playbook, read_playbook
from tests.each_case import check_each

GOOD = (EMBEDDED / "trend_pullback.toml").read_text("utf-8")


def refusal(text: str | bytes, name: str = "mine.toml") -> str:
    data = text.encode() if isinstance(text, str) else text
    with pytest.raises(ConfigError) as caught:
        parse_playbook(data, Path(name))
    message = str(caught.value)
    assert "\n" not in message.split("is not TOML")[0]
    assert repr(name) in message
    return message


def changed(old: str, new: str) -> str:
    assert GOOD.count(old) >= 1
    return GOOD.replace(old, new)


@check_each(
    ("text", "words"),
    [
        (
            changed("setup = ", "stup = "),
            ["rules.long.setup", "missing", "Is it 'stup'?"],
        ),
        (changed("enabled = true", "enabeld = true"), ["enabeld", "unknown key", "Did you mean 'enabled'?"]),
        (changed("[rules.long]", "[rules.lnog]"), ["rules.lnog", "'long'"]),
        (
            changed('trend = ["up"]', 'trend = ["upp"]'),
            ["eligibility.long.trend.0", "'upp'", "Did you mean 'up'?"],
        ),
        (
            changed("grid = [0.75, 1.0, 1.25]", "grid = [0.75, 1.25]"),
            ["parameters.failure_atr", "1.0 is not on its grid"],
        ),
        (
            changed("grid = [0.75, 1.0, 1.25]", "grid = [1.25, 1.0]"),
            ["parameters.failure_atr", "must ascend"],
        ),
        (changed('role = "invalidation"', 'role = "invalid"'), ["parameters.failure_atr.role", "'invalid'"]),
        (
            changed("{trend} and low", "{trnd} and low"),
            ["rules.long.setup", "{trnd}", "Did you mean 'trend'?"],
        ),
        (changed("low < ema_20", "low < eam_20"), ["rules.long.setup", "eam_20", "ema_20"]),
        (changed("low < ema_20 and", "low <"), ["rules.long.setup"]),
        (changed('stop = "min(', 'stop = "1 < min('), ["rules.long.stop", "number", "boolean"]),
        (
            changed('invalidation = "close < ', 'invalidation = "close - '),
            ["rules.long.invalidation", "boolean"],
        ),
        (changed('{failure_atr} * atr_14"', '} * atr_14"'), ["rules.long.invalidation", "brace"]),
        (changed("timeframes = []", 'timeframes = ["1day"]'), ["timeframes", "'1day'", "'1d'"]),
        (
            changed('trend = ["up"]', 'trend = ["up"]\nbanned = ["up/hi"]'),
            ["eligibility.long.banned", "'up/hi'", "'up/high'"],
        ),
        (changed("hold_p90_bars = 15", "hold_p90_bars = 3"), ["expectation", "hold_p90_bars 3"]),
        (changed("hit_rate = 0.4", "hit_rate = 1.4"), ["expectation.hit_rate", "1.4"]),
        (changed("hit_rate = 0.4", "hit_rate = nan"), ["expectation.hit_rate", "nan"]),
        (changed("hit_rate = 0.4", "hit_rate = true"), ["expectation.hit_rate", "True"]),
        (changed("hit_rate = 0.4", 'hit_rate = "0.4"'), ["expectation.hit_rate", "'0.4'"]),
        (changed("hit_rate = 0.4", "hit_rate = 2001-01-01"), ["expectation.hit_rate", "date"]),
        (changed("version = 1", "version = 1\nknown_at = 5"), ["known_at", "remove"]),
        (changed("minimum_episodes = 20", "minimum_episodes = 5"), ["minimum_episodes", "20", "5"]),
        (changed("[parameters.trend]", "[parameters.Trend]"), ["parameters.Trend", "lower case"]),
        (
            GOOD + "[parameters.spare]\nvalue = 1\ngrid = [1, 2]\n",
            ["parameters.spare", "no rule uses {spare}"],
        ),
        (
            changed("{failure_atr} * atr_14", "{failure_atr} * atr_14 - 0 * ({pa} + {pb} + {pc})")
            + "".join(
                f"[parameters.{n}]\nvalue = 1\ngrid = [1, 2, 3, 4, 5, 6, 7, 8]\n" for n in ("pa", "pb", "pc")
            ),
            [
                "rules.long.invalidation",
                "failure_atr, pa, pb, pc",
                "1536 rules",
                "at most 1000",
                "shorten a grid",
            ],
        ),
        (
            changed('trend = ["up"]', 'trend = ["up"]\nvolatilty = ["low"]'),
            ["eligibility.long.volatilty", "unknown key", "Did you mean 'volatility'?"],
        ),
        ("id = ", ["is not TOML"]),
        ("", ["missing"]),
        (b"\xff\xfe", ["UTF-8"]),
        (b"#" * 70_000, ["70000"]),
        ("a = " + "[" * 5_000, ["the file"]),
        ("a = " + "9" * 5_000, ["the file"]),
    ],
)
def test_playbook_file_with_a_fault_is_refused_with_file_field_and_reason(text, words):
    message = refusal(text)
    for word in words:
        assert word in message


def test_parameter_whose_grid_holds_a_value_that_does_not_parse_is_refused():
    text = changed("close - {stop_atr} * atr_14", "close - {stop_atr} * ema_{stop_atr}")
    assert "rules.long.stop" in refusal(text)  # ema_1.5 is no feature, although ema_2 is


def test_folder_that_is_missing_empty_or_has_an_id_twice_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="is no folder, file or playbook of ours"):
        load_playbooks(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match=r"no \*\.toml"):
        load_playbooks(tmp_path)
    (tmp_path / "a.toml").write_text(GOOD)
    (tmp_path / "b.toml").write_text(GOOD)
    with pytest.raises(ConfigError, match=r"'b\.toml', id: 'trend_pullback' is the id of 'a\.toml' already"):
        load_playbooks(tmp_path)
    (tmp_path / "b.toml").unlink()
    (tmp_path / "b.toml").mkdir()
    with pytest.raises(ConfigError, match="cannot be read"):
        load_playbooks(tmp_path)


def test_playbook_of_the_traders_own_folder_is_loaded(tmp_path):
    (tmp_path / "mine.toml").write_text(changed('id = "trend_pullback"', 'id = "mine"'))
    assert [item.id for item in load_playbooks(tmp_path)] == ["mine"]


@given(st.binary(max_size=400))
def test_playbook_file_of_any_bytes_gives_a_definition_or_a_config_error(data):
    assert_definition_or_config_error(data)


@settings(max_examples=200)
@given(st.data())
def test_playbook_file_with_any_leaf_replaced_gives_a_definition_or_a_config_error(data):
    lines = GOOD.splitlines()
    row = data.draw(st.sampled_from([k for k, line in enumerate(lines) if " = " in line]))
    scalars = st.one_of(
        st.booleans(),
        st.integers(),
        st.floats(width=32),
        st.sampled_from(['"x"', '"{"', '"{trend}"', "{}", "1e999"]),
    )
    value = data.draw(st.one_of(scalars, st.lists(scalars, max_size=3)))
    text = (
        str(value).replace("True", "true").replace("False", "false").replace("'\"", '"').replace("\"'", '"')
    )
    lines[row] = lines[row].split(" = ")[0] + " = " + text.replace("'", "")
    assert_definition_or_config_error("\n".join(lines).encode())


@given(st.text(max_size=60))
def test_playbook_rule_of_any_text_gives_a_definition_or_a_config_error(text):
    quoted = '"' + "".join(f"\\U{ord(char):08x}" for char in text if not 0xD800 <= ord(char) < 0xE000) + '"'
    old = next(line for line in GOOD.splitlines() if line.startswith("setup"))
    assert_definition_or_config_error(GOOD.replace(old, f"setup = {quoted}").encode())


def assert_definition_or_config_error(data: bytes) -> None:
    found = attempt(data)
    if isinstance(found, ConfigError):
        assert "'any.toml'" in str(found)
    else:
        assert len(found.content_hash) == 64


def attempt(data: bytes) -> PlaybookDefinition | ConfigError:
    try:
        return parse_playbook(data, Path("any.toml"))
    except ConfigError as error:
        return error


def test_embedded_files_are_read_as_they_are_written():
    document = tomllib.loads(GOOD)
    found = {item.id: item for item in load_playbooks()}["trend_pullback"]
    assert found.rules["long"].setup == document["rules"]["long"]["setup"]
    assert found.parameters["stop_atr"].value == document["parameters"]["stop_atr"]["value"]
    assert found.known_at is None


def test_file_that_has_not_changed_is_parsed_once_and_one_that_has_is_read_anew(tmp_path):
    mine = tmp_path / "mine.toml"
    mine.write_text(GOOD)
    first = read_playbook(mine)
    assert read_playbook(mine) is first
    was = mine.stat()
    mine.write_text(changed("horizon_bars = 15", "horizon_bars = 16"))
    os.utime(mine, ns=(was.st_atime_ns, was.st_mtime_ns))
    assert mine.stat().st_size == was.st_size
    assert (first.horizon_bars, read_playbook(mine).horizon_bars) == (15, 16)
    mine.write_text(GOOD)
    assert read_playbook(mine) == first


def test_name_is_that_of_a_file_or_a_folder_of_ours_and_a_path_goes_before_it(tmp_path, monkeypatch):
    ours = tmp_path / "ours"
    (ours / "textbook").mkdir(parents=True)
    text = (EMBEDDED / "channel_breakout.toml").read_text()
    for path, name in ((ours, "breakout"), (ours / "textbook", "donchian"), (ours / "textbook", "dual")):
        (path / f"{name}.toml").write_text(text.replace("channel_breakout", name))
    monkeypatch.setattr(loader, "EMBEDDED", ours)
    monkeypatch.chdir(tmp_path)
    found = [[book.id for book in load_playbooks(None if name is None else Path(name))]
             for name in (None, "breakout", "donchian", "textbook")]  # fmt: skip
    assert found == [["breakout"], ["breakout"], ["donchian"], ["donchian", "dual"]]
    (tmp_path / "donchian").mkdir()
    (tmp_path / "donchian" / "mine.toml").write_text(text)
    assert [book.id for book in load_playbooks(Path("donchian"))] == ["channel_breakout"]
