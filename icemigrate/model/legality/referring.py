"""Rules about branches and tags."""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.model.legality.breach import Breach, View
from icemigrate.model.marks import is_own_tag

_MAIN = "main"
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
    left = f"; {_named('tag', tags)} still as of {whose} snapshot" if tags else ""
    yield Breach(
        "branch-follows-schema",
        ("name",),
        f"who reads {_named('branch', branches)} of the table sees the changed columns at once{left}",
        "tell them, or let them read a tag until they are ready",
        is_warning=True,
    )


def _named(kind: str, names: list[str]) -> str:
    told = ", ".join(f"`{name}`" for name in names[:_SHOWN])
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{kind} {told}{more}"
