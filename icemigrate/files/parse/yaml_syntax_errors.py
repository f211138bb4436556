"""Messages for errors of PyYAML's scanner and parser that name the change to make."""

from __future__ import annotations

import re

import yaml

from icemigrate.diagnostics import Diagnostic, FilePosition
from icemigrate.files.parse.source_text import SourceText
from icemigrate.frozen import Frozen

_OPENED = {
    "while parsing a flow mapping": ("{", "}"),
    "while parsing a flow sequence": ("[", "]"),
}


class _Fault(Frozen):
    """An error of the parser; positions are 1-based."""

    context: str
    problem: str
    place: FilePosition
    context_place: FilePosition | None


def explain_yaml_error(error: yaml.YAMLError, source: SourceText) -> Diagnostic:
    """The diagnostic for an error that PyYAML raised while it read ``source``."""
    if not isinstance(error, yaml.MarkedYAMLError):
        return Diagnostic(
            "yaml-syntax", f"this is not YAML: {error}".splitlines()[0], FilePosition(source.path)
        )
    place = _mark_position(error.problem_mark or error.context_mark, source) or FilePosition(source.path)
    context_place = _mark_position(error.context_mark, source)
    fault = _Fault(str(error.context or ""), str(error.problem or ""), place, context_place)
    return (
        _tab(fault, source)
        or _tag(fault)
        or _nesting(fault)
        or _unclosed_quote(fault)
        or _unclosed_bracket(fault)
        or _colon(fault, source)
        or _forbidden_start(fault, source)
        or _indentation(fault, source)
        or Diagnostic("yaml-syntax", f"this is not YAML: {fault.problem or fault.context}", fault.place)
    )


def _mark_position(mark: yaml.Mark | None, source: SourceText) -> FilePosition | None:
    # By its index, because after the last line break libyaml counts a line that does not exist.
    return None if mark is None else source.place_at(mark.index)


def _tab(fault: _Fault, source: SourceText) -> Diagnostic | None:
    line = source.line(fault.place.line)
    indentation = line[: len(line) - len(line.lstrip(" \t"))]
    if "\t" not in indentation:
        return None
    place = FilePosition(source.path, fault.place.line, indentation.index("\t") + 1)
    return Diagnostic(
        "tab-indentation", "a tab is used to indent this line", place, "YAML indents with spaces only"
    )


def _tag(fault: _Fault) -> Diagnostic | None:
    if "undefined tag handle" not in fault.problem:
        return None
    return Diagnostic(
        "unknown-tag", "this tag has no meaning here", fault.place, "write the value without a tag"
    )


def _nesting(fault: _Fault) -> Diagnostic | None:
    if "nesting" not in fault.problem:
        return None
    return Diagnostic("too-deep", "values are nested too deeply here", fault.place)


def _unclosed_quote(fault: _Fault) -> Diagnostic | None:
    if "quoted scalar" in fault.context and "end of stream" in fault.problem:
        place = fault.context_place or fault.place
        return Diagnostic("yaml-syntax", "the quote that opens here is never closed", place)
    if "escape character" in fault.problem:
        return Diagnostic(
            "yaml-syntax",
            "a backslash in double quotes begins an escape, and this one is unknown",
            fault.place,
            "use single quotes, or write the backslash twice",
        )
    return None


def _unclosed_bracket(fault: _Fault) -> Diagnostic | None:
    if fault.context not in _OPENED or fault.context_place is None:
        return None
    opening, closing = _OPENED[fault.context]
    return Diagnostic(
        "yaml-syntax",
        f"the `{opening}` that opens here is not closed: a `,` or a `{closing}` is missing",
        fault.context_place,
        f"what follows, on line {fault.place.line}, does not belong inside it",
    )


def _colon(fault: _Fault, source: SourceText) -> Diagnostic | None:
    if "mapping values are not allowed" in fault.problem:
        before = source.line(fault.place.line)[: fault.place.column - 1]
        if ":" in before:
            hint = 'write a value that contains ": " in quotes, and a key on its own line'
        else:
            hint = "check the indentation of this line and the end of the line above"
        return Diagnostic("yaml-syntax", "unexpected `:`", fault.place, hint)
    if "could not find expected ':'" in fault.problem or "while scanning a simple key" in fault.context:
        place = fault.context_place or fault.place
        return Diagnostic("yaml-syntax", "a key without its `:`", place, "write `key: value`")
    return None


def _forbidden_start(fault: _Fault, source: SourceText) -> Diagnostic | None:
    if "cannot start any token" in fault.problem:
        character = source.line(fault.place.line)[fault.place.column - 1 : fault.place.column]
        quoted = f"`{character}`" if character != "`" else "a backtick"
        return Diagnostic(
            "yaml-syntax", f"a value cannot begin with {quoted}", fault.place, "put the value in quotes"
        )
    if re.search("scanning an (alias|anchor)", fault.context):
        mark = "*" if "alias" in fault.context else "&"
        place = fault.context_place or fault.place
        return Diagnostic(
            "yaml-syntax", f"a `{mark}` here begins the name of an anchor", place, "put the value in quotes"
        )
    return None


def _indentation(fault: _Fault, source: SourceText) -> Diagnostic | None:
    if "sequence entries are not allowed" in fault.problem:
        return Diagnostic(
            "yaml-syntax", "unexpected list item", fault.place, "begin the list on its own line"
        )
    if fault.context not in ("while parsing a block mapping", "while parsing a block collection"):
        return None
    line = source.line(fault.place.line)
    if line[: fault.place.column - 1].strip():
        return Diagnostic(
            "yaml-syntax",
            "the value ended before this",
            fault.place,
            "write a quote inside single quotes twice, and check the brackets",
        )
    begun = f" that begins on line {fault.context_place.line}" if fault.context_place else ""
    what = "list" if "collection" in fault.context else "mapping"
    return Diagnostic(
        "yaml-syntax",
        "the indentation of this line does not match the lines around it",
        fault.place,
        f"it is inside the {what}{begun}, but matches none of its levels",
    )
