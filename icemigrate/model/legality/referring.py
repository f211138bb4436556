"""Rules about branches and tags."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from icemigrate.model.legality.breach import Branches, Breach, View, column
from icemigrate.model.marks import is_own_tag
from icemigrate.model.names import format_path
from icemigrate.model.schema import Entry, Schema, index
from icemigrate.model.table import Head

_MAIN = "main"
DROP_IT = "drop a branch that nobody needs"
NOT_TO_BE_FILLED = (
    "declare it with `required: false`, bring its values over to the branch, and make it required in a "
    f"later migration; or {DROP_IT}"
)
"""What to do for branches that lack a column which is not there yet."""
_SHOWN = 3
"""How many names are told; a table may have hundreds of tags."""


def branches_follow_the_schema(view: View) -> Iterator[Breach]:
    """Branches have no schema of their own: who reads one sees a change at once; a tag has its snapshot's.

    Specification, "Snapshot References": a schema belongs to a table and to a snapshot; engines read a branch
    under the table's (public thread: apache/iceberg#9737).
    """
    before = view.before
    if before is None or before.schema.fields == view.table.schema.fields:
        return
    staying = before.refs.keys() & view.table.refs.keys()
    branches = sorted(n for n in staying if before.refs[n].kind == "branch" and n != _MAIN)
    tags = sorted(n for n in staying if before.refs[n].kind == "tag" and not is_own_tag(n))
    if not branches:
        return
    whose = "its" if len(tags) == 1 else "their"
    left = f"; {named('tag', tags)} still as of {whose} snapshot" if tags else ""
    yield Breach(
        "branch-follows-schema",
        ("name",),
        f"who reads {named('branch', branches)} of the table sees the changed columns at once{left}",
        "tell them, or let them read a tag until they are ready",
        is_warning=True,
    )


def branches_hold_required_fields(view: View) -> Iterator[Breach]:
    """A field that becomes required is in the files of every branch that has rows.

    A branch is read under the table's schema, and Iceberg 1.12 fails on a file that lacks a required field
    ("Missing required field"), so that nobody could read the branch any more: what a migration does to rows
    is done on main alone.  What was written under a schema without the field lacks it; a default that older
    rows read mends that, and so does a struct around it that is absent as a whole.
    """
    if view.before is None:
        return
    before = view.before
    heads = {n: h for n, h in before.heads.items() if n in view.table.refs and h.has_rows}
    if not heads:
        return
    for entry in view.fields.values():
        old = before.schema.by_id(entry.field.id)
        is_new = entry.field.required and entry.field.initial_default is None
        if not is_new or (old is not None and old.required):
            continue
        lacking = {n: h for n, h in heads.items() if h.schema is not None and lacks(h.schema, entry)}
        if lacking:
            name = format_path(entry.path)
            yield Breach(
                "branch-lacks-required",
                column(entry.path, "required"),
                f"`{name}` cannot be required: it is not in the files of {with_rows(lacking)}, which nobody "
                "could read any more",
                NOT_TO_BE_FILLED if old is None else f"fill it there first; or {DROP_IT}",
                branches=Branches(entry.field.id, tuple(lacking)),
            )


def lacks(schema: Schema, entry: Entry) -> bool:
    """Whether files that were written under a schema, and under those before it, surely lack a field, and not
    only by lacking all of the struct around it.

    A field with a lower id than others of the schema was dropped by then and is back: older files may hold
    it.
    """
    is_around = entry.parent is None or schema.by_id(entry.parent) is not None
    return is_around and entry.field.id > max(index(schema), default=0)


def with_rows(heads: Mapping[str, Head]) -> str:
    """Branches, each with its number of rows."""
    told = [f"`{name}` ({head.rows_text})" for name, head in sorted(heads.items())]
    return f"{_kind('branch', told)} {', '.join(told[:_SHOWN])}{_more(told)}"


def named(kind: str, names: Sequence[str]) -> str:
    """Branches or tags by their names, as many as are worth telling."""
    return f"{_kind(kind, names)} {', '.join(f'`{name}`' for name in names[:_SHOWN])}{_more(names)}"


def _kind(kind: str, of: Sequence[str]) -> str:
    return kind if len(of) == 1 else "branches" if kind == "branch" else f"{kind}s"


def _more(names: Sequence[str]) -> str:
    return f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
