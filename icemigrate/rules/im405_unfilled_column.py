"""Nothing fills a column of a table of telemetry.

## Why

`ingest` fills the columns of a table in `pipeline.tables` by their names: each field of the telemetry goes
into the column of the same name, and is left out where there is none. So a misspelled or renamed column is
null in every row, and the values of the field are in no table. No run fails. The rule compares new columns,
and fields inside them, with those of the kind, and with the properties `icemigrate.attribute.column.*`, which
name the attributes that fill columns.

```yaml
pipeline:
  tables: {traces: "otel.${tenant}_traces"}
```

A column for another writer, such as one that a later `MERGE` fills, is in order. Name such columns once:

```yaml
rules:
  IM405: {pattern: "customer_.*|reviewed"}
```

`ingest` and `ingest status` use the same settings. `ingest` warns once for each kind when it starts, and
`ingest status` shows the columns. A comment `# icemigrate: ignore` hides only the finding of `check`. With
`IM405: off`, none of them reports columns.

A field of the telemetry without a column is no finding: a table has the columns that you choose.

## Bad

```yaml
tables:
  - name: otel.acme_traces
    columns: [{name: trace_idd, type: "fixed[16]"}, {name: start_time, type: timestamptz}]
```

## Good

```yaml
tables:
  - name: otel.acme_traces
    columns: [{name: trace_id, type: "fixed[16]"}, {name: start_time, type: timestamptz}]
```

## Instead

Give the column the name of the field. For an attribute, add the property `icemigrate.attribute.column.NAME`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from icemigrate.iceberg.names import format_path
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.table_properties import ATTRIBUTE_PREFIX
from icemigrate.otlp.column_names import UnfilledColumn, unfilled_columns
from icemigrate.rules.linear_pattern import compile_pattern
from icemigrate.rules.rule import (
    ChangedTable,
    Rule,
    RuleFinding,
    RuleLevel,
    RuleOptions,
    RuleOptionSpec,
    column_subject,
)
from icemigrate.wal.entries import EntryKind

_SHOWN = 6
"""Fields without a column that a hint names."""


def unfilled_by_ingest(table: Table, kind: EntryKind, options: RuleOptions) -> tuple[UnfilledColumn, ...]:
    """The columns that nothing fills, without those of other writers."""
    found = unfilled_columns(kind, table.schema.fields, table.properties)
    if (written := options.get("pattern")) is None:
        return found
    others = compile_pattern(str(written))
    return tuple(one for one in found if not others.fits(format_path(one.path)))


def find_unfilled_columns(changed: ChangedTable, options: RuleOptions) -> Iterator[RuleFinding]:
    """Columns that nothing fills since this migration."""
    kind, before, after = changed.telemetry, changed.before, changed.after
    if kind is None or after is None:
        return
    known = {one.path for one in unfilled_by_ingest(before, kind, options)} if before is not None else set()
    for one in unfilled_by_ingest(after, kind, options):
        if one.path not in known:
            message = f"`ingest` fills no column `{format_path(one.path)}` of `{changed.name}`"
            is_new = before is None or before.schema.find(one.path[:1]) is None
            place = column_subject(one.path[:1] if is_new else one.path)
            yield changed.finding(place, message, _hint(one, kind))


def _hint(one: UnfilledColumn, kind: EntryKind) -> str:
    if one.near is not None:
        return f"did you mean `{one.near}`?"
    parts = []
    if len(one.path) == 1:
        parts.append(f"name the attribute that fills it with the property `{ATTRIBUTE_PREFIX}{one.path[0]}`")
    if one.missing:
        nearest = difflib.get_close_matches(one.path[-1], one.missing, _SHOWN, cutoff=0)
        names = ", ".join(f"`{name}`" for name in nearest)
        more = f" and {len(one.missing) - _SHOWN} more" if len(one.missing) > _SHOWN else ""
        inside = f"`{format_path(one.path[:-1])}`" if len(one.path) > 1 else kind.value
        parts.append(f"the fields of {inside} without a column are {names}{more}")
    return "; ".join(parts) or "remove it"


RULE = Rule(
    "IM405",
    "unfilled-column",
    RuleLevel.WARNING,
    __doc__,
    find_unfilled_columns,
    (
        RuleOptionSpec(
            "pattern", None, "a regular expression for the whole names of columns that other writers fill"
        ),
    ),
    inspects=frozenset({"fields", "properties"}),
)
