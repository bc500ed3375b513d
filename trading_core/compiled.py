"""How the engine is compiled: IEEE arithmetic, without a memory runtime, cached where Python enters it.

Without the runtime a function that allocates does not compile, so "nothing is allocated per bar" holds by
construction; and no array argument is reference-counted, which cost more than everything a quiet bar does.

An image ships with the sources: the engine as optimised LLVM IR, of which machine code takes a second, not a
minute. As it was built, it serves the very sources, versions and platform that it was made for, and what it
gives is kept only after a self-test; on any doubt numba compiles as ever, with the same results. The names
that numba keeps to itself are used in this module alone.
"""

import hashlib
import json
import lzma
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Final, TypeVar, cast

import llvmlite
import numba
from llvmlite import binding as llvm
from numba import njit
from numba.core import types
from numba.core.bytecode import FunctionIdentity
from numba.core.caching import FunctionCache
from numba.core.compiler import compile_result
from numba.core.environment import Environment
from numba.core.funcdesc import PythonFunctionDescriptor
from numba.core.typing.templates import signature

from trading_core.compiled_cache import cache_folder

Function = TypeVar("Function", bound=Callable[..., Any])
_OPTIONS: Final[dict[str, Any]] = {"error_model": "numpy", "_nrt": False, "no_cfunc_wrapper": True}
ROOMS: Final = Path(__file__).resolve().parent.parent
IMAGE: Final = ROOMS / "trading_core" / "engine_image.xz"
SOURCES: Final = (  # of compiled functions and of the constants in them
    "schemas/vocabulary.py", "services/memory/scan.py", "services/statistics/claim_path.py",
    "services/statistics/lazy_kernels.py", "trading_core/compiled.py", "trading_core/features/blocks.py",
    "trading_core/features/graph.py", "trading_core/features/group_recurrences.py",
    "trading_core/features/moving_mean.py", "trading_core/features/nodes.py",
    "trading_core/features/pointwise.py", "trading_core/features/recurrences.py",
    "trading_core/features/window_recurrences.py", "trading_core/kernel", "trading_core/regime_recurrence.py",
)  # fmt: skip
CPU: Final = "x86-64-v3"  # what an image is made for, whatever made it
FEATURES: Final = ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sse4.2")
DIGEST: Final = 64  # bytes before the content of an image file: its SHA-256
FIRST_NUMBER: Final = 1_000_000  # of the functions of an image: numba counts those that it compiles from 1
BLAS: Final = "scipy.linalg.cython_blas"


def _load_without_linear_algebra() -> None:
    """Let numba find no BLAS, which no kernel uses: looking for it costs each process 0.15 s of imports."""
    if BLAS in sys.modules:
        return
    sys.modules[BLAS] = None  # type: ignore[assignment]  # "not there", as the import system says it
    try:
        import numba.np.arraymath  # noqa: F401 - it looks once, when it is imported
    finally:
        del sys.modules[BLAS]


_load_without_linear_algebra()


def entry_point(function: Callable[..., Any]) -> Any:
    """Compile a function that Python calls, on its first call, and keep it on disk with all that it calls.

    Division by zero gives infinities and NaN, as in numpy.
    """
    return cache_on_disk(njit(**_OPTIONS)(function))


def compiled(function: Function) -> Function:
    """Compile a function into its callers; what Python needs to call it is made only when Python does."""
    return _inner(function)


def inlined(function: Function) -> Function:
    """Compile a function of the quiet path into its caller, whatever the compiler thinks of its size."""
    return _inner(function, {"forceinline": True})


def _inner(function: Function, more: Mapping[str, Any] = MappingProxyType({})) -> Function:
    options: dict[str, Any] = {"no_cpython_wrapper": True, **_OPTIONS, **more}
    dispatcher: Any = njit(**options)(function)
    if dispatcher is function:  # NUMBA_DISABLE_JIT
        return function
    door = njit(**_OPTIONS)(lambda *values: dispatcher(*values))
    return cast(Function, enter_by(dispatcher, door))


class UnusableImage(Exception):
    """An image that is not for here; says why."""


def hash_sources(rooms: Path = ROOMS) -> str:
    """SHA-256 over all that is compiled, the same in a checkout and below the package of a wheel."""
    digest = hashlib.sha256()
    for place in SOURCES:
        for path in sorted((rooms / place).rglob("*.py")) or [rooms / place]:
            text = path.read_bytes().replace(b"\r\n", b"\n")
            text = text.replace(b"from thinktwice import ", b"import ").replace(b"from thinktwice.", b"from ")
            digest.update(path.relative_to(rooms).as_posix().encode() + b"\0" + text + b"\0")
    return digest.hexdigest()


