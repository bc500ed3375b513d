"""What a float's last bit depends on: processor, its vector instructions, and who compiled the sums."""

import json
from typing import Any

from worker.operations.environment import environment

NAMES = ("machine", "processor", "python", "numpy", "numba", "scipy")


def fingerprint() -> dict[str, Any]:
    """Equal on two machines where a replay gives the same bytes."""
    import llvmlite.binding as llvm
    from numpy._core._multiarray_umath import (  # type: ignore[import-not-found]  # a compiled module
        __cpu_features__ as features,
    )

    here = environment()
    found: dict[str, Any] = {name: here[name] for name in NAMES}
    found["numpy_features"] = sorted(name for name, there in features.items() if there)
    found["compiled_for"] = llvm.get_host_cpu_name()
    return dict(json.loads(json.dumps(found)))
