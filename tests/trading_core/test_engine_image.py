"""The engine's image: machine code where it is for here, and on any doubt the same results by compiling."""

import ast
import lzma
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba.core import event

from hatch_build import below_package
from tools import engine_image as tool
from trading_core import compiled
from trading_core.compiled import (
    IMAGE,
    ROOMS,
    SOURCES,
    EngineImage,
    ImageCache,
    encode_image,
    entry_point,
    pack_image,
    read_image,
    try_out,
)

VALUES = np.arange(5.0)


def scaled_sum(values, start):
    total = start
    for i in range(values.size):
        total += values[i] * 7.0
    return total, start


class Compiled:
    """A function before its first call, with a cache folder of its own, and how often it is compiled."""

    def __init__(self, folder, monkeypatch):
        monkeypatch.setattr(ImageCache, "folder", folder)
        self.function = entry_point(scaled_sum)
        self.heard = event.RecordingListener()

    def answer(self):
        with event.install_listener("numba:compile", self.heard):
            return repr(self.function(VALUES, 1.0))

    @property
    def compilations(self):
        return len(self.heard.buffer) // 2


@pytest.fixture
def path(tmp_path, monkeypatch):
    made = Compiled(tmp_path / "built", monkeypatch)
    target = tmp_path / "image.xz"
    target.write_bytes(encode_image(made.answer(), [ImageCache.every[-1]]))
    _change(
        target, lambda document: _rename(document, "scaled_sum", "sum_scaled")
    )  # the linker knows the first
    return target


@pytest.fixture
def told():
    return []


@pytest.fixture
def fresh(tmp_path, monkeypatch):
    return Compiled(tmp_path / "fresh", monkeypatch)


def _change(path, edit):
    document = read_image(path)
    edit(document)
    path.write_bytes(pack_image(document))


def _rename(document, old, new):
    for part in document["parts"].values():
        for name, text in part.items():
            part[name] = text.replace(old, new)


def test_function_of_an_image_is_not_compiled_and_says_the_same(path, fresh):
    image = EngineImage(path)
    try_out(fresh.answer, image)
    assert (fresh.answer(), fresh.compilations, len(image.loaded)) == ("(71.0, 1.0)", 0, 1)


def test_function_of_an_image_is_kept_for_processes_without_one(path, fresh, tmp_path, monkeypatch):
    try_out(fresh.answer, EngineImage(path))
    again = Compiled(tmp_path / "fresh", monkeypatch)
    assert (again.answer(), again.compilations) == ("(71.0, 1.0)", 0)


def test_image_is_asked_for_nothing_outside_its_self_test(path, fresh):
    try_out(lambda: "", EngineImage(path))
    assert (fresh.answer(), fresh.compilations) == ("(71.0, 1.0)", 1)


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (lambda document: document["made_for"].update(sources="0" * 64), "is for sources 0000"),
        (lambda document: document["made_for"].update(numba="0.1"), "is for numba 0.1, here is "),
        (lambda document: document["made_for"].update(llvmlite="0.1"), "is for llvmlite 0.1, here is "),
        (lambda document: document["made_for"].update(platform="vax"), "is for platform vax, here is "),
        (lambda document: document["features"].append("3dnow"), "is for processors with 3dnow"),
    ],
)
def test_image_that_is_not_for_here_compiles_says_why_and_gives_the_same(edit, reason, path, fresh, told):
    _change(path, edit)
    try_out(fresh.answer, EngineImage(path, told.append))
    assert reason in told[0]
    assert (fresh.answer(), fresh.compilations) == ("(71.0, 1.0)", 1)


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-9], lambda data: b"", lambda data: data[:99] + data[90:]]
)
def test_damaged_image_compiles_says_so_and_gives_the_same(damage, path, fresh, told):
    path.write_bytes(damage(path.read_bytes()))
    try_out(fresh.answer, EngineImage(path, told.append))
    assert f"{path} cannot be read: " in told[0]
    assert (fresh.answer(), fresh.compilations) == ("(71.0, 1.0)", 1)


@pytest.mark.parametrize(
    "edit",
    [
        lambda content: content.replace(b"7.000000e+00", b"8.000000e+00"),
        lambda content: content.replace(b'"returns": "float64 float64"', b'"returns": "float64"'),
        lambda content: content.replace(b"define ", b"defined "),
        lambda content: content[compiled.DIGEST :],
        lambda content: content[: compiled.DIGEST] + b"[" * 100_000,
        lambda content: b"{}",
        lambda content: b"null",
        lambda content: b"",
    ],
)
def test_image_of_another_content_compiles_says_so_and_gives_the_same(edit, path, fresh, told):
    content = lzma.decompress(path.read_bytes())
    assert edit(content) != content
    path.write_bytes(lzma.compress(edit(content)))
    try_out(fresh.answer, EngineImage(path, told.append))
    assert told == [f"{path} is not as it was built: the engine is compiled"]
    assert (fresh.answer(), fresh.compilations) == ("(71.0, 1.0)", 1)


@pytest.mark.parametrize("kind", ["nbi", "nbc"])
@pytest.mark.parametrize("damage", [lambda data: data[:-9], lambda data: b"", lambda data: b"text"])
def test_damaged_file_of_the_cache_is_told_once_and_made_again(
    kind, damage, path, fresh, told, tmp_path, monkeypatch
):
    monkeypatch.setattr(ImageCache, "emptied", [])
    fresh.answer()
    [file] = (tmp_path / "fresh").rglob(f"*.{kind}")
    file.write_bytes(damage(file.read_bytes()))
    mended = Compiled(tmp_path / "fresh", monkeypatch)
    try_out(mended.answer, EngineImage(path, told.append))
    assert (mended.answer(), mended.compilations) == ("(71.0, 1.0)", 0), "the image has it"
    assert told == ImageCache.emptied
    assert str(file.parent) in told[0]
    assert told[0].endswith("): it is made again")
    again = Compiled(tmp_path / "fresh", monkeypatch)
    assert (again.answer(), again.compilations, len(told)) == ("(71.0, 1.0)", 0, 1)


