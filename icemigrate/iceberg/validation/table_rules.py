"""Rules about sort orders, properties, readability, branches and tags of tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from icemigrate.diagnostics import did_you_mean
from icemigrate.iceberg import retention
from icemigrate.iceberg.names import format_path
from icemigrate.iceberg.partitioning import IDENTITY, accepts_source_type
from icemigrate.iceberg.ref_names import is_icemigrate_tag
from icemigrate.iceberg.schema import IndexedField, Schema, schema_index
from icemigrate.iceberg.schema_json import primitive_text
from icemigrate.iceberg.table import DISTRIBUTION_PROPERTY, BranchHead, differing_keys
from icemigrate.iceberg.table_properties import (
    ALL_PREFIXES,
    iter_column_properties,
    reserved_property_hint,
)
from icemigrate.iceberg.types import Primitive, Struct, is_nested
from icemigrate.iceberg.validation.violation import (
    LackingBranches,
    ValidationContext,
    Violation,
    column_subject,
)

_SUBJECT = ("sort_by",)


def sort_sources_exist(view: ValidationContext) -> Iterator[Violation]:
    """Every field of the sort order exists.

    Iceberg's Java library refuses to drop such a field (``SortOrder.checkCompatibility``). A library that
    dropped one left a table that no engine could read (public thread: apache/iceberg-python#2166).
    """
    for term in view.table.sort_order.fields:
        field_id = term.source_ids[0]
        if field_id not in view.fields:
            path = view.before.schema.path_of(field_id) if view.before else None
            name = (
                "a field that does not exist" if path is None else f"`{format_path(path)}`, which is dropped"
            )
            yield Violation(
                "sort-source-missing",
                _SUBJECT,
                f"the table is sorted by {name}",
                "remove it from `sort_by` in the same migration (`sort_by: []` for no order)",
            )


def sort_sources_can_be_sorted(view: ValidationContext) -> Iterator[Violation]:
    """A sort term uses a primitive field outside lists and maps, and a transform that supports its type.

    ``SortOrder.checkCompatibility``: "Cannot sort by non-primitive source field".
    """
    for term in view.table.sort_order.fields:
        entry = view.fields.get(term.source_ids[0])
        if entry is None:
            continue
        path, type_ = format_path(entry.path), entry.field.type
        if is_nested(type_):
            what, hint = f"is a {type(type_).__name__.lower()}", "sort by one of its fields"
        elif view.in_container(entry):
            what, hint = "is inside a list or a map", "sort by a field outside lists and maps"
        elif not accepts_source_type(term.transform, type_):
            what = f"is of type {primitive_text(type_)}, which {term.transform} cannot be applied to"
            hint = "sort by the field itself, or by another field"
        else:
            continue
        yield Violation("sort-source", _SUBJECT, f"the table is sorted by `{path}`, which {what}", hint)


DISTRIBUTIONS = ("none", "hash", "range")
_AGES = ("date", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns")


def no_reserved_properties(view: ValidationContext) -> Iterator[Violation]:
    """No reserved property is set (:mod:`icemigrate.iceberg.table_properties`).

    Some fail when they are set. Others are ignored silently.
    """
    old = view.before.properties if view.before else {}
    for key in sorted(differing_keys(old, view.table.properties)):
        hint = reserved_property_hint(key) if key in view.table.properties else None
        if hint is not None:
            yield Violation("reserved-property", _subject(key), f"`{key}` cannot be set as a property", hint)


def properties_name_columns(view: ValidationContext) -> Iterator[Violation]:
    """A property for a column names an existing column.

    ``MetricsConfig.validate`` refuses it, but only when a table is created (public thread:
    apache/iceberg#13884). A property that a rename or a drop leaves behind is a warning, because it has
    no effect.
    """
    old, properties = view.before.properties if view.before else {}, view.table.properties
    if view.before and not view.is_whole and view.before.schema.fields == view.table.schema.fields:
        properties = {key: properties[key] for key in differing_keys(old, properties) if key in properties}
    for key, _, name in iter_column_properties(properties, ALL_PREFIXES):
        if view.find(name) is not None:
            continue
        near = did_you_mean(name, view.names)
        yield Violation(
            "property-without-column",
            _subject(key),
            f"property `{key}` is for column `{name}`, which does not exist",
            near or "name an existing column, or remove the property with `null`",
            is_warning=key in old,
        )


def distribution_is_known(view: ValidationContext) -> Iterator[Violation]:
    """The write distribution is ``none``, ``hash`` or ``range``.

    ``DistributionMode`` of Iceberg.
    """
    mode = view.table.properties.get(DISTRIBUTION_PROPERTY)
    if mode is not None and mode.lower() not in DISTRIBUTIONS:
        yield Violation(
            "write-distribution",
            ("write_distribution",),
            f"`{mode}` is not a write distribution",
            did_you_mean(mode, DISTRIBUTIONS) or f"use one of {', '.join(DISTRIBUTIONS)}",
        )


def rows_are_retained_by_a_time(view: ValidationContext) -> Iterator[Violation]:
    """The retention of rows uses an existing date or timestamp outside lists and maps."""
    path = retention.row_column(view.table.properties)
    if path is None:
        return
    subject = ("retention", "rows", "column")
    field = view.table.schema.find(path)
    if field is None:
        yield Violation(
            "retention-column-missing",
            subject,
            f"rows are retained by `{format_path(path)}`, which does not exist",
            "name another column, or write `retention: {rows: null}`",
        )
    elif not isinstance(field.type, Primitive) or field.type.name not in _AGES:
        yield Violation(
            "retention-column-type",
            subject,
            f"rows are retained by `{format_path(path)}`, which is neither a date nor a timestamp",
            "name a date or timestamp column",
        )


def _subject(key: str) -> tuple[str, ...]:
    return ("properties", key)


_VARIANT = Primitive("variant")


def no_identity_partition_in_optional_struct(view: ValidationContext) -> Iterator[Violation]:
    """The source of an identity partition field is not inside an optional struct.

    Readers take the value from the partition and not from the file. So if a query reads only such fields
    of the struct, Iceberg 1.12 returns a struct of nulls where the struct is null. Spark reads only the
    fields that it needs. If a struct has no other fields, a rewrite of the files stores the wrong value.
    With other transforms readers take the value from the file.
    """
    for field in view.table.spec.live:
        entry = view.fields.get(field.source_ids[0])
        if entry is None or field.transform != IDENTITY or view.in_container(entry):
            continue
        around = [e for e in view.above(entry) if not e.field.required]
        if not around:
            continue
        path, struct = format_path(entry.path), format_path(around[0].path)
        yield Violation(
            "identity-partition-in-optional-struct",
            ("partition_by",),
            f"the table is partitioned by the value of `{path}`, and `{struct}` is optional: when a query "
            f"reads nothing else of `{struct}`, Spark returns a null struct as a struct of nulls"
            + _for_good(view, around[0]),
            f"partition by another transform (`truncate`, `bucket`, `day`), or by a column outside "
            f"`{struct}`",
            is_warning=True,
        )


def _for_good(view: ValidationContext, struct: IndexedField) -> str:
    """The effect where all fields of a struct are such sources."""
    constant = {f.source_ids[0] for f in view.table.spec.live if f.transform == IDENTITY}

    def is_constant(entry: IndexedField) -> bool:
        type_ = entry.field.type
        if isinstance(type_, Struct):
            return all(is_constant(view.fields[f.id]) for f in type_.fields)
        return entry.field.id in constant

    return ", and rewriting a row stores it so" if is_constant(struct) else ""


def variants_are_known_to_the_rows(view: ValidationContext) -> Iterator[Violation]:
    """The schema of the newest snapshot contains every column of type variant.

    Spark asks Iceberg 1.12 for the values of such a column by its name in that schema
    (``BaseScan.includeColumnStats``). If the schema does not contain it, every query of the column fails
    with a ``NullPointerException``. This happens after an ``ALTER``, which creates no snapshot, and after
    an undo that restores the column. Updates by copy-on-write also fail. Variants inside structs, lists
    and maps can be read.
    """
    rows = view.written or view.before
    if view.before is None or view.before.snapshot is None or rows is None:
        return
    known = {f.name for f in rows.schema.fields}
    for field in view.table.schema.fields:
        if field.type == _VARIANT and field.name not in known:
            name = format_path((field.name,))
            yield Violation(
                "variant-unknown-to-rows",
                column_subject((field.name,)),
                f"Spark cannot read `{name}` or update rows until something is written to the table: its "
                "newest snapshot has no such variant column, and neither a migration nor an undo adds one",
                f"after the migration, append zero rows: `INSERT INTO {view.table.name} SELECT * FROM "
                f"{view.table.name} WHERE false`",
                is_warning=True,
            )


_MAIN = "main"
DROP_IT = "drop the branch if it is not needed"
NOT_TO_BE_FILLED = (
    "declare it with `required: false`, copy its values to the branch, and make it required in a "
    f"later migration; or {DROP_IT}"
)
"""What to do for branches that lack a column which does not exist yet."""
_SHOWN = 3
"""How many names a message lists; a table may have hundreds of tags."""


def branches_follow_the_schema(view: ValidationContext) -> Iterator[Violation]:
    """Branches use the schema of the table.

    A reader of a branch sees a change at once; a tag keeps the schema of its snapshot. Specification,
    "Snapshot References": a schema belongs to a table and to a snapshot. Engines read a branch with the
    table's schema (public thread: apache/iceberg#9737).
    """
    before = view.before
    if before is None or before.schema.fields == view.table.schema.fields:
        return
    staying = before.refs.keys() & view.table.refs.keys()
    branches = sorted(n for n in staying if before.refs[n].kind == "branch" and n != _MAIN)
    tags = sorted(n for n in staying if before.refs[n].kind == "tag" and not is_icemigrate_tag(n))
    if not branches:
        return
    keep = "keeps the schema of its snapshot" if len(tags) == 1 else "keep the schemas of their snapshots"
    left = f"; {reference_names_text('tag', tags)} {keep}" if tags else ""
    yield Violation(
        "branch-follows-schema",
        ("name",),
        f"readers of {reference_names_text('branch', branches)} see the changed columns at once{left}",
        "warn the readers, or let them read a tag until they are ready",
        is_warning=True,
    )


def branches_hold_required_fields(view: ValidationContext) -> Iterator[Violation]:
    """The files of every branch with rows contain a field that becomes required.

    A branch is read with the table's schema. If a file does not contain a required field, Iceberg 1.12
    fails ("Missing required field") and the branch is unreadable, because a migration changes rows only
    on main. Files from before the field was added do not contain it. This is allowed if the field has a
    default that older rows read, or if it is in a struct that the files do not contain at all.
    """
    if view.before is None:
        return
    before = view.before
    heads = {n: h for n, h in before.heads.items() if n in view.table.refs and h.has_rows}
    if not heads:
        return
    for entry in view.fields.values():
        old = before.schema.by_id(entry.field.id)
        is_new = entry.field.required and entry.field.initial_default is None
        if not is_new or (old is not None and old.required):
            continue
        lacking = {
            n: h for n, h in heads.items() if h.schema is not None and surely_lacks_field(h.schema, entry)
        }
        if lacking:
            name = format_path(entry.path)
            yield Violation(
                "branch-lacks-required",
                column_subject(entry.path, "required"),
                f"`{name}` cannot be required: it is missing from files of {branch_rows_text(lacking)}, "
                "which would become unreadable",
                NOT_TO_BE_FILLED if old is None else f"fill it on the branch first; or {DROP_IT}",
                branches=LackingBranches(entry.field.id, tuple(lacking)),
            )


def surely_lacks_field(schema: Schema, entry: IndexedField) -> bool:
    """Whether files written under a schema, and under earlier ones, certainly lack a field but not its whole
    struct.

    A field with a lower id than others of the schema was dropped and has returned: older files may contain
    it.
    """
    is_around = entry.parent is None or schema.by_id(entry.parent) is not None
    return is_around and entry.field.id > max(schema_index(schema), default=0)


def branch_rows_text(heads: Mapping[str, BranchHead]) -> str:
    """Branches, each with its number of rows."""
    texts = [f"`{name}` ({head.rows_text})" for name, head in sorted(heads.items())]
    return f"{_kind('branch', texts)} {', '.join(texts[:_SHOWN])}{_more(texts)}"


def reference_names_text(kind: str, names: Sequence[str]) -> str:
    """Branches or tags by their names, the first few of them."""
    return f"{_kind(kind, names)} {', '.join(f'`{name}`' for name in names[:_SHOWN])}{_more(names)}"


def _kind(kind: str, of: Sequence[str]) -> str:
    return kind if len(of) == 1 else "branches" if kind == "branch" else f"{kind}s"


def _more(names: Sequence[str]) -> str:
    return f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
