"""Texts of ``doctor``, ``rules`` and ``maintain``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from icemigrate.diagnostics import format_count
from icemigrate.render import display, phrases
from icemigrate.render.alike_findings import note_lines, without_names
from icemigrate.render.alike_tables import (
    TableLines,
    alike_lines,
    alike_tables,
    number_ranges,
    without_numbers,
)
from icemigrate.render.terminal_style import TerminalStyle
from icemigrate.results.command_results import (
    DoctorCheck,
    DoctorResult,
    RulesResult,
    RuleStatus,
)
from icemigrate.results.maintain_results import ActionSummary, MaintainResult, SkippedTable
from icemigrate.results.reset_results import ResetResult, ResetTable

_STATE_SYMBOLS = {"ok": "✓", "note": "!", "failed": "✗", "skipped": "–"}


def doctor_text(result: DoctorResult, style: TerminalStyle) -> str:
    """One line for each test, with a hint below it; then the catalog's capabilities."""
    lines = [line for checkup in result.checkups for line in _lines(checkup, style)]
    if result.abilities:
        lines += ["", f"Capabilities of catalog kind `{result.catalog}`:"]
        for ability in result.abilities:
            mark = style.good("+") if ability.can else style.changed("-")
            lines.append(f"  {mark} {display.one_line(ability.text)}")
    failed = sum(c.state == "failed" for c in result.checkups)
    verdict = style.good("all checks passed") if result.ok else style.bad(f"{failed} failed")
    lines += ["", f"{result.project} in {result.environment}: {verdict}."]
    return "\n".join(lines) + "\n"


def _lines(checkup: DoctorCheck, style: TerminalStyle) -> Iterator[str]:
    paint = {"ok": style.good, "note": style.changed, "failed": style.bad, "skipped": style.dim}[
        checkup.state
    ]
    first, *others = display.visible_text(checkup.text).splitlines() or [""]
    yield f"{paint(_STATE_SYMBOLS[checkup.state])} {style.bold(checkup.name)}: {first}"
    yield from (f"    {line}" for line in others)
    if checkup.hint:
        yield from (
            f"    {style.dim('→')} {line}" for line in display.visible_text(checkup.hint).splitlines()
        )


def rules_text(result: RulesResult, style: TerminalStyle) -> str:
    """A line for each rule, with its options below."""
    width = max(len(rule.name) for rule in result.rules)
    lines = []
    for rule in result.rules:
        level = _paint(rule, style)
        lines.append(f"{style.bold(rule.id)}  {rule.name:{width}}  {level}  {rule.finds}")
        gap = " " * (len(rule.id) + width + 13)
        lines += (
            style.dim(f"{gap}{option.key}: {'not set' if option.value is None else option.value}")
            for option in rule.options
        )
    changed = [rule for rule in result.rules if rule.level != rule.default]
    said = f", {len(changed)} with a level other than the default" if changed else ""
    lines += ["", f"{result.project}: {format_count(len(result.rules), 'rule')}{said}."]
    return "\n".join(lines) + "\n"


def _paint(rule: RuleStatus, style: TerminalStyle) -> str:
    paints = {"error": style.bad, "warning": style.changed, "note": style.moved, "off": style.dim}
    return paints[rule.level](f"{rule.level:7}")


_TITLES = {
    "trash": "Trash",
    "snapshots": "Snapshots",
    "rows": "Rows",
    "schemas": "Schemas",
    "views": "Views",
    "orphans": "Orphan files",
}


def maintain_text(result: MaintainResult, style: TerminalStyle) -> str:
    """Part by part, each action with its consequences; then the skipped tables, with reasons."""
    lines: list[str] = [] if result.done else [style.dim(f"{result.project} → {result.environment}"), ""]
    for part in result.parts:
        acts = [act for act in result.acts if act.part == part]
        if acts:
            lines += [style.bold(_TITLES[part]), *_acts(acts, style), ""]
    if result.kept and not result.done:
        skipped = ((kept.table, _skipped_table_line(kept, style)) for kept in result.kept)
        lines += [
            style.bold("Skipped"),
            *alike_lines(skipped, shows_all=style.details, escape=display.one_line),
            "",
        ]
    lines += [style.dim(f"note: {note}") for note in note_lines(result.notes, style)]
    lines.append(style.bold(_summary(result)))
    if result.interrupted:
        lines.append(style.bad(phrases.interrupted_line(result.interrupted)))
    return "\n".join(lines) + "\n"


