"""The capabilities of each kind of catalog, tested here or documented by the vendor."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from icemigrate.frozen import Frozen, replace

SPARK_ADDS = frozenset({"owner", "write.parquet.compression-codec"})
"""Properties that Spark and Iceberg's Java library set on every table that they create, in any catalog."""

NAME_MAPPING = "schema.name-mapping.default"
"""The name mapping of columns.

If a table has it, Iceberg's Java library (``SchemaUpdate``) rewrites it whenever a column is added or
renamed; some servers set it on every table.
"""
_LIBRARY_CODEC = ("write.parquet.compression-codec", "zstd")
"""The value that Iceberg's Java library sets on every new table; a user set any other value."""
_SERVER_MANAGED = frozenset({"owner", NAME_MAPPING, "nessie.commit.id"})
"""The table's creator, its name mapping, and Nessie's commit of it: servers and clients set these."""
_MULTI_TABLE_COMMIT = "/transactions/commit"
_VIEWS = "/namespaces/{namespace}/views"


class Capabilities(Frozen):
    """The capabilities of a kind of catalog.

    :param renames_across_namespaces: a table may be renamed into another namespace and back.
    :param atomic_rename: a rename is one step, so that no concurrent commit is lost.
    :param renames_by_client: the catalog has no rename: the client copies the entry and deletes the old one.
    :param tags: a tag with retention causes no problem.
    :param branches: a branch beside main causes no problem while rows are written to it.
    :param registers: a metadata file can be registered as a table.
    :param registering_keeps_uuid: a registered table keeps its uuid, which the history has.
    :param drop_keeps_files: a dropped table's metadata files stay, so that it can be registered again.
    :param namespace_drop_keeps_files: a namespace can be dropped whose folder contains files of tables that
        were renamed out of it, as into the trash, and these files stay.
    :param compare_and_swap: a commit that asserts its base fails when another came first.
    :param multi_table_commit: several tables can be committed at once, or not at all, by commits in Python:
        Iceberg's Java library has no such commit.
    :param views: the catalog has Iceberg's views, and its reader lists them.
    :param format_versions: supported format versions.
    :param nested_namespaces: a namespace may be inside another one.
    :param lowercases_names: names of tables and namespaces become lower case.
    :param adds_properties: properties that the *server* sets; see also :data:`SPARK_ADDS`.
    :param partitions_by_first_column: ``CREATE TABLE … PARTITIONED BY`` may name the table's first column.
        Spark numbers the columns of a new table from 0, and servers in languages where an absent number is 0
        then do not find the partition's source.
    """

    renames_across_namespaces: bool = True
    atomic_rename: bool = True
    renames_by_client: bool = False
    tags: bool = True
    branches: bool = True
    registers: bool = True
    registering_keeps_uuid: bool = True
    drop_keeps_files: bool = True
    namespace_drop_keeps_files: bool = True
    compare_and_swap: bool = True
    multi_table_commit: bool = False
    views: bool = False
    format_versions: tuple[int, ...] = (1, 2, 3)
    nested_namespaces: bool = True
    lowercases_names: bool = False
    adds_properties: frozenset[str] = frozenset()
    partitions_by_first_column: bool = True


_SQL = Capabilities(multi_table_commit=True, views=True)

CAPABILITY_MATRIX: dict[str, Capabilities] = {
    "sqlite": _SQL,
    "sql": _SQL,
    # What a server does beyond the protocol differs: assume the careful answer.  SeaweedFS deletes the
    # metadata files of a dropped table and all files below a dropped namespace, lets racing renames through,
    # adds a name mapping, and gives a table that is registered a uuid of its own.
    "rest": Capabilities(
        atomic_rename=False,
        registering_keeps_uuid=False,
        drop_keeps_files=False,
        namespace_drop_keeps_files=False,
        adds_properties=frozenset({NAME_MAPPING}),
        partitions_by_first_column=False,
    ),
    # Glue has no rename: clients read, create and delete (iceberg-go #1338).
    "glue": Capabilities(
        atomic_rename=False, renames_by_client=True, nested_namespaces=False, lowercases_names=True
    ),
    "hive": Capabilities(nested_namespaces=False, lowercases_names=True),
    # Amazon S3 Tables stops expiring snapshots of a table with a retained reference ("Considerations and
    # limitations for maintenance jobs"), and a dropped table is gone.
    "s3tables": Capabilities(
        tags=False,
        branches=False,
        registers=False,
        drop_keeps_files=False,
        namespace_drop_keeps_files=False,
        nested_namespaces=False,
        lowercases_names=True,
        format_versions=(2, 3),
    ),
}
"""By the kind's name; ``s3tables`` is recognised by its address, see :func:`kind_of`."""


def kind_of(type_: str, uri: str | None) -> str:
    """The row of :data:`CAPABILITY_MATRIX` for a catalog's type and address."""
    return "s3tables" if type_ == "rest" and "://s3tables." in (uri or "") else type_


def with_endpoints(capabilities: Capabilities, endpoints: Iterable[str]) -> Capabilities:
    """A REST catalog's row, made exact by the endpoints that its server lists in ``/v1/config``."""
    listed = [endpoint.rstrip("/") for endpoint in endpoints]
    multi = any(endpoint.endswith(_MULTI_TABLE_COMMIT) for endpoint in listed)
    views = any(endpoint.endswith(_VIEWS) for endpoint in listed)
    return replace(capabilities, multi_table_commit=multi, views=views)


def server_managed_predicate(capabilities: Capabilities) -> Callable[[str, str], bool]:
    """A function from a property's key and value to whether a client or the server set it automatically.

    Such properties are not part of a table's declaration.
    """
    keys = _SERVER_MANAGED | capabilities.adds_properties
    return lambda key, value: key in keys or (key, value) == _LIBRARY_CODEC
