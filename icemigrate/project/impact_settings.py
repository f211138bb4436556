"""``impact:`` of the project file: the SQL files that are searched for uses of changed objects."""

from __future__ import annotations

from icemigrate.files.parse.yaml_nodes import YamlMapping, YamlNode, YamlScalar
from icemigrate.files.read.node_values import as_mapping, list_items, scalar_text
from icemigrate.iceberg.names import parse_path
from icemigrate.project.project_values import SqlFiles

DEFAULT_DIALECT = "spark"


def sql_files(content: YamlMapping) -> tuple[SqlFiles, ...]:
    """The SQL files of a valid project file."""
    return tuple(_entry(item) for item in list_items(content.get("impact")))


def _entry(item: YamlNode) -> SqlFiles:
    """A path, or paths with their settings."""
    if isinstance(item, YamlScalar):
        return SqlFiles(((item.text, item.place),), DEFAULT_DIALECT, item.place)
    given = as_mapping(item)
    paths, dialect, namespace = given.get("paths"), given.get("dialect"), given.get("namespace")
    manifest = given.get("manifest")
    written = (paths,) if isinstance(paths, YamlScalar) else list_items(paths)
    return SqlFiles(
        tuple((scalar_text(path), path.place) for path in written),
        DEFAULT_DIALECT if dialect is None else scalar_text(dialect).lower(),
        item.place if dialect is None else dialect.place,
        () if namespace is None else tuple(part.lower() for part in parse_path(scalar_text(namespace))),
        None if manifest is None else (scalar_text(manifest), manifest.place),
    )
