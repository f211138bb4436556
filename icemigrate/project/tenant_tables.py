"""The log that is drained, and the tables: one for each tenant and kind, by a pattern of its name."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from os import PathLike
from pathlib import Path

from icemigrate.diagnostics import did_you_mean
from icemigrate.errors import UsageError
from icemigrate.frozen import Frozen
from icemigrate.iceberg.names import BadName, TableName
from icemigrate.project.project_values import PipelineSettings
from icemigrate.wal.entries import EntryKind, is_tenant_id
from icemigrate.wal.storage_path import AnyPath, is_remote, open_path

DEFAULT_CHECKPOINT = "checkpoint"
"""The folder in the log."""
PLACEHOLDER = "${tenant}"
"""As the entry of a migration file with ``for_each: {tenant: …}`` writes it."""
_STAND_IN = "icemigrate_tenant_id"
"""A plain word in the placeholder's position while a pattern is read."""
_KINDS = {kind.value: kind for kind in EntryKind}


class TenantTables(Frozen):
    """The declared tables of tenants.

    :param patterns: names by kind, with :data:`_STAND_IN` for the tenant.
    """

    patterns: Mapping[EntryKind, TableName]

    def table(self, tenant: str, kind: EntryKind) -> TableName | None:
        """The table of a tenant's entries of a kind; ``None`` where the kind has no pattern."""
        assert is_tenant_id(tenant), "the id was checked when the entry was read"
        pattern = self.patterns.get(kind)
        if pattern is None:
            return None
        *namespace, name = (part.replace(_STAND_IN, tenant) for part in (*pattern.namespace, pattern.name))
        return TableName(tuple(namespace), name)

    def text(self, kind: EntryKind) -> str:
        """The pattern of a kind, as a migration file has it."""
        return str(self.patterns[kind]).replace(_STAND_IN, PLACEHOLDER)

    def tenant(self, table: TableName, kind: EntryKind) -> str | None:
        """The tenant of a table; ``None`` where it is no table of the kind."""
        first, *others = map(re.escape, str(self.patterns[kind]).split(_STAND_IN))
        found = re.fullmatch(f"{first}([A-Za-z0-9_-]+)" + r"\1".join(others), str(table))
        return found[1] if found is not None and is_tenant_id(found[1]) else None

    def kind(self, table: TableName) -> EntryKind | None:
        """The kind of telemetry of a table; ``None`` where it is no table of a tenant."""
        return next((kind for kind in self.patterns if self.tenant(table, kind) is not None), None)


def tenant_tables(arguments: Sequence[str]) -> TenantTables:
    """Read patterns.

    :param arguments: each is a kind and a pattern, such as ``traces=otel.${tenant}_traces``.
    :raises UsageError: a kind is unknown or given twice, or a pattern names no table for each tenant.
    """
    found = dict[EntryKind, TableName]()
    for argument in arguments:
        word, separator, pattern = argument.partition("=")
        if not separator or word not in _KINDS:
            kinds = ", ".join(f"`{kind}`" for kind in _KINDS)
            raise UsageError(
                f"`{argument}` does not begin with a kind and `=`",
                did_you_mean(word, _KINDS) or f"the kinds are {kinds}: `traces=otel.{PLACEHOLDER}_traces`",
            )
        if _KINDS[word] in found:
            raise UsageError(f"the kind `{word}` is given twice", "give each kind one table")
        found[_KINDS[word]] = parse_pattern(pattern)
    for (kind, one), (other_kind, other) in combinations(found.items(), 2):
        if may_be_equal(one, other):
            raise UsageError(
                f"a table of {kind.value} can have the same name as a table of {other_kind.value}",
                "give the names different endings, such as `_traces` and `_logs`",
            )
    if not found:
        raise UsageError(
            "no table is given",
            f"give one for each kind (`--table traces=otel.{PLACEHOLDER}_traces`), or write them below "
            "`pipeline` in the project file",
        )
    return TenantTables(found)


def tables_of(settings: PipelineSettings) -> TenantTables | None:
    """The tables of a valid project file; ``None`` where it names none."""
    written = tuple(f"{kind}={pattern}" for kind, pattern in settings.tables.items())
    return tenant_tables(written) if written else None


def telemetry_kinds(settings: PipelineSettings) -> Callable[[TableName], EntryKind | None]:
    """A function that gives the kind of telemetry that ``ingest`` writes to a declared table.

    :param settings: of a valid project file, whose ``tables`` name the tables.
    """
    tables = tables_of(settings)
    return (lambda table: None) if tables is None else tables.kind


def log_of(
    settings: PipelineSettings,
    log: str | PathLike[str] | None,
    checkpoint: str | PathLike[str] | None,
    storage: Callable[[], Mapping[str, str]],
) -> tuple[AnyPath, AnyPath]:
    """The folders of a log and its checkpoint, as given or of the project file.

    :param storage: how to sign in where one of them is on a remote storage, by PyIceberg's keys.
    :raises UsageError: neither gives the log, or a URL cannot be used.
    """

    def path(text: str | PathLike[str]) -> AnyPath:
        found = open_path(os.fspath(text), storage() if is_remote(os.fspath(text)) else None)
        return found.absolute() if isinstance(found, Path) else found

    if (written := log or settings.log) is None:
        raise UsageError(
            "no log is given", "give its folder, or write `log` below `pipeline` in the project file"
        )
    folder = path(written)
    # The checkpoint of the project file is that of its own log.
    is_own = settings.log is not None and str(path(settings.log)) == str(folder)
    progress = checkpoint or (settings.checkpoint if is_own else None)
    return folder, folder / DEFAULT_CHECKPOINT if progress is None else path(progress)


def may_be_equal(one: TableName, other: TableName) -> bool:
    """Whether two patterns, or a pattern and a name, can be the same name for some tenants, ignoring case."""
    parts, others = ((*name.namespace, name.name) for name in (one, other))
    return len(parts) == len(others) and all(map(_parts_may_be_equal, parts, others))


def _parts_may_be_equal(one: str, other: str) -> bool:
    one, other = one.lower(), other.lower()
    if _STAND_IN not in one and _STAND_IN not in other:
        return one == other
    begins = sorted((one.partition(_STAND_IN)[0], other.partition(_STAND_IN)[0]), key=len)
    ends = sorted((one.rpartition(_STAND_IN)[2], other.rpartition(_STAND_IN)[2]), key=len)
    if _STAND_IN not in one or _STAND_IN not in other:
        # A plain name is its own beginning and its own end.
        plain, pattern = (other, one) if _STAND_IN in one else (one, other)
        begin, end = pattern.partition(_STAND_IN)[0], pattern.rpartition(_STAND_IN)[2]
        return plain.startswith(begin) and plain.endswith(end)
    return begins[1].startswith(begins[0]) and ends[1].endswith(ends[0])


def parse_pattern(text: str) -> TableName:
    """The name of a pattern, with a plain word for the tenant.

    :raises UsageError: it names no table for each tenant.
    """
    if PLACEHOLDER not in text:
        raise UsageError(
            f"the name `{text}` is the same for all tenants",
            f"write `{PLACEHOLDER}` where the tenant's id is",
        )
    try:
        return TableName.parse(text.replace(PLACEHOLDER, _STAND_IN))
    except BadName as error:
        raise UsageError(
            str(error).replace(_STAND_IN, PLACEHOLDER), "give the namespace and the name of a table"
        ) from error
