"""CSV files with another delimiter, with ragged rows, or without rows."""

from __future__ import annotations

import gzip
import io

import pytest

from icemigrate.errors import ExitCode, UsageError
from icemigrate.iceberg.metadata_parts import current_schema
from icemigrate.iceberg.type_text import format_type
from icemigrate.table_data.input_files import parse_delimiter
from tests.support.written_tables import WrittenTables, _shared, written

__all__ = ["_shared", "written"]

ITEMS = "columns: [{name: id, type: long}, {name: city, type: string}]"
ROWS = [(1, "Oslo"), (2, 'a "b", c')]
QUOTED = 'id{0}city\n1{0}Oslo\n2{0}"a ""b"", c"\n'


def columns(written: WrittenTables, name: str) -> list[tuple[str, str]]:
    schema = current_schema(written.session.load(name).metadata)
    return [(f.name, format_type(f.type)) for f in schema.fields]


@pytest.mark.parametrize(
    ("delimiter", "option"), [(";", ";"), ("\t", "tab"), ("\t", r"\t"), ("|", "|"), ("^", "^"), ("]", "]")]
)
@pytest.mark.parametrize("command", ["insert", "upsert"])
def test_rows_with_another_delimiter(
    written: WrittenTables, delimiter: str, option: str, command: str
) -> None:
    table = written.create(ITEMS)
    more = ["--on", "id"] if command == "upsert" else []
    path = written.file("d.txt", QUOTED.format(delimiter))
    assert written.project.run("table", command, table, "--data", path, "--delimiter", option, *more) == 0
    assert written.rows(table) == ROWS


def test_bad_rows_with_another_delimiter_have_their_lines(
    written: WrittenTables, capsys: pytest.CaptureFixture[str]
) -> None:
    table = written.create(ITEMS)
    path = written.file("d.csv", 'id;city\n1;"a;b\nc"\nx;Oslo\n3;a;b\n')
    run = written.project.run
    assert run("table", "insert", table, "--data", path, "--delimiter", ";") == ExitCode.FINDINGS
    shown = capsys.readouterr().err
    assert "d.csv:4:1: error: column `id` (long) cannot have the value `x`" in shown
    assert "d.csv:5:1: error: it has 3 values, and the header has 2" in shown


def test_compressed_files_and_standard_input(written: WrittenTables, monkeypatch: pytest.MonkeyPatch) -> None:
    table = written.create(ITEMS)
    content = QUOTED.format(";").encode()
    path = written.file("d.csv.gz", gzip.compress(content))
    assert written.project.run("table", "insert", table, "--data", path, "--delimiter", ";") == 0
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert written.project.run("table", "insert", table, "--data", "-", "--delimiter", ";") == 0
    assert written.rows(table) == sorted(ROWS * 2)


@pytest.mark.parametrize(
    "content", [b"id;at;city\n1;2024-01-01;Oslo\n", b"id;at;city\r\n1;2024-01-01;Oslo\r\n"]
)
def test_a_table_of_a_file_with_another_delimiter(written: WrittenTables, content: bytes) -> None:
    path, name = written.file("s.csv", content), f"sales.s{len(content)}"
    assert written.project.run("table", "create", name, "--schema", path, "--delimiter", ";") == 0
    assert columns(written, name) == [("id", "long"), ("at", "date"), ("city", "string")]


@pytest.mark.parametrize(
    ("name", "header", "shown", "option"),
    [
        ("a.csv", "id;city", "`;`", "';'"),
        ("a.csv", "\ufeffid;city", "`;`", "';'"),
        ("a.csv", "id\tcity", "tabs", "tab"),
        ("a.csv", "id|city", "`|`", "'|'"),
        ("a.tsv", "id,city", "`,`", ","),
    ],
)
@pytest.mark.parametrize("command", ["insert", "upsert", "create"])
def test_a_header_with_another_delimiter_is_one_error(
    written: WrittenTables,
    capsys: pytest.CaptureFixture[str],
    name: str,
    header: str,
    shown: str,
    option: str,
    command: str,
) -> None:
    path = written.file(name, f"{header}\n1;Oslo\n")
    table = "sales.delimited" if command == "create" else written.create(ITEMS)
    more = {
        "insert": ["--data", path],
        "upsert": ["--on", "id", "--data", path],
        "create": ["--schema", path],
    }
    assert written.project.run("table", command, table, *more[command]) == ExitCode.USAGE
    error = capsys.readouterr().err
    plain = header.removeprefix("\ufeff")
    assert (
        f"{name}: its header `{plain}` has one name, which looks like 2 names with {shown} between" in error
    )
    assert f"give `--delimiter {option}`; `--delimiter " in error


@pytest.mark.parametrize("given", [";", "^"])
@pytest.mark.parametrize("command", ["insert", "upsert"])
def test_a_wrong_delimiter_is_one_error(
    written: WrittenTables, capsys: pytest.CaptureFixture[str], given: str, command: str
) -> None:
    path, table = written.file("a.csv", "id,city\n1,Oslo\n"), written.create(ITEMS)
    more = ["--on", "id"] if command == "upsert" else []
    code = written.project.run("table", command, table, "--data", path, "--delimiter", given, *more)
    assert code == ExitCode.USAGE
    error = capsys.readouterr().err
    assert "a.csv: its header `id,city` has one name, which looks like 2 names with `,` between them" in error
    assert "give `--delimiter ,`\n" in error