def read_image(path: Path) -> dict[str, Any]:
    """What an image file holds: what it was made for, the answer of its self-test, and its functions.

    Raises:
        UnusableImage: it is not there, is not as it was built, or is not for here.
    """
    try:
        packed = lzma.decompress(path.read_bytes())
    except (OSError, lzma.LZMAError) as error:
        raise UnusableImage(f"{path} cannot be read: {error}") from error
    if _digest(packed[DIGEST:]) != packed[:DIGEST]:
        raise UnusableImage(f"{path} is not as it was built")
    document: dict[str, Any] = json.loads(packed[DIGEST:])
    for name, here in _here().items():
        if (there := document["made_for"][name]) != here:
            raise UnusableImage(f"{path} is for {name} {there}, here is {here}")
    found = llvm.get_host_cpu_features()
    if missing := [feature for feature in document["features"] if not found.get(feature)]:
        raise UnusableImage(f"{path} is for processors with {missing[0]}")
    return document


def pack_image(document: Mapping[str, Any]) -> bytes:
    """An image file: the digest of its content before anything that is read of it."""
    content = json.dumps(document).encode()
    return lzma.compress(_digest(content) + content, preset=9)


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()


def _here() -> dict[str, str]:
    return {
        "sources": hash_sources(),
        "numba": numba.__version__,
        "llvmlite": llvmlite.__version__,
        "platform": llvm.get_process_triple(),
    }


class EngineImage:
    """The functions of an image file, made machine code as they are asked for; read when the first is.

    Attributes:
        loaded: what was given: the cache of the function, types of its arguments, and the function.
    """

    def __init__(self, path: Path = IMAGE, tell: Callable[[str], None] = lambda reason: None) -> None:
        self.loaded: list[tuple[ImageCache, Any, Any]] = []
        self.tell, self._path = tell, path

    @cached_property
    def document(self) -> dict[str, Any]:
        """See `read_image`; without functions where the file is not for here, which is told."""
        try:
            return read_image(self._path)
        except UnusableImage as error:
            self.tell(f"{error}: the engine is compiled")
            return {"parts": {}, "answer": ""}

    @property
    def is_usable(self) -> bool:
        """Whether it holds functions for here."""
        return bool(self.document["parts"])

    def load(self, cache: "ImageCache", arguments: Any, context: Any) -> Any:
        """A function for these types of arguments as numba would have compiled it; None if it is not here."""
        part = self.document["parts"].get(_key(cache.function, arguments))
        if part is None:
            return None
        try:
            made = _make_machine_code(cache.function, arguments, context, part)
        except (RuntimeError, LookupError, AttributeError, TypeError, ValueError) as error:
            self._refuse(f"is damaged: {error}")
            return None
        self.loaded.append((cache, arguments, made))
        return made

    def keep(self) -> None:
        """Put what was loaded into numba's cache, where the next process finds it."""
        for cache, arguments, made in self.loaded:
            cache.save_overload(arguments, made)

    def drop(self) -> None:
        """Forget what was loaded: whatever is called again is compiled."""
        self._refuse("failed its self-test")
        for cache, _, _ in self.loaded:
            cache.dispatcher._make_finalizer()()
            cache.dispatcher._reset_overloads()
        self.loaded.clear()

    def _refuse(self, reason: str) -> None:
        self.tell(f"{self._path} {reason}: the engine is compiled")
        self.document["parts"] = {}


class ImageCache(FunctionCache):
    """Numba's cache on disk of one function, which asks the image for what is not there.

    Attributes:
        folder: of all that is cached; what others compile stays where their settings say.
        emptied: a line for each that held something damaged.
    """

    image: ClassVar[EngineImage | None] = None
    every: ClassVar[list["ImageCache"]] = []
    folder: ClassVar[Path] = cache_folder()
    emptied: ClassVar[list[str]] = []

    def __init__(self, dispatcher: Any) -> None:
        config: Any = numba.config
        found, config.CACHE_DIR = config.CACHE_DIR, str(ImageCache.folder)
        try:
            super().__init__(dispatcher.py_func)
        finally:
            config.CACHE_DIR = found
        self.function, self.dispatcher = dispatcher.py_func, dispatcher
        ImageCache.every.append(self)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """See `EngineImage.load`."""
        try:
            found = super().load_overload(sig, target_context)
        except Exception as error:  # noqa: BLE001 - a damaged pickle may say anything
            found = None
            self._empty(error)
        if found is None and ImageCache.image is not None:
            found = ImageCache.image.load(self, sig, target_context)
        return found

    def _empty(self, error: Exception) -> None:
        self.flush()  # else it could not be written either
        place = self._cache_file._index_path
        line = f"{place} or code beside it was damaged ({type(error).__name__}: {error}): it is made again"
        ImageCache.emptied.append(line)
        if ImageCache.image is not None:
            ImageCache.image.tell(line)


