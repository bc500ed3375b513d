"""The bytes of a table in a gzip or zip file, counted before they grow, and other encodings as UTF-8."""

import gzip
import io
import zipfile
import zlib
from pathlib import Path

from schemas.errors import DataError
from services.text.given_files import check_size
from worker.feeds.files.names import FURTHER

PIECE = 1_048_576
ABOVE = 32  # lines in which a header is looked for
_ENCODINGS = ("Windows-1252", "Shift_JIS", "GB18030", "Windows-1251")
_MARKS = (b"\xff\xfe", b"\xfe\xff")  # of UTF-16
_READ = (b"PAR1", b"ARROW1", b"\x1f\x8b", b"PK\x03\x04")  # how files begin that are read and are no text
_HEAD = 1_024
_NO_TEXT = bytes({*range(32)} - {*b"\t\n\v\f\r\x1a"})  # control characters


def unpack_gzip(path: Path, data: bytes, most: int) -> bytes:
    """The bytes in a gzip file; a first pass counts them, because one byte can stand for a thousand.

    Raises:
        DataError: no complete gzip file, or more than `most` bytes in it.
    """
    size = 0
    try:
        with gzip.open(io.BytesIO(data)) as file:
            while piece := file.read(PIECE):
                size += len(piece)
                check_size(path, size, most)
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path.name} is not a complete gzip file: {error}; fetch it again") from error


def unpack_zip(path: Path, data: bytes, most: int) -> bytes:
    """The bytes of the one file in a zip file; no more are unpacked than may be, whatever it claims.

    Raises:
        DataError: not one file, one with a password, or more than `most` bytes.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            found = [
                item for item in archive.infolist() if not item.is_dir() and "__MACOSX" not in item.filename
            ]
            if {item.filename for item in found} & {"[Content_Types].xml", "mimetype", "Index/Document.iwa"}:
                raise DataError(f"{path.name} is a workbook: save its sheet as CSV and give that file")
            if any(item.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for item in found):
                # What other methods unpack to at once has no bound.
                raise DataError(
                    f"{path.name} is packed otherwise than by deflate: unpack it, and give the file"
                )
            with archive.open(found[0]) if found else io.BytesIO() as file:
                check_kind(path, file.read(_HEAD))
            if len(found) != 1:
                raise DataError(
                    f"{path.name} holds {len(found)} files, where one is read: unpack it, and give one of "
                    "them or the folder"
                )
            check_size(path, found[0].file_size, most)  # no more of it is unpacked, whatever it holds
            inner = archive.read(found[0])
    except DataError:
        raise
    except (OSError, EOFError, ValueError, RuntimeError, zlib.error, zipfile.BadZipFile) as error:
        raise DataError(
            f"{path.name} is not a readable zip file: {error}; unpack it, and give the file"
        ) from error
    return inner


def check_kind(path: Path, data: bytes) -> None:
    """Refuse bytes that are neither text nor begin as a file that is read.

    Raises:
        DataError: they are of another kind.
    """
    head = data[:_HEAD]
    if not head.startswith(_READ) and set(decode(head)[0]).intersection(_NO_TEXT):
        raise DataError(
            f"{path.name} is not one of the kinds read (CSV, Parquet, Feather, JSON; in gzip or zip): export "
            "it as CSV, or read it with pandas and write it with to_parquet"
        )


def decode(data: bytes) -> tuple[bytes, str | None]:
    """Text as UTF-8, and what a reader should know of how it was written.

    UTF-16 has its mark, or zeros between its letters; a head that is no UTF-8 is taken for the encoding in
    which most names are known, of several Windows-1252, as spreadsheets write it.
    """
    if data[:2] in _MARKS or data[1:4:2] == b"\0\0":
        return data.decode("utf-16", "replace").encode(), None
    head = b"\n".join(data[:PIECE].split(b"\n", ABOVE)[:ABOVE])
    try:
        head.decode()
    except UnicodeDecodeError as error:
        if min(head) >= ord("\t") and error.start < len(head) - 3:  # later it may be cut within a letter
            found = max(_ENCODINGS, key=lambda encoding: _count_names(head.decode(encoding, "ignore")))
            return data.decode(found, "replace").encode(), f"the text is no UTF-8 and read as {found}"
    return data, None


def _count_names(text: str) -> int:
    return sum(alias in text.lower() for aliases in FURTHER.values() for alias in aliases)
