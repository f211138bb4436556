"""``impact:`` of the project file: the SQL that is searched for what migrations change."""

from __future__ import annotations

from icemigrate.declare.nodes import Mapping, Node, Scalar
from icemigrate.declare.values import items, mapping, text
from icemigrate.model.names import parse_path
from icemigrate.project.values import SqlFiles

DEFAULT_DIALECT = "spark"


def sql_files(content: Mapping) -> tuple[SqlFiles, ...]:
    """What a file without mistakes names."""
    return tuple(_entry(item) for item in items(content.get("impact")))


def _entry(item: Node) -> SqlFiles:
    """A path, or paths with what is to be known of them."""
    if isinstance(item, Scalar):
        return SqlFiles(((item.text, item.place),), DEFAULT_DIALECT, item.place)
    given = mapping(item)
    paths, dialect, namespace = given.get("paths"), given.get("dialect"), given.get("namespace")
    written = (paths,) if isinstance(paths, Scalar) else items(paths)
    return SqlFiles(
        tuple((text(path), path.place) for path in written),
        DEFAULT_DIALECT if dialect is None else text(dialect).lower(),
        item.place if dialect is None else dialect.place,
        () if namespace is None else tuple(part.lower() for part in parse_path(text(namespace))),
    )
