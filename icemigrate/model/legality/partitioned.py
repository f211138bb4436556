"""Rules about partition fields (specification, "Partitioning")."""

from __future__ import annotations

import re
from collections.abc import Iterator

from icemigrate.model.json_form import primitive_text
from icemigrate.model.legality.breach import Breach, View
from icemigrate.model.names import Path, format_path
from icemigrate.model.partitioning import (
    IDENTITY,
    TIME_TRANSFORMS,
    VOID,
    PartitionField,
    accepts,
    default_name,
)
from icemigrate.model.row_modes import DELETE_MODE, MERGE_MODE, MERGE_ON_READ, UPDATE_MODE
from icemigrate.model.schema import Entry
from icemigrate.model.types import is_nested

_SUBJECT = ("partition_by",)
_ROW_MODES = (DELETE_MODE, UPDATE_MODE, MERGE_MODE)
_PORTABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*\Z")


def partition_sources_exist(view: View) -> Iterator[Breach]:
    """A field that the table is partitioned by now is in the schema.

    Iceberg refuses the drop (``PartitionSpec.checkCompatibility``); fields of older specs may go.
    """
    for field in view.table.spec.live:
        if field.source_ids[0] not in view.fields:
            source = _former_path(view, field)
            yield Breach(
                "partition-source-missing",
                _SUBJECT,
                f"the table is partitioned by `{field.name}`, whose source {_named(source)} is not there",
                f"write `partition_by` without `{field.name}` in the migration that drops {_named(source)}",
            )


def void_sources_exist(view: View) -> Iterator[Breach]:
    """A field that the table was partitioned by stays, as long as the spec still holds it as void.

    Format version 1 never lets a partition field go.  The specification allows its source to be dropped, and
    so does Iceberg; but beside a live field, a void one without its source makes every write by Spark fail
    ("Cannot build accessor for field"), in format version 2 too.  Alone it does no harm yet.  A drop wants
    consent anyway, and undoing it makes the table writable again.
    """
    live = bool(view.table.spec.live)
    for field in view.table.spec.fields:
        if field.transform != VOID or field.source_ids[0] in view.fields:
            continue
        harm = (
            "Spark can write no row into the table, for as long as it is partitioned by anything"
            if live
            else "the table can never be partitioned again"
        )
        yield Breach(
            "void-partition-source-missing",
            _SUBJECT,
            f"{_named(_former_path(view, field))} was the source of partition field `{field.name}`, "
            f"which format version 1 keeps as a void one; without it {harm}",
            "keep the column, or bring it back with `restore_columns`",
            is_warning=True,
        )


_LOSING_VALUES = ("identity", "truncate")
"""The transforms whose values Iceberg writes as null while the type of the source is not known."""
_LOSS = (
    "; manifests that are written then lose its partition values: if files of that partitioning have delete "
    "files, reads fail, or deleted rows appear again"
)
_FILES_FIRST = (
    "write the files of that partitioning again before the column goes (`rewrite: {partitions: old}`), "
    "or keep the column"
)


def earlier_sources_exist(view: View) -> Iterator[Breach]:
    """A field that only earlier specs use may go, but files written under them still name it.

    Iceberg 1.12 reads such a table and appends to it, but every ``UPDATE``, ``DELETE`` and ``MERGE`` by
    merge-on-read fails ("Cannot find field …"), also when all files are rewritten and old metadata is
    expired; so it is an error where the table writes so.  Earlier versions fail on it altogether, and so do
    its metadata tables (public threads: apache/iceberg#10234, #4563; trinodb/trino#15729).
    """
    if view.before is None:
        return
    now = {f.source_ids[0] for f in view.table.spec.fields}  # these have rules of their own
    earlier = dict.fromkeys(f.source_ids[0] for s in view.table.older_specs for f in s.live)
    losing = {
        f.source_ids[0] for s in view.table.older_specs for f in s.live if f.transform.name in _LOSING_VALUES
    }
    for source in (i for i in earlier if i not in now):
        path = view.before.schema.path_of(source)
        if path is not None and source not in view.fields:
            name = format_path(path)
            once = f"the table was partitioned by `{name}` once; "
            if any(view.table.properties.get(mode) == MERGE_ON_READ for mode in _ROW_MODES):
                yield Breach(
                    "earlier-partition-source-missing",
                    ("drop_columns", name),
                    f"{once}no row could be updated or deleted by merge-on-read when the column is gone",
                    f"keep `{name}`, or have the table write by copy-on-write from now on: `properties: "
                    "{write.update.mode: null, …}`",
                )
                continue
            yield Breach(
                "earlier-partition-source-missing",
                ("drop_columns", name),
                f"{once}merge-on-read, engines before Iceberg 1.12 and the metadata table `partitions` may "
                f"fail when the column is gone{_LOSS if source in losing else ''}",
                _FILES_FIRST if source in losing else "keep the column for as long as anybody needs these",
                is_warning=True,
            )


