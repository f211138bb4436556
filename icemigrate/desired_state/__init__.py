"""Whole declarations of tables, from which ``diff`` writes the next migration."""

from __future__ import annotations

from collections.abc import Callable

from icemigrate.desired_state.dbt_columns import is_dbt_file, read_dbt_columns
from icemigrate.desired_state.desired_table import DesiredTable
from icemigrate.desired_state.odcs_contract import is_odcs_contract, read_odcs_contract
from icemigrate.desired_state.spark_schema import is_spark_schema, read_spark_schema
from icemigrate.files.parse.yaml_nodes import YamlNode
from icemigrate.frozen import Frozen
from icemigrate.iceberg.names import TableName


class DocumentKind(Frozen):
    """A kind of YAML or JSON file that describes the columns of one table.

    :param fits: whether a document is of this kind.
    :param read: the table of a name; raises ``Mistakes``.
    """

    name: str
    fits: Callable[[YamlNode], bool]
    read: Callable[[YamlNode, TableName], DesiredTable]


DOCUMENT_KINDS: tuple[DocumentKind, ...] = (
    DocumentKind("a schema of Spark", is_spark_schema, read_spark_schema),
    DocumentKind("a properties file of dbt", is_dbt_file, read_dbt_columns),
    DocumentKind("a data contract", is_odcs_contract, read_odcs_contract),
)
"""All kinds; a file of none of them declares tables as a migration file does."""
