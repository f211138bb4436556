"""Where the search of a file ends at a limit, a finding reports it: nothing is silent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from icemigrate.files.parse.source_text import SIZE_LIMIT
from icemigrate.sql_impact import data_frames, jinja_templates, python_file, python_uses, sql_parser
from tests.impact.corpus import told


def findings(folder: Path, name: str, text: str | bytes) -> list[str]:
    """The findings about one file."""
    return list(told({"impact": ["jobs"], "files": {f"jobs/{name}": text}}, folder))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def at_most_five_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python_uses, "_MOST_USES", 5)


@pytest.mark.usefixtures("at_most_five_uses")
def test_the_uses_beyond_the_limit_are_counted(folder: Path) -> None:
    text = 'o = spark.table("shop.orders")\n' + 'o.select("total")\n' * 6 + "o.select(o.total)\n"
    found = findings(folder, "a.py", text)
    assert sum("IM111" in line for line in found) == 5
    assert [line for line in found if "IM114" in line] == [
        "jobs/a.py:7:10 warning IM114: this may use what migrations change, and was not searched: "
        "5 uses are reported, and 2 more places name a changed column"
    ]


@pytest.mark.usefixtures("at_most_five_uses")
def test_a_module_that_names_no_table_is_counted_too(folder: Path) -> None:
    files = {
        "jobs/a.py": 'from jobs.b import clean\nclean(spark.table("shop.orders"))\n',
        "jobs/b.py": "def clean(df):\n" + '    df.select("total")\n' * 9,
    }
    found = list(told({"impact": ["jobs"], "files": files}, folder))
    assert [line.split(":")[0] for line in found if "and 4 more places" in line] == ["jobs/b.py"]


def test_a_file_with_too_many_tokens_is_reported_wherever_it_names_the_table(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql_parser, "MOST_TOKENS", 100)
    text = "SELECT 1" + ", 1" * 100 + " FROM shop.orders"
    assert [line[:20] for line in findings(folder, "a.sql", text)] == ["jobs/a.sql:1:1 warni"]


def test_a_notebook_that_is_nested_too_deeply_is_reported(folder: Path) -> None:
    outputs = "[" * 300 + "]" * 300
    cell = {"cell_type": "code", "source": ['spark.table("shop.orders").select("total")']}
    text = f'{{"metadata": {{"x": {outputs}}}, "cells": [{json.dumps(cell)}]}}'
    (line,) = findings(folder, "a.ipynb", text)
    assert "IM114" in line
    assert "nested too deeply" in line


def test_a_second_yaml_document_is_reported(folder: Path) -> None:
    (line,) = findings(folder, "a.yaml", "a: 1\n---\ntable: shop.orders\ncolumns: [total]\n")
    assert line.startswith("jobs/a.yaml:2:1 warning IM114")


def test_each_branch_of_a_template_in_python_is_read(folder: Path) -> None:
    text = 'run(sql="SELECT {% if a %} id {% else %} total {% endif %} FROM shop.orders")\n'
    assert [line.split(": ")[0] for line in findings(folder, "a.py", text)] == ["jobs/a.py:1:42 error IM111"]


def test_the_columns_of_the_relations_beyond_the_limit_count(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(python_file, "_MOST_RELATIONS", 1)
    text = 'a = spark.table("shop.returns")\nb = spark.table("shop.orders")\nKEY = "total"\n'
    assert ["jobs/a.py:3:8 warning IM112" in line for line in findings(folder, "a.py", text)] == [True]


@pytest.mark.parametrize("text", ["x: {} = 1\n", "y = {}\n", "def f(x: {}): pass\n"])
def test_python_that_is_nested_too_deeply_is_reported(text: str, folder: Path) -> None:
    text = text.format("F." + "a." * 2_900 + "b")
    found = findings(folder, "a.py", text + 'spark.table("shop.orders").select("total")\n')
    assert len(found) == 1


CODE = {
    "a.sql": "SELECT total FROM shop.orders -- {}\n",
    "a.py": 'spark.sql("SELECT total FROM shop.orders")  # {}\n',
    "a.scala": 'spark.sql("SELECT total FROM shop.orders")  // {}\n',
    "a.yaml": "sql: SELECT total FROM shop.orders  # {}\n",
    "a.ipynb": '{{"cells": [{{"cell_type": "code", "source": ["%sql SELECT total FROM shop.orders"]}}]}}{}\n',
}


@pytest.mark.parametrize("character", "\0\a\v\f\x1b\x1c\x7f\x85\u2028\ufeff\ufffe")
@pytest.mark.parametrize("name", CODE)
def test_no_character_hides_a_use(name: str, character: str, folder: Path) -> None:
    (line,) = findings(folder, name, CODE[name].format(character))
    assert " IM111: " in line or " IM114: " in line


@pytest.mark.parametrize("character", "\0\x01\x1b\x7f\xad\u200b\ufeff")
@pytest.mark.parametrize(
    "text",
    ["SELECT total{} FROM shop.orders", "SELECT {}total FROM shop.orders", "SELECT total FROM shop.orders{}"],
)
def test_a_stray_character_at_a_name_hides_no_use(text: str, character: str, folder: Path) -> None:
    (line,) = findings(folder, "a.sql", text.format(character))
    assert " error IM111: " in line


def test_a_stray_character_in_a_name_is_reported(folder: Path) -> None:
    (line,) = findings(folder, "a.sql", "SELECT to\0tal FROM shop.orders")
    assert line.startswith("jobs/a.sql:1:10 warning IM114")
    assert line.endswith("the character U+0000 is not SQL")


def test_a_query_that_joins_too_many_tables_is_reported(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql_parser, "MOST_JOINS", 2)
    joins = "".join(f" JOIN shop.orders o{n} ON o{n}.id = 1" for n in range(3))
    (line,) = findings(folder, "a.sql", f"SELECT total FROM shop.orders{joins}")
    assert line.endswith("so it was not searched: it joins 3 tables; the limit is 2")


@pytest.mark.parametrize(
    ("call", "why"),
    [
        ("struct(" * 20 + "total" + ")" * 20, "it nests calls of `struct` more than 10 times"),
        ("map(total)", "it is not SQL that can be parsed"),
    ],
)
def test_calls_that_the_parser_cannot_read_are_reported(folder: Path, call: str, why: str) -> None:
    (line,) = findings(folder, "a.sql", f"SELECT {call} FROM shop.orders")
    assert line.endswith(why)


def test_loops_that_give_too_much_text_are_reported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jinja_templates, "_MOST_CHARACTERS", 100)
    text = "{% for x in ['id', 'total'] %}" * 9 + "select {{ x }} from shop.orders;" + "{% endfor %}" * 9
    found = findings(folder, "a.sql", text)
    assert any(" IM114: " in line and "its loops give too much text" in line for line in found)


def test_data_frames_beyond_the_limit_are_possible_uses(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_frames, "_MOST_COLUMNS", 20)
    text = 'o = spark.table("shop.orders")\n' + 'o = o.where("id > 1")\n' * 20 + 'o.select("total")\n'
    (line,) = findings(folder, "a.py", text)
    assert line.startswith("jobs/a.py:22:11 warning IM112")


PIECES = """
q = "select total "; q += "from shop.orders"; spark.sql(q)
q = ""; q = q + "select total from shop.orders"; spark.sql(q)
q = "select total from "; q += "shop.orders"; spark.sql(q)
q = "select a.total from x.y b "; q += "join shop.orders a on a.id = b.id"; spark.sql(q)
a = "select total from x.y b "; b = "join shop.orders a on a.id = b.id"; spark.sql(a + b)
a = "select total from x.y b "; b = "join shop.orders a on a.id = b.id"; spark.sql("%s%s" % (a, b))
a = "select total from x.y b "; b = "join shop.orders a on a.id = b.id"; spark.sql("{}{}".format(a, b))
a = "select total from x.y b "; b = "join shop.orders a on a.id = b.id"; spark.sql(" ".join([a, b]))
q = "select total "; q = f"{q} from shop.orders"; spark.sql(q)
q = "select total {}"; q = q.format("from shop.orders"); spark.sql(q)
q = "{} from shop.orders"; q = q.format("select total"); spark.sql(q)
q = "select total %s"; q = q % "from shop.orders"; spark.sql(q)
p = []; p.append("select total from x.y b"); p.append("join shop.orders a"); spark.sql(" ".join(p))
p = ["select total from x.y b"]; p += ["join shop.orders a"]; spark.sql(" ".join(p))
q = "".join([q + x for x in ["select total from x.y b", " join shop.orders a"]])
f.write("select total from x.y b "); f.write("join shop.orders a on a.id = b.id")
self.q = "select total from x.y b "; self.q += "join shop.orders a on a.id = b.id"
d["q"] = "select total from x.y b "; d["q"] += "join shop.orders a on a.id = b.id"
(q := "select total "); q += "from shop.orders"
"""


@pytest.mark.parametrize("code", PIECES.strip().splitlines())
def test_sql_that_grows_piece_by_piece_hides_no_use(code: str, folder: Path) -> None:
    (line,) = findings(folder, "a.py", f"{code}\n")
    assert " IM112: " in line


def test_whole_statements_about_other_tables_use_nothing(folder: Path) -> None:
    text = 'q = "select total from x.y"\nspark.sql(q)\nspark.sql("select id from shop.orders")\n'
    text += 'q = "select total from " + "x.z"\nspark.sql(q)\n'
    assert findings(folder, "a.py", text) == []


@pytest.mark.parametrize("character", "\0\v\f\x1b\x85\u2028\ufeff")
def test_a_character_in_a_comment_of_sql_does_not_end_the_search(character: str, folder: Path) -> None:
    (line,) = findings(folder, "a.sql", CODE["a.sql"].format(character))
    assert line.startswith("jobs/a.sql:1:8 error IM111: ")


@pytest.mark.parametrize("character", "\x1b\ufeff")
def test_no_character_hides_the_sources_of_dbt(character: str, folder: Path) -> None:
    files = {
        "dbt_project.yml": "name: shop",
        "models/s.yml": f"sources: [{{name: raw, schema: shop, tables: [{{name: orders}}]}}] # {character}\n",
        "models/a.sql": "select total from {{ source('raw', 'orders') }}\n",
    }
    found = list(told({"impact": ["models"], "files": files}, folder))
    assert [line for line in found if " IM111: " in line or " IM114: " in line]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (CODE["a.sql"].encode("utf-16"), "the file is UTF-16, not UTF-8"),
        (CODE["a.sql"].encode("utf-32"), "the file is UTF-32, not UTF-8"),
        (CODE["a.sql"].encode() + b"\xff", "the file is not UTF-8: the byte 0xff does not belong here"),
        (CODE["a.sql"].encode() + b" " * SIZE_LIMIT, "the file is larger than 4 MiB"),
    ],
    ids=["UTF-16", "UTF-32", "a byte", "too large"],
)
def test_a_file_that_cannot_be_read_is_reported(content: bytes, why: str, folder: Path) -> None:
    (line,) = findings(folder, "a.sql", content)
    place, message = line.split(" warning ")
    assert place.startswith("jobs/a.sql:")
    assert message == f"IM114: this may use what migrations change, and was not searched: {why}"


def test_a_file_that_the_system_does_not_read_is_reported(folder: Path) -> None:
    (folder / "jobs").mkdir()
    (folder / "jobs" / "a.sql").symlink_to("/etc/hosts")
    lines = findings(folder, "b.sql", "SELECT 1")
    assert [line.split(": ")[0] for line in lines] == ["jobs/a.sql:1:1 warning IM114"]
