"""Maps declared objects to an environment: names in its catalog, overrides, settings of its clients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from icemigrate.catalog.catalog_port import CatalogSettings
from icemigrate.errors import UsageError
from icemigrate.files.read.migration_file import UNSET
from icemigrate.files.replay.replay_settings import retention_properties
from icemigrate.frozen import replace
from icemigrate.iceberg.names import BadName, TableName, parse_path
from icemigrate.iceberg.table import Table
from icemigrate.project import Environment, pyiceberg_properties
from icemigrate.project.project_values import CatalogDescription

Namespace = tuple[str, ...]


@dataclass(frozen=True)
class NamespaceMapping:
    """Declared names and those in an environment's catalog, both ways.

    A mapped namespace includes nested ones: with ``bronze: prod_bronze`` the namespace ``bronze.raw`` is
    ``prod_bronze.raw``.
    """

    environment: Environment
    _there: Mapping[Namespace, Namespace] = field(init=False)
    _back: Mapping[Namespace, Namespace] = field(init=False)

    def __post_init__(self) -> None:
        there = {_path(old): _path(new) for old, new in self.environment.namespaces.items()}
        back = {new: old for old, new in there.items()}
        if len(back) < len(there):
            raise UsageError(
                f"environment `{self.environment.name}`: two namespaces map to the same name",
                "give each its own name under `namespaces:`",
            )
        object.__setattr__(self, "_there", there)
        object.__setattr__(self, "_back", back)

    def namespace(self, declared: Namespace) -> Namespace:
        """A declared namespace as the catalog calls it."""
        return _mapped(declared, self._there)

    def table(self, declared: TableName) -> TableName:
        """A declared table as the catalog calls it."""
        return TableName(self.namespace(declared.namespace), declared.name)

    def declared(self, name: TableName) -> TableName:
        """A table in the catalog as the files call it."""
        return TableName(_mapped(name.namespace, self._back), name.name)

    def is_shared(self, declared: TableName) -> bool:
        """Whether a mapped namespace gives another declared table the same name in the catalog."""
        return self.declared(self.table(declared)) != declared

    def names_only(self) -> NamespaceMapping:
        """The same names without the settings of the environment, whose secrets no other process gets."""
        catalog = CatalogDescription(self.environment.catalog.name, self.environment.catalog.type)
        return NamespaceMapping(
            Environment(self.environment.name, catalog, namespaces=self.environment.namespaces)
        )

    def adjust(self, table: Table) -> Table:
        """A declared table (under its name in the catalog) with the environment's overrides."""
        declared = self.declared(table.name)
        for override in self.environment.overrides:
            if not fnmatchcase(str(declared), override.tables):
                continue
            changes: dict[str, str | None] = dict(override.properties)
            if override.retention is not UNSET:
                changes |= retention_properties(override.retention)
            properties = {k: v for k, v in {**table.properties, **changes}.items() if v is not None}
            table = replace(table, properties=properties)
            if override.location is not None:
                table = replace(table, location=_location(override.location, table.name))
        return table


def _mapped(namespace: Namespace, names: Mapping[Namespace, Namespace]) -> Namespace:
    for length in range(len(namespace), 0, -1):
        new = names.get(namespace[:length])
        if new is not None:
            return (*new, *namespace[length:])
    return namespace


def _path(text: str) -> Namespace:
    try:
        return parse_path(text)
    except BadName as error:
        raise UsageError(f"`namespaces:` in the project file: {error}") from error


def _location(pattern: str, name: TableName) -> str:
    """Not ``str.format``: only these two placeholders are replaced, other braces stay."""
    return pattern.replace("{namespace}", ".".join(name.namespace)).replace("{table}", name.name)


def catalog_settings(environment: Environment) -> CatalogSettings:
    """How the catalog's readers reach it."""
    properties = pyiceberg_properties(environment)
    properties.pop("type", None)
    return CatalogSettings(
        name=environment.catalog.name,
        type=environment.catalog.type,
        uri=properties.pop("uri", None),
        warehouse=properties.pop("warehouse", None),
        properties=properties,
        timeout_s=environment.catalog.timeout_s,
    )
