"""Write into documents of ``cases/`` what comes out, to be read and judged by the one who writes them.

``python -m tests.support.case_writing FILE…`` completes the documents that say no outcome yet; ``--anew``
writes all outcomes again.  What comes before an outcome is left as it stands.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path as File
from typing import Any

from icemigrate.diagnostics import has_errors
from icemigrate.files.write.yaml_text import to_yaml
from icemigrate.frozen import replace
from icemigrate.iceberg.table import Table
from tests.support import case_documents as documents
from tests.support import case_texts as texts
from tests.support.case_documents import Case, World

OUTCOME = re.compile(r"^(plan|statements|after|ids|error|warnings|conflicts):", re.MULTILINE)


def complete(path: File, *, anew: bool) -> None:
    """Write the outcomes of one file."""
    parts = path.read_text(encoding="utf-8").split("\n---\n")
    out = []
    for part, case in zip(parts, documents.read_file(path), strict=True):
        found = OUTCOME.search(part)
        if found and not anew:
            out.append(part.rstrip("\n"))
            continue
        given = part[: found.start()] if found else part
        out.append(given.rstrip("\n") + "\n" + outcome(case).rstrip("\n"))
    path.write_text("\n---\n".join(out) + "\n", encoding="utf-8")


def outcome(case: Case) -> str:
    """What comes out, as the end of a document."""
    world = documents.world_before(case)
    planned = documents.make_plan(world, "0100", case.migration)
    if has_errors(planned.diagnostics):
        return _block("error", texts.diagnostics_text(planned.diagnostics))
    assert planned.plan is not None
    if planned.plan.conflicts:
        return _block("conflicts", texts.conflicts_text(planned.plan))
    done = documents.after(world, planned)
    text = _block("warnings", texts.diagnostics_text(planned.diagnostics))
    text += _block("plan", texts.plan_text(planned.plan))
    text += _block("statements", texts.statements_text(planned.plan))
    tables = [t for n, t in done.actual.items() if t is not None and n.namespace != ("icemigrate_trash",)]
    entries = [dict(_entry(t)) for t in tables]
    written = case.says.get("after")
    # What no single declaration can say stands there as several, written by hand.
    by_hand = isinstance(written, list) and len(written) > len(entries)
    text += _after(written if by_hand else entries)
    ids = {p: i for t in tables for p, i in _new_ids(world, t).items()}
    return text + (f"ids: {{{', '.join(f'{_quoted(p)}: {i}' for p, i in ids.items())}}}\n" if ids else "")


def _new_ids(world: World, table: Table) -> dict[str, int]:
    old = {i for t in world.actual.values() if t is not None for i in texts.ids_of(t).values()}
    return {p: i for p, i in texts.ids_of(table).items() if i not in old} if old else {}


def _quoted(path: str) -> str:
    return path if re.fullmatch(r"[a-z_.0-9]+", path) else "'" + path.replace("'", "''") + "'"


def _entry(table: Table) -> Mapping[str, Any]:
    entry = dict(texts.entry_of(replace(table, properties=texts.unmarked(table))))
    if entry["name"] == documents.NAME:
        del entry["name"]
    return entry


def _after(entries: Any) -> str:
    if isinstance(entries, list) and len(entries) == 1:
        entries = entries[0]
    if not isinstance(entries, list):
        body = to_yaml(entries)
        return "after:\n" + "".join(f"  {line}\n" for line in body.splitlines())
    if not entries:
        return "after: []\n"
    lines = ["after:"]
    for entry in entries:
        first, *more = to_yaml(entry).splitlines()
        lines += [f"  - {first}", *(f"    {line}" for line in more)]
    return "\n".join(lines) + "\n"


def _block(key: str, text: str) -> str:
    if not text:
        return ""
    return f"{key}: |\n" + "".join(f"  {line}\n" for line in text.splitlines())


if __name__ == "__main__":
    arguments = [a for a in sys.argv[1:] if a != "--anew"]
    for name in arguments:
        complete(File(name), anew="--anew" in sys.argv)
