"""Rules about partition fields (specification, "Partitioning")."""

from __future__ import annotations

import re
from collections.abc import Iterator
from operator import attrgetter

from icemigrate.iceberg.names import FieldPath, format_path
from icemigrate.iceberg.partitioning import (
    IDENTITY,
    TIME_TRANSFORMS,
    VOID,
    PartitionField,
    accepts_source_type,
    default_name,
)
from icemigrate.iceberg.schema import IndexedField
from icemigrate.iceberg.schema_json import primitive_text
from icemigrate.iceberg.table_properties import DELETE_MODE, MERGE_MODE, MERGE_ON_READ, UPDATE_MODE
from icemigrate.iceberg.types import is_nested
from icemigrate.iceberg.validation.violation import ValidationContext, Violation

_SUBJECT = ("partition_by",)
_ROW_MODES = (DELETE_MODE, UPDATE_MODE, MERGE_MODE)
_PORTABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*\Z")


def partition_sources_exist(view: ValidationContext) -> Iterator[Violation]:
    """The source of a current partition field exists.

    Iceberg refuses to drop it (``PartitionSpec.checkCompatibility``). Fields of older specs can be
    dropped.
    """
    for field in view.table.spec.live:
        if field.source_ids[0] not in view.fields:
            source = _former_path(view, field)
            yield Violation(
                "partition-source-missing",
                _SUBJECT,
                f"the table is partitioned by `{field.name}`, whose source {_named(source)} does not exist",
                f"remove `{field.name}` from `partition_by` in the migration that drops {_named(source)}",
            )


def void_sources_exist(view: ValidationContext) -> Iterator[Violation]:
    """The source of a void partition field exists.

    Format version 1 keeps every partition field; a dropped one becomes void. The specification and
    Iceberg allow its source to be dropped. But if the table has other partition fields, a void field
    without a source makes every write by Spark fail ("Cannot build accessor for field"), also in format
    version 2. Without other partition fields it causes no failure yet. The drop needs a consent, and
    undoing it makes the table writable again.
    """
    live = bool(view.table.spec.live)
    for field in view.table.spec.fields:
        if field.transform != VOID or field.source_ids[0] in view.fields:
            continue
        harm = (
            "Spark cannot write to the table while it has other partition fields"
            if live
            else "the table can never be partitioned again"
        )
        yield Violation(
            "void-partition-source-missing",
            _SUBJECT,
            f"{_named(_former_path(view, field))} was the source of partition field `{field.name}`, "
            f"which format version 1 keeps as void; without it, {harm}",
            "keep the column, or restore it with `restore_columns`",
            is_warning=True,
        )


_ID = attrgetter("id")
_LOSING_VALUES = ("identity", "truncate")
"""The transforms whose values Iceberg writes as null while the type of the source is unknown."""
_LOSS = (
    "; manifests written after that lose its partition values: if files in that partitioning have delete "
    "files, reads fail or deleted rows reappear"
)
_FILES_FIRST = (
    "rewrite the files in that partitioning before you drop the column (`rewrite: {partitions: old}`), "
    "or keep the column"
)


def earlier_sources_exist(view: ValidationContext) -> Iterator[Violation]:
    """The source of an earlier partition field still exists, because old files refer to it.

    Iceberg 1.12 reads and appends to a table without the source. But every ``UPDATE``, ``DELETE`` and
    ``MERGE`` by merge-on-read fails ("Cannot find field …"), even after all files are rewritten and old
    metadata is expired. So it is an error if the table uses merge-on-read. Earlier versions of Iceberg
    fail on the whole table and on its metadata tables (public threads: apache/iceberg#10234,
    apache/iceberg#4563, trinodb/trino#15729).
    """
    if view.before is None or view.before.schema.fields == view.table.schema.fields:
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
            once = f"the table was once partitioned by `{name}`; "
            if any(view.table.properties.get(mode) == MERGE_ON_READ for mode in _ROW_MODES):
                yield Violation(
                    "earlier-partition-source-missing",
                    ("drop_columns", name),
                    f"{once}without the column, rows cannot be updated or deleted by merge-on-read",
                    f"keep `{name}`, or switch the table to copy-on-write: `properties: "
                    "{write.update.mode: null, …}`",
                )
                continue
            yield Violation(
                "earlier-partition-source-missing",
                ("drop_columns", name),
                f"{once}without the column, merge-on-read, engines older than Iceberg 1.12 and the metadata "
                f"table `partitions` may fail{_LOSS if source in losing else ''}",
                _FILES_FIRST if source in losing else "keep the column as long as you use any of these",
                is_warning=True,
            )


def _former_path(view: ValidationContext, field: PartitionField) -> FieldPath | None:
    return view.before.schema.path_of(field.source_ids[0]) if view.before else None