def _former_path(view: View, field: PartitionField) -> Path | None:
    return view.before.schema.path_of(field.source_ids[0]) if view.before else None


def _named(path: Path | None) -> str:
    return "a field" if path is None else f"`{format_path(path)}`"


def transforms_fit(view: View) -> Iterator[Breach]:
    """A transform is applied to a type that it takes, and has a size where it wants one.

    Specification, "Partition Transforms".
    """
    for field, entry in _live(view):
        path = format_path(entry.path)
        if len(field.source_ids) > 1:
            yield Breach(
                "partition-of-several-fields",
                _SUBJECT,
                f"partition field `{field.name}` has several sources, which no engine writes yet",
                "partition by one field each",
            )
        elif not accepts(field.transform, entry.field.type):
            yield Breach(
                "partition-transform",
                _SUBJECT,
                f"`{path}` is {_type_text(entry)}, which {field.transform} cannot be applied to",
                _transform_hint(entry),
            )
        elif field.transform.width is not None and field.transform.width <= 0:
            yield Breach(
                "partition-width",
                _SUBJECT,
                f"partition field `{field.name}` is {field.transform} of `{path}`; a size is 1 or more",
                "write a positive number",
            )


def _type_text(entry: Entry) -> str:
    type_ = entry.field.type
    return f"a {type(type_).__name__.lower()}" if is_nested(type_) else f"of type {primitive_text(type_)}"


def _transform_hint(entry: Entry) -> str:
    if is_nested(entry.field.type):
        return "partition by one of its fields, outside lists and maps"
    return "partition by another transform, or by another field"


def sources_outside_containers(view: View) -> Iterator[Breach]:
    """A source stands in no list or map: a row has one partition (specification, "Partitioning")."""
    for field, entry in _live(view):
        if view.in_container(entry):
            yield Breach(
                "partition-source-in-list-or-map",
                _SUBJECT,
                f"partition field `{field.name}` is of `{format_path(entry.path)}`, "
                "which stands in a list or a map",
                "partition by a field outside lists and maps",
            )


def no_double_fields(view: View) -> Iterator[Breach]:
    """No two partition fields have one name, or are the same transform of the same field.

    ``BaseUpdatePartitionSpec``: "Cannot add duplicate partition field".
    """
    names: set[str] = set()
    terms: dict[tuple[object, ...], str] = {}
    for field in view.table.spec.fields:
        if field.name in names:
            yield Breach(
                "duplicate-partition-name",
                _SUBJECT,
                f"two partition fields are named `{field.name}`",
                "name one of them: `… as another_name`",
            )
        names.add(field.name)
        if field.transform == VOID:
            continue
        other = terms.setdefault((field.source_ids, field.transform), field.name)
        if other != field.name:
            yield Breach(
                "duplicate-partition-field",
                _SUBJECT,
                f"partition fields `{other}` and `{field.name}` are the same: {field.transform} of one field",
                "take one of them out",
            )


def no_redundant_times(view: View) -> Iterator[Breach]:
    """Two of year, month, day and hour of one field are not added together: the finer one holds the coarser.

    ``BaseUpdatePartitionSpec`` refuses it in one update ("Cannot add redundant partition field"); over two
    updates it passes, so an hour may be added where the table is partitioned by day already.
    """
    old = {_term(f) for f in view.before.spec.live} if view.before else set()
    added: dict[tuple[int, ...], PartitionField] = {}
    for field, entry in _live(view):
        if field.transform.name not in TIME_TRANSFORMS or _term(field) in old:
            continue
        other = added.setdefault(field.source_ids, field)
        if other != field:
            finer = max(other, field, key=lambda f: TIME_TRANSFORMS.index(f.transform.name))
            path = format_path(entry.path)
            yield Breach(
                "redundant-partitions",
                _SUBJECT,
                f"`{path}` is to be partitioned by {other.transform} and by {field.transform} at once",
                f"keep `{finer.transform}({path})` alone: filters on the coarser one use it too",
            )


def _term(field: PartitionField) -> tuple[tuple[int, ...], str]:
    return (field.source_ids, str(field.transform))


