"""``ingest propose``: writes a migration with columns for attributes that `ingest` counted; starts no JVM."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone

from icemigrate.commands.migration_draft import MigrationDraft, consents_of, plan_draft
from icemigrate.commands.next_migration_file import next_name, schema_header, write_next_file
from icemigrate.commands.plan_from_empty import plan_from_empty
from icemigrate.commands.project_files import load_valid_files, raise_if_errors
from icemigrate.diagnostics import did_you_mean, format_count
from icemigrate.errors import UsageError
from icemigrate.files.read.list_sources import ListSource
from icemigrate.files.read.migration_file import MigrationFile
from icemigrate.files.write.entry_parts import EntryData
from icemigrate.frozen import Frozen
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.table_properties import ATTRIBUTE_PREFIX
from icemigrate.otlp.attribute_columns import AttributeSource, attribute_sources
from icemigrate.pipeline.attribute_counts import COUNTED_TENANTS
from icemigrate.pipeline.attribute_records import ObservedAttributes, read_attributes
from icemigrate.pipeline.proposed_columns import AttributeColumn, ColumnChoice, choose_columns
from icemigrate.project.project_values import Project
from icemigrate.project.tenant_tables import PLACEHOLDER, TenantTables, tenant_tables
from icemigrate.results.attribute_results import MapAttribute, ProposedColumn, ProposeResult
from icemigrate.results.command_results import errors_besides_consents
from icemigrate.wal.entries import EntryKind
from icemigrate.wal.storage_path import AnyPath

_REFUSAL = "no migration can declare these columns"
_BECAUSE = "attributes that were counted"
_TENANT = "tenant"
"""The variable of the entries."""


class ProposeOptions(Frozen):
    """The options of ``ingest propose``.

    :param attributes: names of the attributes that get columns, with or without their map; empty for all.
    :param limit: of the columns of a kind.
    :param dry_run: whether no file is written.
    """

    attributes: tuple[str, ...] = ()
    limit: int = 50
    dry_run: bool = False


def propose_columns(project: Project, checkpoint: AnyPath, options: ProposeOptions) -> ProposeResult:
    """Write the next migration file, with a column for each counted attribute.

    Reads the migration files and the checkpoint.

    :raises UsageError: an attribute is not counted, or the project file gives no table.
    :raises Mistakes: the migration files have errors.
    :raises EngineError: the checkpoint cannot be read.
    :raises IcemigrateError: a file cannot be read or written.
    """
    counted = read_attributes(checkpoint)
    wanted = _wanted(counted, options.attributes)
    notes = tuple(_notes(project, counted))
    if not counted.kinds:
        return ProposeResult(project.name, None, "", notes=notes)
    patterns = _patterns(project)
    files = load_valid_files(project) if project.migrations_dir.exists() else ()
    planned = plan_from_empty(project, files)
    raise_if_errors(errors_besides_consents(planned.diagnostics))
    entries, columns, in_map = list[EntryData](), list[ProposedColumn](), list[MapAttribute]()
    for word, found in sorted(counted.kinds.items()):
        kind = EntryKind(word)
        tables = _declared(kind, patterns, planned.state.tables.values())
        if not tables:
            notes = (*notes, f"no migration declares a table of {word}, so its attributes get no column")
            continue
        choice = choose_columns(kind, found, tables.values(), options.limit, wanted)
        entries += _entries(project, files, patterns.text(kind), tables, choice)
        columns += [_shown(word, one) for one in choice.columns]
        in_map += [MapAttribute(word, str(one.source), one.reason) for one in choice.unchanged]
    if not entries:
        return ProposeResult(project.name, None, "", in_map=tuple(in_map), notes=notes)
    path, text = _write(project, files, entries, columns, is_dry=options.dry_run)
    return ProposeResult(project.name, path, text, tuple(columns), tuple(in_map), notes)


def _wanted(counted: ObservedAttributes, names: Sequence[str]) -> frozenset[AttributeSource] | None:
    """The attributes that the user named; ``None`` for all."""
    if not names:
        return None
    known = dict[str, set[AttributeSource]]()
    for kind in counted.kinds.values():
        for one in kind.attributes:
            known.setdefault(one.source.name, set()).add(one.source)
            known.setdefault(str(one.source), set()).add(one.source)
    for name in names:
        if name not in known:
            near = (
                did_you_mean(name, known) or "without `--attribute`, the command shows all that are counted"
            )
            raise UsageError(f"`--attribute {name}`: no such attribute is counted", near)
    return frozenset(source for name in names for source in known[name])


def _notes(project: Project, counted: ObservedAttributes) -> Iterator[str]:
    if not project.pipeline.column_kinds:
        yield "`unknown_attributes` of the project file is `map`, so `ingest` counts no attributes"
    for word, one in sorted(counted.kinds.items()):
        if one.unusable_rows:
            rows = format_count(one.unusable_rows, "row has", "rows have")
            yield (
                f"{rows} attributes of {word} whose names are too long or have hidden characters, such as "
                f"`{one.unusable_sample}`; they stay in the map"
            )
        if one.has_more:
            yield f"there are more attributes of {word} than are counted; the most frequent ones are"


def _patterns(project: Project) -> TenantTables:
    written = project.pipeline.tables
    if not written:
        raise UsageError(
            "the project file gives no tables of tenants",
            "write `tables` below `pipeline` in the project file",
        )
    return tenant_tables([f"{kind}={pattern}" for kind, pattern in written.items()])


def _declared(kind: EntryKind, patterns: TenantTables, tables: Iterable[Table]) -> dict[str, Table]:
    """The declared tables of a kind, by tenant."""
    if kind not in patterns.patterns:
        return {}
    found = ((patterns.tenant(table.name, kind), table) for table in tables)
    return {tenant: table for tenant, table in found if tenant is not None}


class _Group(Frozen):
    """Tables that get the same columns by one entry.

    :param list_name: of the list of their tenants, where it is known only in an environment.
    :param place: of the entry that declares them.
    :param columns: their names.
    """

    list_name: str | None
    place: str
    columns: tuple[str, ...]


def _entries(
    project: Project,
    files: Sequence[MigrationFile],
    pattern: str,
    tables: Mapping[str, Table],
    choice: ColumnChoice,
) -> list[EntryData]:
    """The entries for the tables of a kind: one for each entry that declares such tables."""
    origins = _origins(files, {str(table.name): tenant for tenant, table in tables.items()})
    groups = dict[_Group, list[str]]()
    for tenant, table in tables.items():
        filled = frozenset(attribute_sources(table.properties).values())
        names = tuple(one.name for one in choice.columns if one.count.source not in filled)
        list_name, place = origins.get(str(table.name), (None, ""))
        if names:
            groups.setdefault(_Group(list_name, place, names), []).append(tenant)
    return [_entry(project, pattern, group, tenants, choice.columns) for group, tenants in groups.items()]


def _origins(files: Sequence[MigrationFile], tenants: Mapping[str, str]) -> dict[str, tuple[str | None, str]]:
    """The list and the position of the first entry that names each table."""
    found = dict[str, tuple[str | None, str]]()
    for entry in (one for file in files for one in file.tables):
        if entry.name is None or entry.name not in tenants or entry.name in found:
            continue
        tenant = tenants[entry.name]
        lists = (name for variable, name in entry.sources.items() if entry.variables[variable] == tenant)
        found[entry.name] = (next(lists, None), str(entry.place))
    return found


def _entry(
    project: Project, pattern: str, group: _Group, tenants: Sequence[str], columns: Sequence[AttributeColumn]
) -> EntryData:
    added = [one for one in columns if one.name in group.columns]
    properties = {f"{ATTRIBUTE_PREFIX}{one.name}": str(one.count.source) for one in added}
    body: EntryData = {
        "columns": [{"name": one.name, "type": one.type} for one in added],
        "properties": properties,
    }
    if group.list_name is None and len(tenants) == 1:
        return {"name": pattern.replace(PLACEHOLDER, tenants[0]), **body}
    values = group.list_name or _project_list(project, tenants) or list(tenants)
    return {"name": pattern, "for_each": {_TENANT: values}, **body}


def _project_list(project: Project, tenants: Sequence[str]) -> str | None:
    """The list of the project file with these tenants."""
    return next(
        (
            name
            for name, values in project.lists.items()
            if not isinstance(values, ListSource) and set(values) == set(tenants)
        ),
        None,
    )


def _shown(kind: str, one: AttributeColumn) -> ProposedColumn:
    first = datetime.fromtimestamp(one.count.first_seen_s, timezone.utc)
    return ProposedColumn(
        kind,
        one.name,
        one.type,
        str(one.count.source),
        one.count.rows,
        len(one.count.tenants),
        first.isoformat(timespec="seconds"),
    )


def _tenants(count: int) -> str:
    """The number of tenants of an attribute, of which not all are counted."""
    more = " or more" if count >= COUNTED_TENANTS else ""
    return f"{count}{more} {'tenant' if count == 1 else 'tenants'}"


def _write(
    project: Project,
    files: Sequence[MigrationFile],
    entries: Sequence[EntryData],
    columns: Sequence[ProposedColumn],
    *,
    is_dry: bool,
) -> tuple[str | None, str]:
    """The path of the new file, unless it is a dry run, and its text."""
    kinds = " and ".join(dict.fromkeys(one.kind for one in columns))
    title = f"Add columns for attributes of {kinds}"
    comments = tuple(
        f"{one.column}: {format_count(one.rows, 'row')} of {_tenants(one.tenants)} since {one.first_seen}"
        for one in columns
    )
    draft = MigrationDraft(entries, title, title, _BECAUSE, comments=comments)
    name = next_name(project, draft.words, (file.version for file in files))
    allow = consents_of(plan_draft(project, files, name, draft, _REFUSAL))
    text = draft.text(allow, schema_header(project))
    return (None if is_dry else write_next_file(project, name, text)), text