@pytest.mark.parametrize("text", ['"a;b"\n1\n', "a;b\n1\n"])
def test_a_name_may_have_a_delimiter(written: WrittenTables, text: str) -> None:
    path, name = written.file("s.csv", text), f"sales.n{len(text)}"
    more = [] if text.startswith('"') else ["--delimiter", ","]
    assert written.project.run("table", "create", name, "--schema", path, *more) == 0
    assert columns(written, name) == [("a;b", "long")]


@pytest.mark.parametrize("text", ["", ";;", "x", "7", '"', "\n", "é", "semicolon"])
def test_what_is_no_delimiter(text: str) -> None:
    with pytest.raises(UsageError, match="cannot be a delimiter") as error:
        parse_delimiter(text)
    assert "`tab`" in (error.value.hint or "")


def test_other_formats_have_no_delimiter(written: WrittenTables, capsys: pytest.CaptureFixture[str]) -> None:
    table, run = written.create(ITEMS), written.project.run
    path = written.file("a.json", '{"id": 1}\n')
    assert run("table", "insert", table, "--data", path, "--delimiter", ";") == ExitCode.USAGE
    assert "a json file has no delimiter" in capsys.readouterr().err
    schema = written.file("s.yaml", ITEMS)
    assert run("table", "create", "sales.no", "--schema", schema, "--delimiter", ";") == ExitCode.USAGE
    assert "s.yaml` has no delimiter" in capsys.readouterr().err


def test_a_schema_file_of_an_unknown_format_names_the_endings(
    written: WrittenTables, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written.file("s.txt", "id\n1\n")
    assert written.project.run("table", "create", "sales.no", "--schema", path) == ExitCode.USAGE
    error = capsys.readouterr().err
    assert "end its name in `.yaml`, `.json`, `.parquet`, `.csv` or `.tsv`" in error
    assert "--data-format" not in error


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        ("a,b\n1,2\n3\n4,5,6\n", {3: 1, 4: 3}),
        ("a,b\n1,2,3\n4,5,6\n", {2: 3, 3: 3}),
        ("a,b\n1\n", {2: 1}),
        ("a,b\n" + "1,2\n" * 30_001 + "7\n", {30_003: 1}),
    ],
)
def test_ragged_rows_of_a_schema_file_have_their_lines(
    written: WrittenTables, capsys: pytest.CaptureFixture[str], content: str, lines: dict[int, int]
) -> None:
    path = written.file("r.csv", content)
    assert written.project.run("table", "create", "sales.ragged", "--schema", path) == ExitCode.FINDINGS
    *found, summary, hint = filter(None, capsys.readouterr().err.splitlines())
    values = {1: "1 value", 3: "3 values"}
    assert found == [
        f"{path}:{line}:1: error: it has {values[count]}, and the header has 2 [bad-row]"
        for line, count in lines.items()
    ]
    rows = "1 row has" if len(lines) == 1 else f"{len(lines)} rows have"
    assert summary == (
        f"error: the columns of `{path}` cannot be found: {rows} another number of values than the header"
    )
    assert "`--delimiter`" in hint
    assert written.session.find(written.session.parse("sales.ragged")) is None


def test_only_the_first_ragged_rows_are_shown(
    written: WrittenTables, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written.file("r.csv", "a,b\n" + "1\n" * 12)
    assert written.project.run("table", "create", "sales.ragged", "--schema", path) == ExitCode.FINDINGS
    shown = capsys.readouterr().err
    assert shown.count("[bad-row]") == 10
    assert "12 rows have another number of values than the header (the first 10 are shown)" in shown


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'a,b\n1,"x\n', "r.csv:2:3: the quoted value that begins here does not end"),
        (b"a,b\n1,\xff\n", "r.csv:2: the byte 0xff is not UTF-8"),
    ],
)
def test_other_faults_of_a_schema_file_have_their_lines(
    written: WrittenTables, capsys: pytest.CaptureFixture[str], content: bytes, message: str
) -> None:
    path = written.file("r.csv", content)
    assert written.project.run("table", "create", "sales.ragged", "--schema", path) == ExitCode.USAGE
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("content", ["id,city", "id,city\n", "id,city\n\n"])
def test_a_header_alone_makes_columns_of_strings_and_says_so(
    written: WrittenTables, capsys: pytest.CaptureFixture[str], content: str
) -> None:
    path, name = written.file("h.csv", content), f"sales.h{len(content)}"
    assert written.project.run("table", "create", name, "--schema", path) == 0
    assert "The file has a header and no rows, so each column is a string; `--schema` with YAML sets" in (
        capsys.readouterr().out
    )
    assert columns(written, name) == [("id", "string"), ("city", "string")]
