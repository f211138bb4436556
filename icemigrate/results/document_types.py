"""Types of the fields of results, with the limits that their JSON schemas show."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import Meta

from icemigrate.errors import ExitCode
from icemigrate.frozen import Frozen


def one_of(*values: str | int) -> Meta:
    """The values that a field can have."""
    return Meta(extra_json_schema={"enum": list(values)})


Count: TypeAlias = Annotated[int, Meta(ge=0)]
Milliseconds: TypeAlias = Annotated[int, Meta(ge=0)]
VersionText: TypeAlias = Annotated[str, Meta(pattern="^[0-9]{1,18}$")]
"""The digits at the start of a migration file's name."""
SeverityName: TypeAlias = Annotated[str, one_of("error", "warning", "note")]
RuleLevelName: TypeAlias = Annotated[str, one_of("off", "note", "warning", "error")]
FailureExitCode: TypeAlias = Annotated[
    int,
    one_of(ExitCode.ERROR, ExitCode.FINDINGS, ExitCode.CONFLICT, ExitCode.LOCKED, ExitCode.USAGE),
]
MaintenancePart: TypeAlias = Annotated[
    str, one_of("trash", "snapshots", "rows", "schemas", "views", "orphans")
]


RuleId: TypeAlias = Annotated[str, Meta(pattern="^IM[0-9]+$")]
CheckName: TypeAlias = Annotated[
    str,
    one_of(
        "environment",
        "pyspark",
        "java",
        "jars",
        "connect",
        "catalog",
        "storage",
        "history",
        "lock",
        "session",
    ),
]
"""The tests of ``doctor``."""
MigrationStateName: TypeAlias = Annotated[
    str,
    one_of(
        "applied", "pending", "held", "abandoned", "running", "interrupted", "edited", "missing", "late",
        "unrecorded", "partial",
    ),
]  # fmt: skip
EventName: TypeAlias = Annotated[
    str,
    one_of(
        "applied", "redone", "rolled_back", "failed", "interrupted", "running", "repaired", "squashed",
        "baselined", "unlocked", "maintained", "reconciled", "reset", "altered",
    ),
]  # fmt: skip


class DiagnosticDocument(Frozen):
    """An error, a warning or a note, with its position in a file.

    :param code: permanent identifier: in kebab-case, or the id of a rule.
    :param severity: only an error stops the command.
    :param message: what is wrong, in one sentence.
    :param file: path of the file; ``None`` if it is not about a file.
    :param line: counted from 1.
    :param column: counted from 1, in characters.
    :param hint: what to write or do instead.
    """

    code: Annotated[str, Meta(pattern="^([a-z0-9]+(-[a-z0-9]+)*|IM[0-9]{3})$")]
    severity: SeverityName
    message: str
    file: str | None
    line: Annotated[int, Meta(ge=1)] | None
    column: Annotated[int, Meta(ge=1)] | None
    hint: str | None
