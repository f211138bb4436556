"""What each kind of catalog can do: the one matrix, tried or taken from the vendor's own documentation."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from icemigrate.frozen import Frozen, replace

SPARK_ADDS = frozenset({"owner", "write.parquet.compression-codec"})
"""Properties that Spark and Iceberg's Java library put on every table they create, whatever the catalog."""

NAME_MAPPING = "schema.name-mapping.default"
"""A column's names.  Where a table has it, Iceberg's Java library (``SchemaUpdate``) writes it anew
whenever a column comes or changes its name; some servers put it on every table."""
_LIBRARY_CODEC = ("write.parquet.compression-codec", "zstd")
"""What Iceberg's Java library puts on every new table; any other value was somebody's wish."""
_BY_MACHINES = frozenset({"owner", NAME_MAPPING, "nessie.commit.id"})
"""Who made a table, its columns' names, which commit of Nessie's it is read from: kept by machines."""
_MULTI_TABLE_COMMIT = "/transactions/commit"


class Capabilities(Frozen):
    """What a kind of catalog can do.

    :param renames_across_namespaces: a table may be renamed into another namespace and back.
    :param atomic_rename: a rename is one step, so that no commit made meanwhile is lost.
    :param tags: a tag with retention harms nothing.
    :param branches: a branch beside main harms nothing while rows are written on it.
    :param registers: a metadata file can be made a table again.
    :param registering_keeps_uuid: it is the same table then, and so the one that the history knows.
    :param drop_keeps_files: a dropped table's metadata files stay, so that it can be registered again.
    :param namespace_drop_keeps_files: a namespace can be dropped whose folder holds files of tables that were
        renamed out of it, as into the trash, and these files stay.
    :param compare_and_swap: a commit that asserts its base fails when another came first.
    :param multi_table_commit: several tables can be committed at once, or not at all.
    :param format_versions: format versions that it takes.
    :param nested_namespaces: a namespace may stand in another one.
    :param lowercases_names: names of tables and namespaces lose their case.
    :param adds_properties: properties that the *server* sets by itself; see also :data:`SPARK_ADDS`.
    :param partitions_by_first_column: ``CREATE TABLE … PARTITIONED BY`` may name the table's first column.
        Spark numbers the columns of a new table from 0, and servers written in languages where an absent
        number is 0 then miss the partition's source.
    """

    renames_across_namespaces: bool = True
    atomic_rename: bool = True
    tags: bool = True
    branches: bool = True
    registers: bool = True
    registering_keeps_uuid: bool = True
    drop_keeps_files: bool = True
    namespace_drop_keeps_files: bool = True
    compare_and_swap: bool = True
    multi_table_commit: bool = False
    format_versions: tuple[int, ...] = (1, 2, 3)
    nested_namespaces: bool = True
    lowercases_names: bool = False
    adds_properties: frozenset[str] = frozenset()
    partitions_by_first_column: bool = True


_SQL = Capabilities()

MATRIX: dict[str, Capabilities] = {
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
    "glue": Capabilities(atomic_rename=False, nested_namespaces=False, lowercases_names=True),
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
    """The row of :data:`MATRIX` for a catalog's type and address."""
    return "s3tables" if type_ == "rest" and "://s3tables." in (uri or "") else type_


def with_endpoints(capabilities: Capabilities, endpoints: Iterable[str]) -> Capabilities:
    """A REST catalog's row, made exact by the endpoints that its server lists in ``/v1/config``."""
    multi = any(endpoint.rstrip("/").endswith(_MULTI_TABLE_COMMIT) for endpoint in endpoints)
    return replace(capabilities, multi_table_commit=multi)


def is_set_by_machines(capabilities: Capabilities) -> Callable[[str, str], bool]:
    """A function from a property's key and value to whether a client or the server set it by itself.

    What nobody asked for is no part of how a table shall be.
    """
    keys = _BY_MACHINES | capabilities.adds_properties
    return lambda key, value: key in keys or (key, value) == _LIBRARY_CODEC
