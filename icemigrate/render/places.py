"""Findings for readers who know the repository alone: a code host, an editor, another machine."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

from icemigrate.diagnostics import Diagnostic, Place, Severity
from icemigrate.frozen import Frozen, replace
from icemigrate.redaction import redact
from icemigrate.render import words
from icemigrate.results import CheckResult, Failure, PlanResult

_Result = TypeVar("_Result")
_NOWHERE = "icemigrate.yaml"
"""The file for a finding that is about none, where a format wants one."""


def within(result: _Result, here: Path, root: Path) -> _Result:
    """A result whose places begin at the top of the repository, with ``/`` between folders.

    :param here: the working directory, which the places begin at so far.
    """
    if isinstance(result, (CheckResult, PlanResult, Failure)):
        moved = tuple(_moved(d, here, root) for d in result.diagnostics)
        return replace(result, diagnostics=moved)
    return result


def _moved(diagnostic: Diagnostic, here: Path, root: Path) -> Diagnostic:
    if diagnostic.place is None:
        return diagnostic
    # `normpath`, since a path may hold `..`; what is linked is called as it is in the repository.
    path = Path(os.path.normpath(here / diagnostic.place.file))
    # A file beyond the repository has no other name than its own.
    file = (path.relative_to(root) if path.is_relative_to(root) else path).as_posix()
    return replace(diagnostic, place=replace(diagnostic.place, file=file))


class Finding(Frozen):
    """A diagnostic as other programs list it: it always has a place, and a name that stays.

    :param fingerprint: the same when lines move or other findings come and go.
    """

    code: str
    severity: Severity
    message: str
    hint: str | None
    place: Place
    fingerprint: str

    @property
    def text(self) -> str:
        """Message and hint, without what would steer a terminal."""
        parts = [words.one_line(self.message), *(words.visible(self.hint).splitlines() if self.hint else ())]
        return "\n".join(parts)


def findings_of(result: CheckResult | Failure) -> tuple[Finding, ...]:
    """The findings of a result, the weightiest first and otherwise in the order of showing.

    A fault that is no mistake of a file is one of them, under its own name.
    """
    diagnostics = list(result.diagnostics)
    if isinstance(result, Failure) and not diagnostics:
        diagnostics.append(Diagnostic(result.error, result.message, None, result.hint))
    seen: dict[str, int] = {}
    return tuple(_finding(d, seen) for d in by_weight(diagnostics))


def by_weight(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Errors, then warnings, then notes; each in the order it had."""
    order = list(Severity)
    return sorted(diagnostics, key=lambda d: order.index(d.severity))


def _finding(d: Diagnostic, seen: dict[str, int]) -> Finding:
    place = d.place or Place(_NOWHERE)
    # Numbers in the message stay: they are part of what is said, while the line is only where it is said.
    key = "\n".join((d.code, place.file, d.message))
    seen[key] = seen.get(key, 0) + 1
    fingerprint = sha256(f"{key}\n{seen[key]}".encode(errors="replace")).hexdigest()[:32]
    # Formats write paths with escapes of their own, behind which a secret would not be seen any more.
    place = replace(place, file=redact(place.file))
    return Finding(redact(d.code), d.severity, d.message, d.hint, place, fingerprint)


def rule_names(findings: Iterable[Finding]) -> Mapping[str, Severity]:
    """Every code that occurs, with the heaviest severity it has; sorted."""
    found: dict[str, Severity] = {}
    for finding in findings:
        found.setdefault(finding.code, finding.severity)
    return dict(sorted(found.items()))
