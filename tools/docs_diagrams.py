"""Diagrams of the architecture page: what imports what, who holds whom, which state follows.

Nothing is imported but the table of transitions; the rest is read from syntax trees, so a diagram cannot be
wrong about the code. Called by `docs_reference`.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

from tools.docs_pages import ROOT
from trading_core.kernel.state_machine import TRANSITIONS

ROOMS = ("worker", "agents", "services", "trading_core", "prompts", "schemas")
BOOTSTRAP = ROOT / "worker" / "bootstrap.py"
# Data and passive tools that nearly everything receives; they would hide who works with whom.
PASSIVE = frozenset({"Market", "TickGuard", "SharedColumns", "TickEventDecoder"})


def mermaid(kind: str, lines: list[str]) -> str:
    """A fenced Mermaid diagram."""
    return "\n".join(["```mermaid", kind, *(f"    {line}" for line in lines), "```"])


def sources(room: str) -> Iterator[Path]:
    """The modules of a room, in path order."""
    return iter(sorted((ROOT / room).rglob("*.py")))


def list_imports(path: Path) -> Iterator[str]:
    """Dotted names of the modules that a source imports, wherever in the file it does so."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def room_imports() -> set[tuple[str, str]]:
    """Pairs (room, room it imports)."""
    found = set()
    for room in ROOMS:
        for path in sources(room):
            tops = {name.split(".")[0] for name in list_imports(path)}
            found |= {(room, top) for top in tops if top in ROOMS and top != room}
    return found


def rooms_diagram() -> str:
    """Rooms and the imports between them."""
    return mermaid("flowchart TD", [f"{importer} --> {other}" for importer, other in sorted(room_imports())])


def service_part(module: str) -> str:
    """The package inside `services` of a module; modules at the top of the room are the loops."""
    parts = module.split(".")
    inner = ROOT.joinpath(*parts[:2])
    return parts[1] if len(parts) > 1 and inner.is_dir() else "loops"


def service_imports() -> set[tuple[str, str]]:
    """Pairs (package of `services`, package it imports)."""
    found = set()
    for path in sources("services"):
        own = service_part(".".join(path.relative_to(ROOT).with_suffix("").parts))
        parts = {service_part(name) for name in list_imports(path) if name.split(".")[0] == "services"}
        found |= {(own, part) for part in parts if part != own}
    return found


def services_diagram() -> str:
    """Packages of `services` and the imports between them."""
    lines = ['loops["services/*.py: the loops and what they share"]']
    return mermaid(
        "flowchart LR", lines + [f"{importer} --> {other}" for importer, other in sorted(service_imports())]
    )


def states_diagram() -> str:
    """The legal transitions."""
    lines = [f"{source} --> {target}" for source, target in sorted(TRANSITIONS)]
    return mermaid("stateDiagram-v2", ["[*] --> IDLE", *lines])


Held = list[tuple[str, bool]]
OWN = "own"