def _named(path: FieldPath | None) -> str:
    return "a field" if path is None else f"`{format_path(path)}`"


def transforms_fit(view: ValidationContext) -> Iterator[Violation]:
    """A transform supports the type of its source and has a valid size.

    Specification, "Partition Transforms".
    """
    for field, entry in _live(view):
        path = format_path(entry.path)
        if len(field.source_ids) > 1:
            yield Violation(
                "partition-of-several-fields",
                _SUBJECT,
                f"partition field `{field.name}` has several sources, which no engine can write yet",
                "use one source for each partition field",
            )
        elif not accepts_source_type(field.transform, entry.field.type):
            yield Violation(
                "partition-transform",
                _SUBJECT,
                f"`{path}` is {_type_text(entry)}, which {field.transform} cannot be applied to",
                _transform_hint(entry),
            )
        elif field.transform.width is not None and field.transform.width <= 0:
            yield Violation(
                "partition-width",
                _SUBJECT,
                f"partition field `{field.name}` is {field.transform} of `{path}`; the size must be positive",
                "use a size of 1 or more",
            )


def _type_text(entry: IndexedField) -> str:
    type_ = entry.field.type
    return f"a {type(type_).__name__.lower()}" if is_nested(type_) else f"of type {primitive_text(type_)}"


def _transform_hint(entry: IndexedField) -> str:
    if is_nested(entry.field.type):
        return "partition by one of its fields, outside lists and maps"
    return "partition by another transform, or by another field"


def sources_outside_containers(view: ValidationContext) -> Iterator[Violation]:
    """The source of a partition field is not inside a list or a map.

    A row has one partition (specification, "Partitioning").
    """
    for field, entry in _live(view):
        if view.in_container(entry):
            yield Violation(
                "partition-source-in-list-or-map",
                _SUBJECT,
                f"partition field `{field.name}` uses `{format_path(entry.path)}`, "
                "which is inside a list or a map",
                "partition by a field outside lists and maps",
            )


def no_double_fields(view: ValidationContext) -> Iterator[Violation]:
    """No two partition fields have the same name, or the same source and transform.

    ``BaseUpdatePartitionSpec``: "Cannot add duplicate partition field".
    """
    names: set[str] = set()
    terms: dict[tuple[object, ...], str] = {}
    for field in view.table.spec.fields:
        if field.name in names:
            yield Violation(
                "duplicate-partition-name",
                _SUBJECT,
                f"two partition fields are named `{field.name}`",
                "rename one of them: `… as another_name`",
            )
        names.add(field.name)
        if field.transform == VOID:
            continue
        other = terms.setdefault((field.source_ids, field.transform), field.name)
        if other != field.name:
            yield Violation(
                "duplicate-partition-field",
                _SUBJECT,
                f"partition fields `{other}` and `{field.name}` are both {field.transform} of the same field",
                "remove one of them",
            )


