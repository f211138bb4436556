"""A namespace is made.  It is no change of a table, so it has fewer questions to answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from icemigrate.changes.base import Phase, Reversal, Reversible, Sql, Statement
from icemigrate.model.names import format_path
from icemigrate.sql.literals import properties_sql
from icemigrate.sql.names import namespace_sql


@dataclass(frozen=True, slots=True)
class CreateNamespace:
    """A namespace is made, where it is not there already.

    :param namespace: its name inside the catalog.
    :param properties: what it is made with; those of one that exists are left alone.
    """

    kind: ClassVar[str] = "create_namespace"
    phase: ClassVar[Phase] = Phase.TABLE
    symbol: ClassVar[str] = "+"

    namespace: tuple[str, ...]
    properties: Mapping[str, str] = field(default_factory=dict)

    def statements(self, catalog: str) -> tuple[Statement, ...]:
        """One statement, which is none where the namespace exists."""
        text = f"CREATE NAMESPACE IF NOT EXISTS {namespace_sql(catalog, self.namespace)}"
        if self.properties:
            text += f" WITH PROPERTIES {properties_sql(self.properties)}"
        return (Sql(text),)

    def reversal(self) -> Reversal:
        """It is taken away again where nothing else uses it."""
        return Reversal(Reversible.WHILE, "nothing else stands in the namespace")

    def describe(self) -> str:
        """What is made."""
        return f"create namespace {format_path(self.namespace)}"
