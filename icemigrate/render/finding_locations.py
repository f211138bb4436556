"""Findings for readers who only have the repository: a code host, an editor, another machine."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

from icemigrate.diagnostics import Diagnostic, FilePosition, Severity
from icemigrate.frozen import Frozen, replace
from icemigrate.redaction import redact_secrets
from icemigrate.render import display
from icemigrate.results.command_results import CheckResult, Failure, PlanResult

_Result = TypeVar("_Result")
_DEFAULT_FILE = "icemigrate.yaml"
"""The file for a finding that is about none, where a format wants one."""


def relative_to_repository(result: _Result, here: Path, root: Path) -> _Result:
    """A result with positions relative to the root of the repository, with ``/`` between folders.

    :param here: the working directory, to which positions are relative before.
    """
    if isinstance(result, (CheckResult, PlanResult, Failure)):
        moved = tuple(_moved(d, here, root) for d in result.diagnostics)
        return replace(result, diagnostics=moved)
    return result


def _moved(diagnostic: Diagnostic, here: Path, root: Path) -> Diagnostic:
    if diagnostic.place is None:
        return diagnostic
    # `normpath`, because a path may contain `..`; a linked file has its name in the repository.
    path = Path(os.path.normpath(here / diagnostic.place.file))
    # A file outside the repository keeps its absolute path.
    file = (path.relative_to(root) if path.is_relative_to(root) else path).as_posix()
    return replace(diagnostic, place=replace(diagnostic.place, file=file))


class LocatedFinding(Frozen):
    """A diagnostic for other programs: it always has a position and a permanent name.

    :param fingerprint: constant while lines move and other findings appear or disappear.
    """

    code: str
    severity: Severity
    message: str
    hint: str | None
    place: FilePosition
    fingerprint: str

    @property
    def text(self) -> str:
        """Message and hint, without terminal control characters."""
        parts = [
            display.one_line(self.message),
            *(display.message_text(self.hint).splitlines() if self.hint else ()),
        ]
        return "\n".join(parts)


def located_findings(result: CheckResult | Failure) -> tuple[LocatedFinding, ...]:
    """The findings of a result, the most severe first and otherwise in display order.

    An error that is not about a file is one of them, under its own name.
    """
    diagnostics = list(result.diagnostics)
    if isinstance(result, Failure) and not diagnostics:
        diagnostics.append(Diagnostic(result.error, result.message, None, result.hint))
    seen: dict[str, int] = {}
    return tuple(_finding(d, seen) for d in by_severity(diagnostics))


def by_severity(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Errors, then warnings, then notes; each in the order it had."""
    order = list(Severity)
    return sorted(diagnostics, key=lambda d: order.index(d.severity))


def _finding(d: Diagnostic, seen: dict[str, int]) -> LocatedFinding:
    place = d.place or FilePosition(_DEFAULT_FILE)
    # Numbers in the message stay: they are part of its meaning, unlike the line.
    key = "\n".join((d.code, place.file, d.message))
    seen[key] = seen.get(key, 0) + 1
    fingerprint = sha256(f"{key}\n{seen[key]}".encode(errors="replace")).hexdigest()[:32]
    # Formats escape paths in their own ways, after which a secret would not be recognized.
    place = replace(place, file=redact_secrets(place.file))
    return LocatedFinding(redact_secrets(d.code), d.severity, d.message, d.hint, place, fingerprint)


def severity_by_code(findings: Iterable[LocatedFinding]) -> Mapping[str, Severity]:
    """Every code that occurs, with the heaviest severity it has; sorted."""
    found: dict[str, Severity] = {}
    for finding in findings:
        found.setdefault(finding.code, finding.severity)
    return dict(sorted(found.items()))
