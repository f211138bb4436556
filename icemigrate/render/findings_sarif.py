"""Findings as SARIF 2.1.0, the standard format of code hosts and editors for findings.

(https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html; GitHub's additional requirements:
https://docs.github.com/code-security/code-scanning/integrating-with-code-scanning/sarif-support-for-code-scanning)
"""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import Any, TypeAlias
from urllib.parse import quote

from icemigrate.diagnostics import Severity
from icemigrate.hidden_characters import escaped_json
from icemigrate.redaction import redact_document
from icemigrate.render import display
from icemigrate.render.finding_locations import LocatedFinding, located_findings, severity_by_code
from icemigrate.results.command_results import CheckResult, Failure
from icemigrate.rules import RULES
from icemigrate.rules.rule import Rule
from icemigrate.versions import ICEMIGRATE

_Object: TypeAlias = dict[str, Any]
_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_HELP = "Each finding says what is wrong, where, and how to fix it."
_ROOT = "%SRCROOT%"
"""SARIF's name for the root of the repository, which readers of the log know (section 3.14.14)."""


def sarif_text(result: CheckResult | Failure) -> str:
    """A log with one run."""
    findings = located_findings(result)
    ids = {rule.id for rule in RULES}
    mistakes = {code: severity for code, severity in severity_by_code(findings).items() if code not in ids}
    rules = [*map(_rule, RULES), *(_mistake(code, severity) for code, severity in mistakes.items())]
    codes = [rule["id"] for rule in rules]
    run: _Object = {
        "tool": {
            "driver": {
                "name": "icemigrate",
                "version": ICEMIGRATE,
                "semanticVersion": ICEMIGRATE,
                "rules": rules,
            }
        },
        # Columns count characters here; without this a reader counts as UTF-16 does.
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {_ROOT: {"description": {"text": "The root of the repository."}}},
        "invocations": [_invocation(result)],
        "results": [_result(finding, codes) for finding in findings],
    }
    if isinstance(result, CheckResult):
        run["automationDetails"] = {"id": f"icemigrate/{result.project}/"}
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return escaped_json(json.dumps(redact_document(log), indent=2, ensure_ascii=False)) + "\n"


def _rule(rule: Rule) -> _Object:
    """A rule with its page; its level in the project is part of its findings."""
    severity = rule.level.severity
    level = {"enabled": False} if severity is None else {"level": severity.value}
    return _described(rule.id, rule.name, f"{rule.title}.", rule.page, level, severity or Severity.NOTE)


def _mistake(code: str, severity: Severity) -> _Object:
    """The rule of errors in files and of impossible steps."""
    title = code.replace("-", " ").capitalize() + "."
    return _described(code, code, title, _HELP, {"level": severity.value}, severity)


def _described(
    code: str, name: str, title: str, page: str, configuration: _Object, severity: Severity
) -> _Object:
    return {
        "id": code,
        "name": "".join(word[:1].upper() + word[1:] for word in name.split("-")),
        "shortDescription": {"text": title},
        "fullDescription": {"text": title},
        "help": {"text": page, "markdown": page},
        "defaultConfiguration": configuration,
        "properties": {"tags": ["iceberg", "migrations"], "problem.severity": _problem(severity)},
    }


def _problem(severity: Severity) -> str:
    """GitHub's word for a severity."""
    return "recommendation" if severity is Severity.NOTE else severity.value


def _invocation(result: CheckResult | Failure) -> _Object:
    """Whether the check could be made at all; findings do not count against it (section 3.20.14)."""
    if isinstance(result, CheckResult) or result.diagnostics:
        return {"executionSuccessful": True}
    notification = {"level": "error", "message": {"text": display.message_text(result.message)}}
    return {
        "executionSuccessful": False,
        "exitCode": result.exit_code,
        "toolExecutionNotifications": [notification],
    }


def _result(finding: LocatedFinding, codes: list[str]) -> _Object:
    place = finding.place
    return {
        "ruleId": finding.code,
        "ruleIndex": codes.index(finding.code),
        "level": finding.severity.value,
        "message": {"text": finding.text},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": _location(place.file),
                    "region": {"startLine": place.line, "startColumn": place.column},
                }
            }
        ],
        "partialFingerprints": {"icemigrate/v1": finding.fingerprint},
    }


def _location(file: str) -> _Object:
    """The URI of a path: relative inside the repository, absolute outside."""
    # A colon in the first part would read as a scheme (RFC 3986, section 4.2), so it is quoted too; a name
    # that is no UTF-8 is quoted byte for byte.
    quoted = quote(file, errors="surrogateescape")
    if PurePosixPath(file).is_absolute():
        return {"uri": f"file://{quoted}"}
    return {"uri": quoted, "uriBaseId": _ROOT}