def names_differ_from_columns(view: View) -> Iterator[Breach]:
    """A partition field is named like no column, unless it is that column's identity.

    Specification, "Partitioning"; ``PartitionSpec.Builder``: "Cannot create identity partition sourced from
    different field in schema".  Partition names do not follow renames of columns, and every schema
    change is held against the earlier specs as well: a name that a table was ever partitioned under is lost
    to other columns for as long as the source is there (public threads: apache/iceberg#11762, #16217).
    """
    seen: set[tuple[str, int]] = set()
    for spec in (view.table.spec, *view.table.older_specs):
        for field in spec.fields:
            clash = view.find(field.name)
            if clash is None or (field.name, clash) in seen or field.source_ids[0] not in view.fields:
                continue
            own = (clash,) == field.source_ids
            if not own or (spec is view.table.spec and field.transform not in (IDENTITY, VOID)):
                seen.add((field.name, clash))
                yield _clash(view, field, clash)


def _clash(view: View, field: PartitionField, clash: int) -> Breach:
    column, source = (format_path(view.fields[i].path) for i in (clash, field.source_ids[0]))
    term = _term_text(field, source)
    if _was_there(view, field):
        return Breach(
            "partition-name-is-a-column",
            ("columns", column),
            f"`{column}` cannot be named so: the table is, or was, partitioned by {term} under the name "
            f"`{field.name}`",
            f"give the column another name; the name stays taken for as long as `{source}` is there, "
            "whatever the table is partitioned by now",
        )
    return Breach(
        "partition-name-is-a-column",
        _SUBJECT,
        f"partition field `{field.name}` ({term}) is named like column `{column}`",
        f"either name the partition field otherwise (`{term} as {_free_name(view, field)}`), "
        "or give the column another name",
    )


def _was_there(view: View, field: PartitionField) -> bool:
    """Whether the table had a field of this name and source before the migration."""
    specs = (view.before.spec, *view.before.older_specs) if view.before else ()
    return any(f.name == field.name and f.source_ids == field.source_ids for s in specs for f in s.fields)


def _term_text(field: PartitionField, source: str) -> str:
    if field.transform in (IDENTITY, VOID):
        return source
    width = "" if field.transform.width is None else f"{field.transform.width}, "
    return f"{field.transform.name}({width}{source})"


def _free_name(view: View, field: PartitionField) -> str:
    name = default_name(view.fields[field.source_ids[0]].path, field.transform).replace(".", "_")
    while view.find(name) is not None:
        name += "_part"
    return name


def names_mean_one_field(view: View) -> Iterator[Breach]:
    """Over all specs of a table, no two partition fields have one name, in whatever case.

    Iceberg lets it through.  ``Partitioning.partitionType`` then makes one struct of the fields of all specs,
    each under its latest name.  Spark needs it to update and delete by merge-on-read, for the column
    ``_partition`` and for the metadata tables ``files`` and ``partitions``: all of these fail from then on
    ("Invalid schema: multiple fields for name"), and no expiry mends it.  In format version 1 a field that is
    dropped gives its name up.
    """
    latest: dict[int, PartitionField] = {}
    for spec in sorted((view.table.spec, *view.table.older_specs), key=lambda s: s.id, reverse=True):
        for field in spec.fields:
            if field.source_ids[0] in view.fields:
                latest.setdefault(field.id, field)
    names: dict[str, PartitionField] = {}
    for field in sorted(latest.values(), key=lambda f: f.id):
        other = names.setdefault(field.name.lower(), field)
        if other != field:
            term = _term_text(other, format_path(view.fields[other.source_ids[0]].path))
            yield Breach(
                "partition-name-again",
                _SUBJECT,
                f"partition name `{field.name}` was that of another field, {term}: updates by merge-on-read, "
                "and the metadata tables, would fail from then on",
                f"give the new one a name that the table has not had: `… as {_unused_name(view, field)}`",
            )


def _unused_name(view: View, field: PartitionField) -> str:
    used = {f.name.lower() for s in (view.table.spec, *view.table.older_specs) for f in s.fields}
    name = _free_name(view, field)
    while name.lower() in used:
        name += "_again"
    return name


def names_are_portable(view: View) -> Iterator[Breach]:
    """Partition names are of letters, digits and underscores, since they become field names in Avro files.

    Iceberg encodes others, other readers reject the files (public thread: apache/iceberg-python#2123).  Dots
    are let through: Iceberg's own names for nested fields have them.
    """
    for field in view.table.spec.live:
        if not _PORTABLE.match(field.name):
            yield Breach(
                "partition-name-not-portable",
                _SUBJECT,
                f"partition name `{field.name}` has characters that some readers of manifests reject",
                "give it a plain name: `… as plain_name`",
                is_warning=True,
            )


def _live(view: View) -> Iterator[tuple[PartitionField, Entry]]:
    """The live fields whose first source exists."""
    for field in view.table.spec.live:
        entry = view.fields.get(field.source_ids[0])
        if entry is not None:
            yield field, entry
