"""Bars as one Arrow file, named by its content, that every task of a process maps instead of copying.

A file holds Arrow tensors: a header as JSON text, then labels, presence, the five columns and further ones.
It is mapped copy-on-write: the engine wants arrays that it may write to, and no write reaches the file.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from schemas.canonical import content_id
from schemas.errors import DataError
from trading_core.bars import COLUMNS, BarSeries

ALIGNMENT = 64  # bytes: the engine is compiled for aligned arrays, and a header may have any length
FIXED = ("times", "present", *COLUMNS)
_shared: dict[str, BarSeries] = {}
_folders: set[Path] = set()


def bars_key(bars: BarSeries) -> str:
    """Hash of all that a task could read of bars, how they were read included."""
    return content_id(_header(bars) | {"sha256": bars.sha256, "extra_hashes": bars.extra_hashes})


def share_here(bars: BarSeries) -> str:
    """Let tasks of this process find bars by the key that comes back."""
    key = bars_key(bars)
    _shared[key] = bars
    return key


def share_folder(folder: Path) -> None:
    """Let tasks of this process find bars among the files of a folder."""
    _folders.add(folder)


def forget(key: str) -> None:
    """Let go of bars that no task will ask for."""
    _shared.pop(key, None)


def shared_bars(key: str) -> BarSeries:
    """Bars that were shared with this process; read once.

    Raises:
        DataError: they were not.
    """
    if key not in _shared:
        path = next((file for folder in _folders if (file := folder / f"{key}.arrow").exists()), None)
        if path is None:
            raise DataError(f"bars {key!r} were not shared with this worker: share them before the tasks")
        _shared[key] = read_bars(path)
    return _shared[key]


def write_bars(bars: BarSeries, folder: Path) -> str:
    """Write bars, and those that they were made of, to files of a folder; their key."""
    key = bars_key(bars)
    if bars.made_of is not None:
        write_bars(bars.made_of, folder)
    header = np.frombuffer(json.dumps(_header(bars)).encode(), dtype=np.uint8)
    arrays = [header, *(getattr(bars, name) for name in FIXED), *bars.extra.values()]
    with pa.OSFile(str(folder / f"{key}.arrow"), "wb") as file:
        for array in arrays:
            plain = array.view(np.uint8) if array.dtype == np.bool_ else array
            file.write(bytes(-file.tell() % ALIGNMENT))
            pa.ipc.write_tensor(pa.Tensor.from_numpy(plain), file)
    return key


def read_bars(path: Path) -> BarSeries:
    """Bars of a file; their arrays are views of it."""
    raw = np.memmap(path, dtype=np.uint8, mode="c")
    reader = pa.BufferReader(pa.py_buffer(raw))
    header = json.loads(_view(reader, raw).tobytes())
    arrays = {name: _view(reader, raw) for name in (*FIXED, *header["extra"])}
    made_of = header.pop("made_of")
    return BarSeries(
        **{name: arrays[name] for name in FIXED if name != "present"},
        present=arrays["present"].view(np.bool_),
        symbols=tuple(header["symbols"]),
        timeframe=header["timeframe"],
        label=header["label"],
        zone=header["zone"],
        extra={name: arrays[name] for name in header["extra"]},
        notes=tuple(header["notes"]),
        repeated=tuple((symbol, label) for symbol, label in header["repeated"]),
        made_of=None if made_of is None else read_bars(path.with_name(f"{made_of}.arrow")),
    )


def _header(bars: BarSeries) -> dict[str, Any]:
    named = {name: getattr(bars, name) for name in ("symbols", "timeframe", "label", "zone", "notes")}
    made_of = None if bars.made_of is None else bars_key(bars.made_of)
    return named | {"extra": list(bars.extra), "repeated": list(bars.repeated), "made_of": made_of}


def _view(reader: Any, raw: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
    """The next tensor as a writeable view; Arrow's own is read-only."""
    reader.seek(reader.tell() + -reader.tell() % ALIGNMENT)
    found = pa.ipc.read_tensor(reader).to_numpy()
    start = found.ctypes.data - raw.ctypes.data
    return np.ndarray(found.shape, found.dtype, buffer=raw, offset=start)
