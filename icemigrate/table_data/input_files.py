"""The files that a user names as data: found, recognized, and decompressed where a reader cannot do it."""

from __future__ import annotations

import glob
import gzip
import os
import shutil
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from typing import BinaryIO, cast

from icemigrate.diagnostics import did_you_mean
from icemigrate.errors import MissingExtra, UsageError, extra_hint, os_error_reason
from icemigrate.frozen import Frozen, replace
from icemigrate.metadata_engine.parquet_values import surrogate_problem
from icemigrate.table_data.duckdb_problems import duckdb_problem

DATA_FORMATS = ("csv", "tsv", "json", "parquet", "arrow")
DELIMITERS = {"csv": ",", "tsv": "\t"}
"""The delimiter of each format of delimited text, if none is given."""
DELIMITER_NAMES = {"tab": "\t", "\\t": "\t"}
"""Names of delimiters that are hard to type."""
_ENDINGS = {
    **{".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".json": "json", ".jsonl": "json", ".ndjson": "json"},
    **{".parquet": "parquet", ".arrow": "arrow", ".arrows": "arrow", ".feather": "arrow", ".ipc": "arrow"},
}
_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd"}
_MAGIC_OF_PARQUET = b"PAR1"
_MAGIC_OF_COMPRESSIONS = {b"\x1f\x8b\x08": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
"""With these bytes begins no text in UTF-8, and no file of the other formats."""
_PATTERN_CHARACTERS = "*?["
_PART = 1 << 20
_STDIN = Path("-")


class InputFile(Frozen):
    """A file of data.

    :param shown: as the user named it.
    :param path: of the file that is read.
    :param format: one of :data:`DATA_FORMATS`.
    :param compression: ``gzip`` or ``zstd``; ``None`` without one.
    :param given_delimiter: between the values of a line; ``None`` for that of the format.
    """

    shown: str
    path: Path
    format: str
    compression: str | None = None
    given_delimiter: str | None = None

    @property
    def delimiter(self) -> str:
        """Between the values of a line of a CSV or TSV file."""
        return self.given_delimiter or DELIMITERS[self.format]

    @property
    def size(self) -> int:
        """In bytes, compressed."""
        return self.path.stat().st_size

    def error(self, problem: str, hint: str | None = None) -> UsageError:
        """An error that names the file."""
        return UsageError(f"{self.shown}: {problem}", hint)

    @contextmanager
    def reading_errors(self) -> Iterator[None]:
        """Raise what DuckDB or Arrow says when it opens the file as one error that names the file.

        :raises UsageError: the file is damaged, or of another format.
        """
        import duckdb
        import pyarrow as pa

        try:
            yield
        except (duckdb.Error, pa.ArrowException, OSError, ValueError) as error:
            reason = duckdb_problem(error).message.replace(f" '{self.path}'", "").rstrip(". :")
            raise self.error(
                f"it cannot be read as {self.format}: {reason}",
                "check that the file is complete and has the format of its name",
            ) from error

    @contextmanager
    def content(self) -> Iterator[BinaryIO]:
        """Its content, decompressed.

        :raises UsageError: it cannot be read.
        """
        try:
            with _opened(self.path, self.compression) as stream:
                yield stream
        except (EOFError, gzip.BadGzipFile) as error:
            raise self.error(f"it is not a complete gzip file: {error}") from error
        except OSError as error:
            if error.strerror is None and self.compression is not None:  # of Arrow's decompression
                raise self.error(f"it is not a complete {self.compression} file: {error}") from error
            raise self.error(f"it cannot be read: {os_error_reason(error)}") from error


def _opened(path: Path, compression: str | None) -> BinaryIO:
    if compression == "gzip":
        return cast("BinaryIO", gzip.open(path, "rb"))
    if compression == "zstd":
        import pyarrow as pa

        return cast("BinaryIO", pa.input_stream(str(path), compression="zstd"))
    return path.open("rb")


class DataFormat(Frozen):
    """What the user says of the format of files.

    :param name: one of :data:`DATA_FORMATS`; ``None`` for that of each file's name.
    :param delimiter: between the values of a line of CSV and TSV files; ``None`` for that of the format.
    :param hint: what to do where the format of a file is not known.
    """

    name: str | None = None
    delimiter: str | None = None
    hint: str = f"give `--data-format` with one of {', '.join(DATA_FORMATS)}"

    def of(self, name_format: str | None) -> str | None:
        """The format of a file; ``None`` where it is not known.

        :param name_format: that of its name; ``None`` for a name that shows none.
        """
        return self.name or name_format or (None if self.delimiter is None else "csv")

    def require_delimited(self, file: InputFile) -> InputFile:
        """The file with the delimiter.

        :raises UsageError: its format has no delimiter.
        """
        if self.delimiter is None:
            return file
        if file.format not in DELIMITERS:
            raise file.error(
                f"a {file.format} file has no delimiter", "leave `--delimiter` out, which is for CSV and TSV"
            )
        return replace(file, given_delimiter=self.delimiter)


def parse_delimiter(text: str) -> str:
    """The delimiter that a text names: itself, or one of :data:`DELIMITER_NAMES`.

    :raises UsageError: it cannot be one.
    """
    found = DELIMITER_NAMES.get(text.lower(), text)
    if len(found) != 1 or not found.isascii() or found.isalnum() or found in '"\r\n\0':
        raise UsageError(
            f"`--delimiter`: `{text}` cannot be a delimiter",
            "give one ASCII character in quotes, such as `';'` or `'|'`, or `tab`",
        )
    return found


def find_input_files(
    patterns: Sequence[str], folder: Path, data_format: DataFormat | None = None
) -> tuple[InputFile, ...]:
    """The files of paths and patterns, in the order of their names.

    :param patterns: ``-`` is standard input.
    :param folder: a temporary one, for what is copied.
    :param data_format: of all files; ``None`` for that of each name.
    :raises UsageError: a file is missing, empty, a folder, or of an unknown format.
    """
    wanted = data_format or DataFormat()
    named = [
        (shown, path)
        for pattern in patterns
        for shown, path in ([(pattern, _STDIN)] if pattern == "-" else _paths(pattern))
    ]
    seen: dict[str, str] = {}
    for shown, path in named:
        place = "-" if path is _STDIN else os.path.realpath(path)
        if place in seen:
            again = f"`{shown}`" if seen[place] == shown else f"`{seen[place]}` and `{shown}`: the same file"
            raise UsageError(f"the data is given twice: {again}", "give each file once")
        seen[place] = shown
    files = (
        _standard_input(folder, wanted) if path is _STDIN else _readable(path, shown, folder, wanted)
        for shown, path in named
    )
    return tuple(map(wanted.require_delimited, files))


def require_no_input(output: Path, patterns: Sequence[str]) -> None:
    """Check that a file to write is none of the files of paths and patterns.

    :raises UsageError: it is one of them, also by another name.
    """
    if not os.path.isfile(output):  # noqa: PTH113 (false for a name that is too long, as the write reports)
        return
    for pattern in patterns:
        for shown, path in [("standard input", Path("/dev/stdin"))] if pattern == "-" else _paths(pattern):
            if _status(path, shown) is not None and path.samefile(output):
                raise UsageError(
                    f"the output `{output}` is also a file of data ({shown})", "write to another file"
                )


def _paths(pattern: str) -> Iterator[tuple[str, Path]]:
    path = Path(pattern)
    is_pattern = any(character in pattern for character in _PATTERN_CHARACTERS)
    if not is_pattern or _status(path, pattern) is not None:
        yield pattern, path
        return
    found = glob.glob(pattern, recursive=True)  # noqa: PTH207 (a path may be absolute)
    names = sorted(name for name in found if Path(name).is_file())
    if not names:
        raise UsageError(f"no file matches `{pattern}`", "check the folder and the pattern")
    for name in names:
        yield name, Path(name)


def _status(path: Path, shown: str) -> os.stat_result | None:
    """The status of a file, or of the file that a link leads to; ``None`` where there is none.

    :raises UsageError: it cannot be found out: a folder above may not be read, or the name is too long.
    """
    try:
        return path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise unreadable_file(shown, error) from error


def unreadable_file(shown: str, error: OSError) -> UsageError:
    """The error of a file that the user named, and that cannot be opened."""
    hint = "run the command as a user who may read it" if isinstance(error, PermissionError) else None
    return UsageError(
        f"the file `{shown}` cannot be read: {os_error_reason(error)}", hint or "check the path"
    )


def _missing_file(path: Path, shown: str) -> UsageError:
    there = list[str]()
    with suppress(OSError):
        if path.is_symlink():
            return UsageError(
                f"`{shown}` is a link that leads to no file", "name another file, or repair the link"
            )
        there = [one.name for one in path.parent.iterdir()]
    hint = did_you_mean(path.name, there) or "check the path: it begins in the current folder, or with `/`"
    return UsageError(f"there is no file `{shown}`", hint)


def require_file(path: Path) -> None:
    """Check that there is a file that the user named.

    :raises UsageError: there is none, or it is a folder.
    """
    status = _status(path, str(path))
    if status is None:
        raise _missing_file(path, str(path))
    if stat.S_ISDIR(status.st_mode):
        raise UsageError(f"`{path}` is a folder", "name a file")


def _readable(path: Path, shown: str, folder: Path, wanted: DataFormat) -> InputFile:
    if not shown:
        raise UsageError("the name of a file of data is empty", "name a file, or `-` for standard input")
    status = _status(path, shown)
    if status is None:
        raise _missing_file(path, shown)
    if stat.S_ISDIR(status.st_mode):
        raise UsageError(
            f"`{shown}` is a folder", f"name its files, for example `{shown.rstrip('/')}/*.parquet`"
        )
    suffixes = [suffix.lower() for suffix in path.suffixes]
    compression = _COMPRESSIONS.get(suffixes[-1]) if suffixes else None
    rest = suffixes[:-1] if compression else suffixes
    known = wanted.of(_ENDINGS.get(rest[-1]) if rest else None)
    if known is None:
        raise UsageError(f"the format of `{shown}` is not known from its name", wanted.hint)
    target = path.absolute()
    try:
        if not stat.S_ISREG(status.st_mode):  # a pipe, which can be read once
            target = folder / f"input-{len(list(folder.iterdir()))}{''.join(suffixes)}"
            with path.open("rb") as stream, target.open("wb") as copy:
                shutil.copyfileobj(stream, copy, _PART)
        with target.open("rb") as stream:
            if not stream.read(1):
                raise UsageError(f"the file `{shown}` is empty", "a file of data has at least a header")
    except OSError as error:
        raise unreadable_file(shown, error) from error
    has_pattern = any(character in str(target) for character in "*?[]{}")
    if has_pattern or surrogate_problem(str(target)) is not None:
        # DuckDB takes such a name for a pattern, or does not take it at all.
        link = folder / f"input-{len(list(folder.iterdir()))}{rest[-1] if rest else ''}"
        link.symlink_to(target)
        target = link
    return _unpacked(InputFile(shown, target, known, _compression(target) or compression), folder)


def _standard_input(folder: Path, wanted: DataFormat) -> InputFile:
    known = wanted.of(None)
    if known is None:
        raise UsageError("standard input has no name that shows its format", wanted.hint)
    path = folder / "standard-input"
    with path.open("wb") as copy:
        shutil.copyfileobj(sys.stdin.buffer, copy, _PART)
    if not path.stat().st_size:
        raise UsageError("standard input is empty")
    return _unpacked(InputFile("standard input", path, known, _compression(path)), folder)


def _compression(path: Path) -> str | None:
    """The compression of a file, whatever its name is; ``None`` without one."""
    with path.open("rb") as stream:
        start = stream.read(4)
    return next((name for magic, name in _MAGIC_OF_COMPRESSIONS.items() if start.startswith(magic)), None)


def _unpacked(file: InputFile, folder: Path) -> InputFile:
    """A file that its reader can read: readers of Parquet and Arrow do not decompress a whole file."""
    if file.format in ("parquet", "arrow") and file.compression is not None:
        target = folder / f"unpacked-{len(list(folder.iterdir()))}"
        with file.content() as stream, target.open("wb") as copy:
            shutil.copyfileobj(stream, copy, _PART)
        file = InputFile(file.shown, target, file.format)
    if file.format == "parquet":
        with file.path.open("rb") as stream:
            if stream.read(4) != _MAGIC_OF_PARQUET:
                raise file.error("it is not a Parquet file")
    return file


def require_pyarrow() -> None:
    """Check that pyarrow is installed, and begin to import it.

    :raises MissingExtra: it is not installed.
    """
    if find_spec("pyarrow") is None:
        raise MissingExtra("pyarrow is not installed", extra_hint("table"))
    # It takes as long as all else that a short command imports, and DuckDB reads rows meanwhile.
    Thread(target=_import_pyarrow, daemon=True).start()


def _import_pyarrow() -> None:
    with suppress(ImportError):  # the import that needs it raises the error again
        import pyarrow.parquet  # noqa: F401