def _acts(acts: Sequence[ActionSummary], style: TerminalStyle) -> Iterator[str]:
    blocks = (
        TableLines(
            (act.table,),
            (),
            (without_numbers(_outcome(act)), *(without_names(text) for text in _costs(act))),
        )
        for act in acts
    )
    for group in alike_tables(blocks, display.one_line, shows_all=style.details):
        alike = [acts[at] for at in group.members]
        act = alike[0]
        ranges = number_ranges([_outcome(one) for one in alike])
        text = _outcome(act) if len(alike) == 1 else ranges
        yield f"  {style.symbol('-')} {display.one_line(act.table)}: {text}"
        if (others := group.others_text(display.one_line)) is not None:
            yield f"      {style.dim(others)}"
        yield from (f"      {style.changed(display.one_line(text))}" for text in _costs(act))
        if act.outcome is None:
            yield style.dim(f"      {display.one_line(act.statement)}")


def _outcome(act: ActionSummary) -> str:
    return act.outcome or act.text


def _costs(act: ActionSummary) -> tuple[str, ...]:
    return act.consequences if act.outcome is None else ()


def _skipped_table_line(kept: SkippedTable, style: TerminalStyle) -> str:
    refused = f"{style.bad('refused')}: " if kept.is_refused else ""
    if kept.is_unreadable:
        refused = f"{style.bad('cannot be read')}: "
    return f"  {display.one_line(kept.table)} ({kept.part}): {refused}{display.one_line(kept.reason)}"


def _summary(result: MaintainResult) -> str:
    counts = {part: sum(act.part == part for act in result.acts) for part in result.parts}
    parts = [
        format_count(counts[part], *nouns)
        for part, nouns in (
            ("trash", ("table to drop permanently", "tables to drop permanently")),
            ("snapshots", ("table with snapshots to expire", "tables with snapshots to expire")),
            ("rows", ("table with rows to delete", "tables with rows to delete")),
            ("schemas", ("table with schemas to remove", "tables with schemas to remove")),
            ("views", ("table with views to drop", "tables with views to drop")),
            ("orphans", ("table with orphan files", "tables with orphan files")),
        )
        if counts.get(part)
    ]
    if not parts:
        return f"{result.project} in {result.environment}: nothing to maintain."
    if result.done:
        took = display.elapsed_text(result.elapsed_ms)
        tables = format_count(len({act.table for act in result.acts}), "table")
        return f"Maintained {tables} in {result.environment} in {took}."
    return f"Maintenance: {', '.join(parts)}."


def reset_text(result: ResetResult, style: TerminalStyle) -> str:
    """Each table with its action, and the number of versions that the history forgets."""
    if result.is_empty:
        return f"{result.project} in {result.environment}: nothing to reset.\n"
    trashed = sum(t.action == "trash" for t in result.tables)
    tables = format_count(trashed, "table")
    if result.done:
        took = display.elapsed_text(result.elapsed_ms)
        return (
            f"{style.good('Reset')} {result.environment} in {took}: {tables} moved to the trash, and the "
            "history is empty.\n`icemigrate apply` begins with the first migration again.\n"
        )
    lines = [style.dim(f"{result.project} → {result.environment}"), ""]
    blocks = (
        TableLines(
            tuple(name for name in (table.table, table.trash) if name is not None),
            (f"  {_reset_line(table, style)}",),
        )
        for table in result.tables
    )
    for group in alike_tables(blocks, display.one_line, shows_all=style.details):
        others = group.others_text(display.one_line)
        lines += [*group.lines, *([f"      {style.dim(others)}"] if others else [])]
    versions = format_count(result.versions, "version")
    return "\n".join(
        [*lines, "", style.bold(f"Reset: {tables} to the trash; the history forgets {versions}."), ""]
    )


def _reset_line(table: ResetTable, style: TerminalStyle) -> str:
    name = display.one_line(table.table)
    if table.trash is not None:
        return f"{style.symbol('-')} {name}: into the trash, as {display.one_line(table.trash)}"
    if table.action == "keep":
        return style.dim(f"· {name}: stays: {display.one_line(table.reason or '')}")
    number = len(table.references)
    references = f", without {format_count(number, 'tag or branch', 'tags and branches')}"
    return f"{style.symbol('~')} {name}: stays, because a migration adopted it{references if number else ''}"