def test_damaged_file_of_the_cache_is_compiled_where_no_image_is_asked(fresh, tmp_path, monkeypatch):
    monkeypatch.setattr(ImageCache, "emptied", [])
    fresh.answer()
    for file in (tmp_path / "fresh").rglob("*.nbi"):
        file.write_bytes(file.read_bytes()[:-9])
    mended = Compiled(tmp_path / "fresh", monkeypatch)
    assert (mended.answer(), mended.compilations) == ("(71.0, 1.0)", 1)
    again = Compiled(tmp_path / "fresh", monkeypatch)
    assert (again.answer(), again.compilations) == ("(71.0, 1.0)", 0)


def test_cache_of_what_others_compile_stays_where_their_settings_say(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "theirs"))
    ours = entry_point(scaled_sum)
    theirs: Any = numba.njit(cache=True)(scaled_sum)
    assert ImageCache.folder in Path(ours._cache.cache_path).parents
    assert tmp_path / "theirs" in Path(theirs._cache.cache_path).parents


def test_image_that_is_not_there_compiles(tmp_path, fresh):
    image = EngineImage(tmp_path / "none.xz")
    try_out(fresh.answer, image)
    assert not image.is_usable
    assert (fresh.answer(), fresh.compilations) == ("(71.0, 1.0)", 1)


@pytest.mark.parametrize(("old", "new"), [("define ", "defined "), ("float64", "float_64")])
def test_function_that_cannot_be_read_compiles_says_so_and_gives_the_same(old, new, path, fresh, told):
    _change(path, lambda document: _rename(document, old, new))
    try_out(fresh.answer, EngineImage(path, told.append))
    assert f"{path} is damaged: " in told[0]
    assert (fresh.answer(), fresh.compilations) == ("(71.0, 1.0)", 1)


def test_function_that_computes_wrongly_fails_the_self_test_and_is_compiled(
    path, fresh, told, tmp_path, monkeypatch
):
    _change(path, lambda document: _rename(document, "7.000000e+00", "8.000000e+00"))
    seen = []

    def self_test():
        seen.append(fresh.answer())
        return seen[-1]

    try_out(self_test, EngineImage(path, told.append))
    assert seen == ["(81.0, 1.0)", "(71.0, 1.0)"]
    assert f"{path} failed its self-test: the engine is compiled" in told[0]
    assert (fresh.answer(), fresh.compilations) == ("(71.0, 1.0)", 1)
    again = Compiled(tmp_path / "fresh", monkeypatch)
    assert (again.answer(), again.compilations) == ("(71.0, 1.0)", 0), "what is kept was compiled"


def test_image_of_functions_that_came_from_a_cache_is_refused(path, fresh, tmp_path, monkeypatch):
    fresh.answer()
    again = Compiled(tmp_path / "fresh", monkeypatch)
    again.answer()
    with pytest.raises(compiled.UnusableImage, match="scaled_sum was loaded"):
        encode_image("", [ImageCache.every[-1]])


def test_sources_have_one_hash_in_a_checkout_and_in_a_wheel(tmp_path):
    for place in SOURCES:
        for source in _files(place):
            target = tmp_path / source.relative_to(ROOMS)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(below_package(source.read_text("utf-8"), str(source)), "utf-8")
    assert compiled.hash_sources(tmp_path) == compiled.hash_sources()
    (tmp_path / "schemas" / "vocabulary.py").write_text("", "utf-8")
    assert compiled.hash_sources(tmp_path) != compiled.hash_sources()


def test_sources_hold_what_compiled_functions_read_of_other_modules():
    files = {source for place in SOURCES for source in _files(place)}
    users = [source for source in files if "trading_core.compiled import" in source.read_text("utf-8")]
    read = {ROOMS / name for source in users for name in _imported(source)}
    assert len(users) > 15
    assert read <= files


def _files(place):
    return sorted((ROOMS / place).rglob("*.py")) or [ROOMS / place]


def _imported(source):
    for node in ast.walk(ast.parse(source.read_text("utf-8"))):
        if not isinstance(node, ast.ImportFrom):
            continue
        module = node.module or ""
        if module.split(".")[0] in ("schemas", "services", "trading_core"):
            name = module.replace(".", "/")
            is_module = (ROOMS / f"{name}.py").is_file()
            yield from [f"{name}.py"] if is_module else [f"{name}/{found.name}.py" for found in node.names]


def test_shipped_image_holds_everything_that_python_calls():
    document = read_image(IMAGE)
    ours = {name.split()[0].rpartition(".")[2] for name in document["parts"] if "claim_path" not in name}
    assert ours == {"advance", "count", "extend", "on_tick", "run", "scan", "sum_returns"}


def test_check_of_the_image_names_the_command_where_it_is_stale(path, monkeypatch, capsys):
    monkeypatch.setattr(tool, "IMAGE", path)
    assert tool.main(["--check"]) == 0
    _change(path, lambda document: document["made_for"].update(sources="0"))
    assert tool.main(["--check"]) == 1
    assert capsys.readouterr().err.endswith(": run `uv run python -m tools.engine_image`\n")
