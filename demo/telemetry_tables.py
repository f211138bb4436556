"""The tables of a load's tenants, by one migration with all columns of each kind."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from demo.telemetry_load import TelemetryLoad
from icemigrate.cli import main
from icemigrate.otlp.telemetry_types import TELEMETRY_TYPES
from icemigrate.wal import EntryKind

_TIMES = {EntryKind.TRACES: "start_time", EntryKind.LOGS: "time", EntryKind.METRICS: "time"}
_NOTHING: Mapping[EntryKind, Collection[str]] = {}
PROJECT = """\
project: otel
lists:
  tenants: [{tenants}]
pipeline:
  log: log
  tables:
    traces: "otel.${{tenant}}_traces"
    logs: "otel.${{tenant}}_logs"
    metrics: "otel.${{tenant}}_metrics"
"""


def migration(without: Mapping[EntryKind, Collection[str]]) -> str:
    """A migration that creates the tables of all tenants.

    :param without: columns that tables do not have, by kind.
    """
    return "tables:\n" + "".join(_entry(kind, without.get(kind, ())) for kind in EntryKind)


def _entry(kind: EntryKind, without: Collection[str]) -> str:
    types = {name: type_ for name, type_ in TELEMETRY_TYPES[kind].items() if name not in without}
    columns = "".join(f'      - {{name: {name}, type: "{type_}"}}\n' for name, type_ in types.items())
    return (
        f'  - name: "otel.${{tenant}}_{kind.value}"\n    for_each: {{tenant: tenants}}\n'
        f"    columns:\n{columns}    partition_by: [day({_TIMES[kind]})]\n"
    )


def create_tables(
    folder: Path,
    load: TelemetryLoad,
    settings: str = "",
    without: Mapping[EntryKind, Collection[str]] = _NOTHING,
) -> None:
    """Create a project with the tables of a load.

    :param settings: further lines below ``pipeline`` in the project file.
    :param without: columns that tables do not have, by kind.
    :raises SystemExit: a command failed; with its exit code.
    """
    (folder / "migrations").mkdir(parents=True)
    tenants = ", ".join(map(load.tenant, range(load.tenants)))
    (folder / "icemigrate.yaml").write_text(PROJECT.format(tenants=tenants) + settings, encoding="utf-8")
    (folder / "migrations" / "0001_tables.yaml").write_text(migration(without), encoding="utf-8")
    command = ["apply", "--auto-approve", "--quiet", "--apply-with", "metadata", "--project", str(folder)]
    if code := main(command):
        raise SystemExit(int(code))
