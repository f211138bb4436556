"""Rows of CSV and TSV files: a header, and one record for each row (RFC 4180).

DuckDB reads a file at full speed and fails at the first record that it does not accept.  Then Arrow reads the
file again as texts, and gives each record its number: the line where it begins.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from icemigrate.diagnostics import format_count
from icemigrate.errors import UsageError
from icemigrate.iceberg.types import Field
from icemigrate.table_data.bad_rows import BadRow
from icemigrate.table_data.csv_quotes import RecordLines
from icemigrate.table_data.duckdb_session import text_literal
from icemigrate.table_data.input_files import InputFile
from icemigrate.table_data.numbered_batches import numbered_batch, numbered_schema
from icemigrate.table_data.row_relations import TEXT, LoadRelation

_OTHER_DELIMITERS = {";": "';'", "\t": "tab", "|": "'|'", ",": ","}
"""Delimiters that files have often, as a command line has them."""
_LARGEST_HEADER = 1 << 20
_BLOCK = 1 << 20
"""How many bytes Arrow reads at once, which have to hold a whole record."""
_SHOWN = 200
"""How many characters of a record a message shows."""


def read_header(file: InputFile) -> tuple[str, ...]:
    """The names of the columns.

    :raises UsageError: the file is no text in UTF-8, or its header cannot be read.
    """
    with file.content() as stream:
        start = stream.read(_LARGEST_HEADER)
    _require_text(file, start)
    text = codecs.getincrementaldecoder("utf-8-sig")().decode(start)
    records = csv.reader(io.StringIO(text, newline=""), delimiter=file.delimiter, strict=True)
    try:
        header = next((tuple(record) for record in records if record), None)
    except csv.Error as error:
        raise file.error(f"its header cannot be read: {error}") from error
    if header is None:
        raise file.error("it has no header", "write the names of the columns in the first line")
    if len(header) == 1 and file.given_delimiter is None and not text.lstrip().startswith('"'):
        require_delimiter(file, header[0])
    _require_names(file, header)
    return header


def require_delimiter(file: InputFile, header: str) -> None:
    """Check that a header with one name, not in quotes, has no other delimiter.

    :raises UsageError: it has one.
    """
    others = [one for one in _OTHER_DELIMITERS if one != file.delimiter]
    most = max(others, key=header.count)
    if most not in header:
        return
    option = f"give `--delimiter {_OTHER_DELIMITERS[most]}`"
    if file.given_delimiter is None:
        option += f"; `--delimiter {_OTHER_DELIMITERS[file.delimiter]}` reads one column of this name"
    shown = "tabs" if most == "\t" else f"`{most}`"
    text = header if len(header) <= _SHOWN else f"{header[:_SHOWN]}…"
    raise file.error(
        f"its header `{text}` has one name, which looks like {header.count(most) + 1} names with {shown} "
        "between them",
        option,
    )


def _require_names(file: InputFile, header: Sequence[str]) -> None:
    """Check the names of columns; DuckDB ignores their case.

    :raises UsageError: a name is empty, or two names are the same.
    """
    first = dict[str, str]()
    for position, name in enumerate(header, 1):
        if not name.strip():
            raise file.error(f"column {position} of its header has no name", "give the column a name")
        if name in first.values():
            raise file.error(f"column `{name}` is there twice", "remove one of the two")
        if (other := first.setdefault(name.lower(), name)) != name:
            raise file.error(
                f"the columns `{other}` and `{name}` differ only in case", "rename one of the two"
            )


def _require_text(file: InputFile, content: bytes) -> None:
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise file.error("it is UTF-16", "convert it to UTF-8, for example with `iconv -f UTF-16 -t UTF-8`")
    if b"\0" in content:
        raise file.error("it is not a text file: it has a byte of value 0")
    require_utf8(file, content)


def require_utf8(file: InputFile, content: bytes, lines_before: int = 0) -> None:
    """Check the encoding of a file's part.

    :raises UsageError: it is not UTF-8.
    """
    try:
        codecs.getincrementaldecoder("utf-8")().decode(content)
    except UnicodeDecodeError as error:
        line = lines_before + content.count(b"\n", 0, error.start) + 1
        raise UsageError(
            f"{file.shown}:{line}: the byte 0x{content[error.start]:02x} is not UTF-8",
            "convert the file to UTF-8, for example with `iconv -f LATIN1 -t UTF-8`",
        ) from error


def require_encoding(file: InputFile) -> None:
    """Check the encoding of a whole file.

    :raises UsageError: it is not UTF-8.
    """
    decoder, lines = codecs.getincrementaldecoder("utf-8")(), 0
    with file.content() as stream:
        while part := stream.read(_LARGEST_HEADER):
            try:
                decoder.decode(part)
            except UnicodeDecodeError:
                require_utf8(file, part, lines)
            lines += part.count(b"\n")


def fast_relation(files: Sequence[InputFile], header: Sequence[str]) -> LoadRelation:
    """The records of files with the same header, without numbers."""
    columns = ", ".join(f"{text_literal(name)}: 'VARCHAR'" for name in header)
    paths = ", ".join(text_literal(str(file.path)) for file in files)
    compression = files[0].compression or "none"
    sql = (
        f"read_csv([{paths}], columns = {{{columns}}}, auto_detect = false, header = true, "
        f"delim = {text_literal(files[0].delimiter)}, quote = '\"', escape = '\"', nullstr = '', "
        f"allow_quoted_nulls = false, strict_mode = true, max_line_size = 16777216, "
        f"compression = '{compression}')"
    )
    return LoadRelation(sql, dict.fromkeys(header, TEXT), files[0].shown)


class NumberedRecords:
    """The records of one file as texts, each with its number.

    :param lines: of the records.
    :ivar ragged: the records that have another number of values than the header.
    """

    def __init__(
        self, file: InputFile, header: Sequence[str], columns: Mapping[str, Field], lines: RecordLines
    ) -> None:
        self.lines = lines
        self.file, self.columns = file, tuple(columns[name] for name in header)
        self.ragged: list[BadRow] = []

    def reader(self) -> Any:
        """A ``pyarrow.RecordBatchReader`` of the records with as many values as the header."""
        import pyarrow as pa

        schema = numbered_schema(self.columns)
        return pa.RecordBatchReader.from_batches(schema, self._batches(schema))

    def _batches(self, schema: Any) -> Iterator[Any]:
        import pyarrow as pa
        import pyarrow.csv as pa_csv

        ragged = dict[int, BadRow]()

        def skip(row: Any) -> str:
            found, wanted = row.actual_columns, row.expected_columns
            values = format_count(found, "value")
            problem = f"it has {values}, and the header has {wanted}"
            ragged[row.number] = BadRow(
                self.file.shown, self.lines.line(row.number), (problem,), {"record": row.text}
            )
            return "skip"

        number = 1
        with self.file.content() as stream:
            names = [f"c{position}" for position in range(len(self.columns))]
            batches = pa_csv.open_csv(
                stream,
                read_options=pa_csv.ReadOptions(
                    use_threads=False,
                    column_names=names,
                    skip_rows=self.lines.first - 1,
                    skip_rows_after_names=1,
                    block_size=max(_BLOCK, self.lines.longest + 1),
                ),
                parse_options=pa_csv.ParseOptions(
                    delimiter=self.file.delimiter,
                    newlines_in_values=True,
                    invalid_row_handler=skip,
                ),
                convert_options=pa_csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()),
                    null_values=[""],
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                ),
            )
            for batch in batches:
                numbers = []
                for _ in range(batch.num_rows):
                    number += 1
                    while number in ragged:
                        number += 1
                    numbers.append(self.lines.line(number))
                yield numbered_batch(schema, self.columns, numbers, batch.columns)
        self.ragged = list(ragged.values())