def no_redundant_times(view: ValidationContext) -> Iterator[Violation]:
    """One migration does not add two time transforms of the same field.

    The finer one of year, month, day and hour includes the coarser. ``BaseUpdatePartitionSpec`` refuses
    both in one update ("Cannot add redundant partition field"). It allows them in two updates, so a table
    that is partitioned by day can get an hour.
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
            yield Violation(
                "redundant-partitions",
                _SUBJECT,
                f"`{path}` is partitioned by both {other.transform} and {field.transform}",
                f"keep only `{finer.transform}({path})`: filters by the coarser unit use it too",
            )


def _term(field: PartitionField) -> tuple[tuple[int, ...], str]:
    return (field.source_ids, str(field.transform))


def names_differ_from_columns(view: ValidationContext) -> Iterator[Violation]:
    """A partition field does not have the name of a column, except for its own identity.

    Specification, "Partitioning"; ``PartitionSpec.Builder``: "Cannot create identity partition sourced
    from different field in schema". Partition names do not follow renames of columns. Iceberg also
    compares every schema change with the earlier specs. So no other column can have the name of a current
    or earlier partition field while its source exists (public threads: apache/iceberg#11762,
    apache/iceberg#16217).
    """
    seen: set[tuple[str, int]] = set()
    # Where no field changes, the earlier specs are those of the table before.
    earlier = () if _has_fields_as_before(view) else view.table.older_specs
    for spec in (view.table.spec, *earlier):
        for field in spec.fields:
            clash = view.find(field.name)
            if clash is None or (field.name, clash) in seen or field.source_ids[0] not in view.fields:
                continue
            own = (clash,) == field.source_ids
            if not own or (spec is view.table.spec and field.transform not in (IDENTITY, VOID)):
                seen.add((field.name, clash))
                yield _clash(view, field, clash)


def _has_fields_as_before(view: ValidationContext) -> bool:
    """Whether the fields are those of the table before, whose violations are not reported again."""
    before = view.before
    return before is not None and not view.is_whole and before.schema.fields == view.table.schema.fields


def _is_partitioned_as_before(view: ValidationContext) -> bool:
    """Whether specs and fields are those of the table before."""
    before, table = view.before, view.table
    return (
        before is not None
        and _has_fields_as_before(view)
        and before.spec == table.spec
        and before.older_specs == table.older_specs
    )


def _clash(view: ValidationContext, field: PartitionField, clash: int) -> Violation:
    column, source = (format_path(view.fields[i].path) for i in (clash, field.source_ids[0]))
    term = _term_text(field, source)
    if _was_there(view, field):
        return Violation(
            "partition-name-is-a-column",
            ("columns", column),
            f"a column cannot be named `{column}`: the table is or was partitioned by {term} under the name "
            f"`{field.name}`",
            f"choose another name for the column; this one is reserved as long as `{source}` exists, "
            "even if the table is no longer partitioned by it",
        )
    return Violation(
        "partition-name-is-a-column",
        _SUBJECT,
        f"partition field `{field.name}` ({term}) has the same name as column `{column}`",
        f"rename the partition field (`{term} as {_free_name(view, field)}`), or rename the column",
    )


def _was_there(view: ValidationContext, field: PartitionField) -> bool:
    """Whether the table had a field of this name and source before the migration."""
    specs = (view.before.spec, *view.before.older_specs) if view.before else ()
    return any(f.name == field.name and f.source_ids == field.source_ids for s in specs for f in s.fields)


def _term_text(field: PartitionField, source: str) -> str:
    if field.transform in (IDENTITY, VOID):
        return source
    width = "" if field.transform.width is None else f"{field.transform.width}, "
    return f"{field.transform.name}({width}{source})"


def _free_name(view: ValidationContext, field: PartitionField) -> str:
    name = default_name(view.fields[field.source_ids[0]].path, field.transform).replace(".", "_")
    while view.find(name) is not None:
        name += "_part"
    return name


def names_mean_one_field(view: ValidationContext) -> Iterator[Violation]:
    """In all specs of a table, no two partition fields have the same name, ignoring case.

    Iceberg accepts it. But ``Partitioning.partitionType`` makes one struct of the fields of all specs,
    each under its latest name. Spark needs this struct to update and delete by merge-on-read, for the
    column ``_partition``, and for the metadata tables ``files`` and ``partitions``. All of these fail
    afterwards ("Invalid schema: multiple fields for name"), and expiring snapshots does not help. In
    format version 1 a dropped field releases its name.
    """
    if _is_partitioned_as_before(view):
        return
    latest: dict[int, PartitionField] = {}
    for spec in sorted((view.table.spec, *view.table.older_specs), key=_ID, reverse=True):
        for field in spec.fields:
            if field.source_ids[0] in view.fields:
                latest.setdefault(field.id, field)
    names: dict[str, PartitionField] = {}
    for field in sorted(latest.values(), key=_ID):
        other = names.setdefault(field.name.lower(), field)
        if other != field:
            term = _term_text(other, format_path(view.fields[other.source_ids[0]].path))
            yield Violation(
                "partition-name-again",
                _SUBJECT,
                f"partition name `{field.name}` was already used for another field, {term}: merge-on-read "
                "updates and metadata tables would fail",
                f"use a name that the table never had: `… as {_unused_name(view, field)}`",
            )


def _unused_name(view: ValidationContext, field: PartitionField) -> str:
    used = {f.name.lower() for s in (view.table.spec, *view.table.older_specs) for f in s.fields}
    name = _free_name(view, field)
    while name.lower() in used:
        name += "_again"
    return name


def names_are_portable(view: ValidationContext) -> Iterator[Violation]:
    """Partition names have only letters, digits and underscores.

    They become field names in Avro files. Iceberg encodes other characters, and other readers reject the
    files (public thread: apache/iceberg-python#2123). Dots are allowed, because Iceberg's own names for
    nested fields have them.
    """
    for field in view.table.spec.live:
        if not _PORTABLE.match(field.name):
            yield Violation(
                "partition-name-not-portable",
                _SUBJECT,
                f"partition name `{field.name}` contains characters that some manifest readers reject",
                "use letters, digits and underscores: `… as plain_name`",
                is_warning=True,
            )


def _live(view: ValidationContext) -> Iterator[tuple[PartitionField, IndexedField]]:
    """The live fields whose first source exists."""
    for field in view.table.spec.live:
        entry = view.fields.get(field.source_ids[0])
        if entry is not None:
            yield field, entry