def cache_on_disk(dispatcher: Any) -> Any:
    """A function that is kept on disk with all that it calls, and may come from the image."""
    if hasattr(dispatcher, "py_func"):  # else NUMBA_DISABLE_JIT
        dispatcher._cache = ImageCache(dispatcher)
    return dispatcher


def enter_by(dispatcher: Any, door: Any) -> Any:
    """A function that Python enters by a door.

    Numba would call the wrapper that is not there: it is told of none, and given the door when it asks.
    """
    dispatcher._insert = lambda *_: None
    dispatcher._compile_for_args = lambda *_, **__: door
    return dispatcher


def try_out(self_test: Callable[[], str], image: EngineImage) -> None:
    """Run the self-test with functions of the image: kept where the answer is right, else compiled.

    Args:
        self_test: calls every function of the engine; returns a digest of what they said.
        image: asked for what numba's cache has not.
    """
    ImageCache.image = image
    try:
        answer = self_test()
    finally:
        ImageCache.image = None
    if image.loaded and answer != image.document["answer"]:
        image.drop()
        self_test()
    image.keep()


def number_apart() -> None:
    """Number what is compiled from now on as no other process numbers it: the linker goes by these names."""
    FunctionIdentity._unique_ids = count(FIRST_NUMBER)


def encode_image(answer: str, caches: Sequence[ImageCache] = ImageCache.every) -> bytes:
    """An image of what this process compiled, with the answer of the self-test; the same bytes each time.

    Raises:
        UnusableImage: a function came from the cache, or holds objects of Python.
    """
    parts = dict(sorted(_parts(caches)))
    document = {"made_for": _here(), "features": FEATURES, "answer": answer, "parts": parts}
    return pack_image(document)


def _parts(caches: Sequence[ImageCache]) -> Iterator[tuple[str, dict[str, str]]]:
    for cache in caches:
        for arguments, made in cache.dispatcher.overloads.items():
            if made.environment.consts or made.library._disable_inspection:
                raise UnusableImage(f"{cache.function.__name__} was loaded, or holds objects of Python")
            returned = made.signature.return_type
            yield (
                _key(cache.function, arguments),
                {
                    "symbol": made.fndesc.mangled_name,
                    "environment": made.fndesc.env_name,
                    "returns": " ".join(map(str, getattr(returned, "types", [returned]))),
                    "ir": _strip(made.library._final_module),
                },
            )


def _key(function: Any, arguments: Sequence[Any]) -> str:
    module = function.__module__.removeprefix("thinktwice.")
    taken = hashlib.sha256(str(tuple(arguments)).encode()).hexdigest()[:16]
    return f"{module}.{function.__qualname__} {taken}"


def _strip(module: Any) -> str:
    """The text of a module without the names of its local values, which are a third of it."""
    stripped, passes = module.clone(), llvm.create_new_module_pass_manager()
    machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine()
    passes.add_strip_symbols_pass()
    passes.run(stripped, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))
    return str(stripped)


def _make_machine_code(function: Any, arguments: Any, context: Any, part: Mapping[str, str]) -> Any:
    library = context.codegen().create_library(part["symbol"])
    library.enable_object_caching()
    library._final_module = llvm.parse_assembly(part["ir"])
    library._finalize_final_module()
    members = [getattr(types, name) for name in part["returns"].split()]
    descriptor = PythonFunctionDescriptor(
        native=True,
        modname=function.__module__,
        qualname=function.__qualname__,
        unique_name=function.__qualname__,
        doc="",
        typemap=None,
        restype=types.Tuple(members) if len(members) > 1 else members[0],
        calltypes=None,
        args=function.__code__.co_varnames[: function.__code__.co_argcount],
        kws=(),
        mangler=lambda *_, **__: part["symbol"],
        argtypes=tuple(arguments),
        env_name=part["environment"],
    )
    environment = Environment.from_fndesc(descriptor)
    return compile_result(
        target_context=context,
        typing_context=context.typing_context,
        library=library,
        environment=environment,
        entry_point=context.get_executable(library, descriptor, environment),
        fndesc=descriptor,
        signature=signature(descriptor.restype, *arguments),
        objectmode=False,
        lifted=(),
        reload_init=(),
        referenced_envs=(),
    )