class Wiring:
    """Who is given whom in `bootstrap.assemble`: classes, and edges (holder, held, only through a reader).

    What is taken of an object is the class of its field, or the object's where the field may hold several.
    Functions of the same module, and those of ours that it imports, are followed with what they are given.
    """

    def __init__(
        self,
        tree: ast.Module,
        room: str = "worker",
        start: str = "assemble",
        names: dict[str, Held] | None = None,
    ) -> None:
        self.homes = {
            alias.asname or alias.name: node.module or ""
            for node in tree.body
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
        self.rooms = {name: home.split(".")[0] for name, home in self.homes.items()}
        self.rooms |= dict.fromkeys((node.name for node in classes), room)
        self.fields = {
            (node.name, field.target.id): (
                field.annotation.id if isinstance(field.annotation, ast.Name) else node.name
            )
            for node in classes
            for field in node.body
            if isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(field.annotation, ast.Name | ast.BinOp)
        }
        self.edges: set[tuple[str, str, bool]] = set()
        self._functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        self._outer = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        self.held = self._result(start, names or {})

    def _result(self, name: str, names: dict[str, Held]) -> Held:
        """What a function returns, when its parameters are bound to `names`."""
        if name not in self._functions:
            return []
        for node in ast.walk(self._functions[name]):
            if isinstance(node, ast.Assign):
                self._bind(node, names)
        returned = [node for node in ast.walk(self._functions[name]) if isinstance(node, ast.Return)]
        return [end for node in returned if node.value is not None for end in self._hold(node.value, names)]

    def _bind(self, node: ast.Assign, names: dict[str, Held]) -> None:
        """Bind the names of an assignment, element by element where there are several."""
        pairs: list[tuple[ast.expr, ast.expr]] = [(target, node.value) for target in node.targets]
        target = node.targets[0]
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            pairs = list(zip(target.elts, node.value.elts, strict=True))
        for name, value in pairs:
            if isinstance(name, ast.Name):
                names[name.id] = self._hold(value, names)

    def _hold(self, value: ast.expr, names: dict[str, Held]) -> Held:
        """What an argument gives to its receiver: classes, and whether only a reader of each."""
        if isinstance(value, ast.Name):
            return names.get(value.id, [])
        if isinstance(value, ast.Attribute):
            taken = [
                (self.fields.get((name, value.attr)), reads) for name, reads in self._hold(value.value, names)
            ]
            return [  # a text is no part
                (name, reads or name.endswith("Reader")) for name, reads in taken if name in self.rooms
            ]
        if isinstance(value, ast.IfExp):
            return [*self._hold(value.body, names), *self._hold(value.orelse, names)]
        if not isinstance(value, ast.Call):
            return []
        if isinstance(value.func, ast.Attribute):
            if isinstance(value.func.value, ast.Name) and value.func.value.id == OWN:
                return self._hold(value.args[0], names)  # what a caller puts around a part stands for it
            if value.func.attr == "of":
                return self._make(ast.Call(value.func.value, value.args, value.keywords), names)
            reads = value.func.attr == "reader"
            return [(name, True) for name, _ in self._hold(value.func.value, names)] if reads else []
        return self._make(value, names) if isinstance(value.func, ast.Name) else []

    def _make(self, call: ast.Call, names: dict[str, Held]) -> Held:
        """The result of a function of the module, or an object of ours with what it is given."""
        name = call.func.id if isinstance(call.func, ast.Name) else ""
        given = [self._hold(value, names) for value in call.args]
        named = {keyword.arg or "": self._hold(keyword.value, names) for keyword in call.keywords}
        if name in self._functions:
            around = {} if name in self._outer else names  # a function within one sees its names
            return self._result(name, around | bound(self._functions[name], given) | named)
        if name[:1].islower() and self.rooms.get(name) in ROOMS:
            return self._follow(name, given, named)
        if not name[:1].isupper() or name in PASSIVE or self.rooms.get(name) not in ROOMS:
            return []
        for other, reads in (end for held in (*given, *named.values()) for end in held):
            self.edges.add((name, other, reads))
        return [(name, False)]

    def _follow(self, name: str, given: list[Held], named: dict[str, Held]) -> Held:
        """The result of a function of another module of ours, with the edges that it draws."""
        home = ROOT.joinpath(*self.homes[name].split(".")).with_suffix(".py")
        if not home.exists():
            return []
        tree = ast.parse(home.read_text("utf-8"))
        functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name]
        room = self.homes[name].split(".")[0]
        other = Wiring(tree, room, name, *(bound(function, given) | named for function in functions))
        self.edges |= other.edges
        self.rooms, self.fields = other.rooms | self.rooms, other.fields | self.fields
        return other.held


def bound(function: ast.FunctionDef, given: list[Held]) -> dict[str, Held]:
    """What the positional parameters of a function are given."""
    return dict(zip((parameter.arg for parameter in function.args.args), given, strict=False))


def wiring_diagram() -> str:
    """Who holds whom in a session; a dotted line is a read-only handle."""
    found = Wiring(ast.parse(BOOTSTRAP.read_text("utf-8")))
    by_room: dict[str, list[str]] = {}
    for name in sorted({end for holder, other, _ in found.edges for end in (holder, other)}):
        by_room.setdefault(found.rooms[name], []).append(name)
    lines = []
    for room in ROOMS:
        if room in by_room:
            lines += [f"subgraph {room}", *(f"    {name}" for name in by_room[room]), "end"]
    lines += [
        f"{holder} {'-.->' if reads else '-->'} {other}" for holder, other, reads in sorted(found.edges)
    ]
    return mermaid("flowchart LR", lines)
