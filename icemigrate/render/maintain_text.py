"""What ``maintain`` would do, and what it did, for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from icemigrate.model.upkeep import Kept, MaintainResult, Upkeep
from icemigrate.render import words
from icemigrate.render.style import Style

_TITLES = {
    "trash": "Trash",
    "snapshots": "Snapshots",
    "rows": "Rows",
    "orphans": "Orphan files",
}


def maintain_text(result: MaintainResult, style: Style) -> str:
    """Part by part, each act with what it comes to; then what is left alone, and why."""
    lines: list[str] = [] if result.done else [style.dim(f"{result.project} → {result.environment}"), ""]
    for part in result.parts:
        acts = [act for act in result.acts if act.part == part]
        if acts:
            lines += [style.bold(_TITLES[part]), *_acts(acts, style), ""]
    if result.kept and not result.done:
        lines += [style.bold("Left alone"), *(_kept(kept, style) for kept in result.kept), ""]
    lines += [style.dim(f"note: {words.note_line(note)}") for note in result.notes]
    lines.append(style.bold(_summary(result)))
    if result.interrupted:
        lines.append(style.bad(words.interrupted_line(result.interrupted)))
    return "\n".join(lines) + "\n"


def _acts(acts: Sequence[Upkeep], style: Style) -> Iterator[str]:
    for act in acts:
        yield f"  {style.symbol('-')} {words.one_line(act.table)}: {act.outcome or act.text}"
        if act.outcome is None:
            yield from (f"      {style.changed(words.one_line(text))}" for text in act.consequences)
            yield style.dim(f"      {words.one_line(act.statement)}")


def _kept(kept: Kept, style: Style) -> str:
    refused = f"{style.bad('refused')}: " if kept.is_refused else ""
    return f"  {words.one_line(kept.table)} ({kept.part}): {refused}{words.one_line(kept.reason)}"


def _summary(result: MaintainResult) -> str:
    counts = {part: sum(act.part == part for act in result.acts) for part in result.parts}
    told = [
        words.count(counts[part], *nouns)
        for part, nouns in (
            ("trash", ("table to drop for good", "tables to drop for good")),
            ("snapshots", ("table with snapshots to expire", "tables with snapshots to expire")),
            ("rows", ("table with rows to delete", "tables with rows to delete")),
            ("orphans", ("table with orphan files", "tables with orphan files")),
        )
        if counts.get(part)
    ]
    if not told:
        return f"{result.project} in {result.environment}: nothing to maintain."
    if result.done:
        took = words.duration(result.elapsed_ms)
        return f"Maintained {words.count(len(result.acts), 'table')} in {result.environment} in {took}."
    return f"Maintenance: {', '.join(told)}."
