"""Names of Java are looked up once in a JVM, and rows are written without a call for each column."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from py4j import java_gateway

from icemigrate.iceberg.names import TableName
from icemigrate.spark.append_snapshot import build_records
from icemigrate.spark.gateway import cache_lookups
from icemigrate.spark.java_catalog import CachedJvmView, JavaCatalog


class Answers:
    """The JVM's answers to a client of Py4J: names in small letters are packages, other names are classes."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.converters: list[Any] = []
        self.gateway_property = SimpleNamespace(pool=None)

    def send_command(self, command: str) -> str:
        name = command.split("\n")[2]
        self.asked.append(name)
        return "yp" if name.rpartition(".")[2].islower() else f"yc{name}"


@pytest.fixture
def answers() -> Answers:
    return Answers()


@pytest.fixture
def jvm(answers: Answers) -> java_gateway.JVMView:
    return java_gateway.JVMView(answers, jvm_name="default", id="rj")


def test_what_pyspark_asks_for_each_error_is_looked_up_once(
    answers: Answers, jvm: java_gateway.JVMView
) -> None:
    cache_lookups(jvm)
    assert answers.asked == ["PythonUtils", "py4j", "py4j.reflection", "py4j.reflection.TypeUtil"]
    known = [jvm.PythonUtils, jvm.py4j.reflection.TypeUtil]
    assert [one._fqn for one in known] == ["PythonUtils", "py4j.reflection.TypeUtil"]
    assert len(answers.asked) == 4


def test_catalogs_of_one_jvm_share_what_they_looked_up(answers: Answers, jvm: java_gateway.JVMView) -> None:
    for view in (CachedJvmView(jvm), CachedJvmView(jvm)):
        assert view.java.util.HashSet is view.java.util.HashSet
    assert answers.asked == ["java", "java.util", "java.util.HashSet"]


def test_a_name_is_compared_with_metadata_tables_once() -> None:
    session, name = MagicMock(), TableName(("db",), "history")
    java = JavaCatalog(session, "lake")
    types = session._jvm.org.apache.iceberg.MetadataTableType
    catalog = session._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergCatalog.return_value
    catalog.tableExists.return_value = False
    assert java.find(name) is None
    assert java.find(name) is None
    getattr(types, "from").assert_called_once_with("history")
    assert catalog.tableExists.call_count == 2, "the table may have come meanwhile"


@pytest.mark.parametrize("columns", [2, 40])
def test_the_calls_for_a_row_do_not_depend_on_its_columns(columns: int) -> None:
    jvm, schema = MagicMock(), SimpleNamespace()
    fields = [{"name": f"text{n}", "type": "string"} for n in range(columns)]
    fields += [{"name": "count", "type": "int"}, {"name": "size", "type": "long"}]
    jvm.org.apache.iceberg.SchemaParser.toJson.return_value = json.dumps({"fields": fields})
    values = {f"text{n}": "x" for n in range(columns)}
    list(build_records(jvm, schema, [{**values, "count": 1, "size": 2}]))
    read = jvm.com.fasterxml.jackson.databind.ObjectMapper().enable().readValue
    assert json.loads(read.call_args.args[0]) == {**values, "size": 2}, "the JVM reads an int as a long"
    made = jvm.org.apache.iceberg.data.GenericRecord.create().copy()
    made.setField.assert_called_once_with("count", 1)
    assert [name for name, _, _ in jvm.method_calls] == [
        "org.apache.iceberg.SchemaParser.toJson",
        "com.fasterxml.jackson.databind.ObjectMapper",
        "java.lang.Class.forName",
        "org.apache.iceberg.data.GenericRecord.create",
        "com.fasterxml.jackson.databind.ObjectMapper",
        "org.apache.iceberg.data.GenericRecord.create",
    ]
