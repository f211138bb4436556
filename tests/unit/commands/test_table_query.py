"""`table query` and `table sql`: formats, files, and the explanation."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from icemigrate.errors import ExitCode
from icemigrate.table_data.query_values import json_values
from tests.support.stored_rows import append_stored
from tests.support.table_project import ORDERS, TableProject

ALL = """\
SELECT id, 9223372036854775807::BIGINT AS big, 12345678901234567890.123456789::DECIMAL(38,9) AS exact,
  'nan'::DOUBLE AS nan, [1, NULL] AS items, {'a': NULL, 'b': 1.5::DECIMAL(3,2)} AS part, MAP {'k': DATE '2026-01-02'} AS m,
  MAP {1: TIME '01:02:03'} AS by_number, '' AS empty, NULL AS nothing, 'NULL' AS word, 'a"b' || chr(10) || 'é' AS text,
  chr(27) || '[31m' || chr(8238) AS escape, '\\x00\\xFF'::BLOB AS bytes, repeat('y', 100) AS long,
  TIMESTAMP_NS '2026-01-02 03:04:05.123456789' AS ns, INTERVAL '1 month 2 days 3.5 seconds' AS span
FROM sales.orders WHERE id = 1
"""  # noqa: E501


@pytest.fixture(scope="module")
def sales(tmp_path_factory: pytest.TempPathFactory) -> TableProject:
    """Rows 1 and 2, each in a file of its own."""
    project = TableProject.create(tmp_path_factory.mktemp("sales"), ORDERS)
    for number in (1, 2):
        append_stored(
            project, "sales.orders", [{"id": number, "customer": "ann", "amount": "1.50"}], f"t{number}"
        )
    return project


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], project: TableProject, *args: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = project.run("table", *args)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_json_loses_no_digit(sales: TableProject, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, sales, "sql", ALL, "--format", "json")
    assert (code, err) == (ExitCode.OK, "1 row\n")
    (row,) = json.loads(out)
    assert row == {
        "id": 1,
        "big": 9223372036854775807,
        "exact": "12345678901234567890.123456789",
        "nan": "NaN",
        "items": [1, None],
        "part": {"a": None, "b": "1.50"},
        "m": {"k": "2026-01-02"},
        "by_number": [{"key": 1, "value": "01:02:03.000000"}],
        "empty": "",
        "nothing": None,
        "word": "NULL",
        "text": 'a"b\né',
        "escape": "\x1b[31m\u202e",
        "bytes": "00ff",
        "long": "y" * 100,
        "ns": "2026-01-02T03:04:05.123456789",
        "span": "P1M2DT3.5S",
    }
    assert "\x1b" not in out
    assert "\u202e" not in out


def test_csv_tells_nulls_from_empty_texts(sales: TableProject, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, sales, "sql", ALL, "--format", "csv")
    assert code == ExitCode.OK
    (row,) = csv.DictReader(StringIO(out))
    assert row["exact"] == "12345678901234567890.123456789"
    assert json.loads(row["part"]) == {"a": None, "b": "1.50"}
    assert row["text"] == 'a"b\né'
    assert ',"",,"NULL",' in out
    assert ',"NaN",' in out
    assert run(capsys, sales, "sql", "SELECT 7.0::DOUBLE AS x, 1e300 AS y", "--format", "csv")[1].endswith(
        "\n7.0,1e+300\n"
    )


def test_the_table_is_safe_for_a_terminal(sales: TableProject, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, sales, "sql", ALL)
    assert (code, err) == (ExitCode.OK, "1 row\n")
    heading, line = out.splitlines()
    assert heading.startswith("id                  big")
    assert re.search(r'""\s+NULL\s+"NULL"\s+a"b\\né', line)
    assert "\\u001b[31m\\u202e" in line
    assert "y" * 59 + "…" in line
    assert "y" * 100 in run(capsys, sales, "sql", ALL, "-v")[1]


def test_a_table_for_people_has_at_most_a_thousand_rows(
    sales: TableProject, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, err = run(capsys, sales, "sql", "SELECT range AS n FROM range(1001)")
    assert len(out.splitlines()) == 1 + 1000
    assert err == "1,000 rows; there are more: `--format csv` shows all\n"
    assert len(run(capsys, sales, "sql", "FROM range(1001)", "--format", "csv")[1].splitlines()) == 1002


@pytest.mark.parametrize("name", ["rows.csv", "rows.json", "rows.parquet"])
def test_a_file_has_all_rows_or_stays(
    sales: TableProject, folder: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    code, out, err = run(capsys, sales, "query", "sales.orders", "-o", name)
    assert (code, out, err) == (ExitCode.OK, "", f"2 rows in `{name}`\n")
    before = (folder / name).read_bytes()
    broken = "SELECT CASE WHEN range = 200000 THEN error('broken') ELSE range END AS n FROM range(200001)"
    code, _, err = run(capsys, sales, "sql", broken, "-o", name)
    assert (code, err) == (
        ExitCode.USAGE,
        "error: DuckDB does not accept the query: broken\n    correct the SQL\n",
    )
    assert (folder / name).read_bytes() == before
    assert [file.name for file in folder.iterdir()] == [name]
    if name.endswith("parquet"):
        from pyarrow import parquet

        assert sorted(parquet.read_table(folder / name)["id"].to_pylist()) == [1, 2]


def test_no_row_is_a_heading_or_an_empty_array(
    sales: TableProject, capsys: pytest.CaptureFixture[str]
) -> None:
    query = ("query", "sales.orders", "--columns", "id", "--where", "false", "--format")
    assert run(capsys, sales, *query, "csv")[1] == '"id"\n'
    assert run(capsys, sales, *query, "json")[1] == "[]\n"


@pytest.mark.parametrize("target", ["", "/dev/stdout", "/dev/fd/1"])
def test_rows_for_a_program_are_utf8_in_every_locale(sales: TableProject, target: str) -> None:
    query = "SELECT 'é\u202e語' AS v FROM sales.orders WHERE id = 1"
    done = subprocess.run(
        [sys.executable, "-m", "icemigrate.cli", "table", "sql", query, "--format", "csv"]
        + (["-o", target] if target else [])
        + ["--project", str(sales.folder)],
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONIOENCODING": "latin-1"},
    )
    assert done.stdout.decode("utf-8") == '"v"\n"é\u202e語"\n'


def test_a_link_in_the_repository_is_not_followed(
    sales: TableProject,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    outside = tmp_path_factory.mktemp("outside") / "rows.csv"
    (folder / ".git").mkdir()
    (folder / "rows.csv").symlink_to(outside)
    code, _, err = run(capsys, sales, "query", "sales.orders", "-o", "rows.csv")
    assert code == ExitCode.ERROR
    assert "`rows.csv` cannot be written" in err
    assert not outside.exists()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--format", "parquet"], "the format `parquet` needs a file"),
        (["--format", "table", "-o", "x.txt"], "the format `table` is for the terminal"),
        (["-o", "x.xyz"], "end it in `.csv`, `.json` or `.parquet`, or add `--format`"),
        (["-o", "rows"], "the name `rows` does not say in which format to write the rows"),
        (["-o", "x.parquet", "--format", "csv"], "`csv` contradicts the extension of `x.parquet`"),
        (["--explain", "-o", "x.csv"], "`--explain` shows no rows"),
        (["--explain", "--format", "csv"], "`--explain` shows no rows"),
        (["--snapshot", "1", "--tag", "t1"], "`--snapshot` and `--tag` exclude each other"),
        (["--snapshot", "t99"], "has no snapshot, tag or branch `t99`"),
        (["--timestamp", "tuesday"], "`--timestamp`: `tuesday` is not a time\n    write a day"),
        (["--timestamp", "2026-02-30"], "`--timestamp`: `2026-02-30` is not a time"),
        (["--columns", "id,,at"], "`--columns`: a name is missing"),
    ],
)  # fmt: skip
def test_wrong_options_are_one_error(
    sales: TableProject, capsys: pytest.CaptureFixture[str], args: list[str], message: str
) -> None:
    code, out, err = run(capsys, sales, "query", "sales.orders", *args)
    assert code == ExitCode.USAGE
    assert out == ""
    assert message in err


def test_the_explanation_counts_skipped_files(
    sales: TableProject, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(capsys, sales, "query", "sales.orders", "--where", "id = 2", "--explain")
    assert code == ExitCode.OK
    assert "1 of 2 files read" in out
    assert "skipped  1 file (" in out
    assert "by column statistics" in out
    text = "SELECT * FROM sales.orders a JOIN sales.orders FOR VERSION AS OF 't1' b USING (id) WHERE a.id = 1"
    _, out, _ = run(capsys, sales, "sql", text, "--explain", "--format", "json")
    both = json.loads(out)["tables"]
    assert [(one["files"], one["files_read"], one["reader"]) for one in both] == [
        (2, 1, "duckdb"),
        (1, 1, "duckdb"),
    ]
    assert all(0 < one["bytes_read"] <= one["bytes"] for one in both)


def test_values_of_sliced_arrays_are_their_own() -> None:
    import pyarrow as pa

    rows: list[dict[str, Any] | None] = [
        {"l": [number], "m": [("k", number)], "s": str(number)} for number in range(5)
    ]
    kind = pa.struct({"l": pa.list_(pa.int64()), "m": pa.map_(pa.string(), pa.int64()), "s": pa.string()})
    array = pa.array([*rows, None], kind)
    assert json_values(array[2:4]) == [{"l": [n], "m": {"k": n}, "s": str(n)} for n in (2, 3)]
    assert json_values(array[4:]) == [{"l": [4], "m": {"k": 4}, "s": "4"}, None]


def test_a_time_that_no_calendar_has_keeps_its_text() -> None:
    import pyarrow as pa

    array = pa.array([0, 2**63 - 1], pa.int64()).cast(pa.timestamp("us"))
    first, last = json_values(array)
    assert first == "1970-01-01T00:00:00.000000"
    assert last == str(array.cast(pa.string())[1])
    assert "valueT" not in last


def test_only_an_earlier_state_is_named_where_a_column_is_missing(
    sales: TableProject, capsys: pytest.CaptureFixture[str]
) -> None:
    _, _, err = run(capsys, sales, "query", "sales.orders", "--columns", "foo")
    assert "error: table `sales.orders` has no column `foo`\n" in err
    _, _, err = run(capsys, sales, "query", "sales.orders", "--columns", "foo", "--tag", "t1")
    assert "error: table `sales.orders` has no column `foo` in the state that is read\n" in err


@pytest.mark.parametrize("command", ["query", "files"])
def test_a_limit_above_the_largest_is_wrong_usage(
    sales: TableProject, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    code, _, err = run(capsys, sales, command, "sales.orders", "--limit", "9" * 20)
    assert code == ExitCode.USAGE
    assert f"error: `--limit`: `{'9' * 20}` is out of range: write a whole number, 0 to 1,000,000," in err
    assert run(capsys, sales, command, "sales.orders", "--limit", "1" + "0" * 18)[0] == ExitCode.OK
