"""The page of traps: what Iceberg lets through and engines regret, made from the list below.

What stands in the list is held against the cases: each names a document that shows it, and the rule must be
told in that document.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from icemigrate.checks import rule_of
from icemigrate.frozen import Frozen

ROOT = Path(__file__).resolve().parent.parent
CASES = ROOT / "tests"


class Trap(Frozen):
    """One trap.

    :param rule: the identifier of what icemigrate tells: a rule of ``check``, or one of what may be; ``None``
        where nothing has to be told.
    :param iceberg: what happens without icemigrate.
    :param here: what icemigrate does.
    :param file: below ``tests/``, the documents in which one shows it.
    :param case: its title.
    """

    title: str
    rule: str | None
    iceberg: str
    here: str
    file: str
    case: str


_PARTITIONS = "cases/traps/partitions.yaml"
_UNREAD = "cases/traps/unread.yaml"
_BRANCHES = "cases/traps/branches.yaml"
_KNOWN = "cases/traps/known.yaml"
_REFUSED = "cases/add_column/refused.yaml"

TRAPS = (
    Trap(
        "A column goes that an earlier partitioning used",
        "earlier-partition-source-missing",
        "Accepted. Iceberg 1.12 reads and appends; every update, delete and merge by merge-on-read fails "
        "from then on, also after all files are rewritten. Earlier versions fail on the whole table.",
        "Warns, and refuses it where the table writes by merge-on-read.",
        _PARTITIONS,
        "dropping what an older spec was partitioned by, where rows are deleted by merge-on-read",
    ),
    Trap(
        "A column goes that an earlier partitioning used, by `identity` or `truncate`",
        "earlier-partition-source-missing",
        "Accepted. Every manifest of that partitioning that is written afterwards (by an append, a delete, a "
        "rewrite) has null for the partition value. Where delete files exist, reads fail (`Mismatched "
        "partition tuples`), or deleted rows appear again. A column that is restored reads null in Spark, "
        "and filters find nothing.",
        "Warns, and says what to do first. The commit that restores the column restores the values.",
        _KNOWN,
        "dropping what an older spec was partitioned by",
    ),
    Trap(
        "A column goes that the table is partitioned by",
        "partition-source-missing",
        "Refused by Iceberg, after the statements before it are done.",
        "Refused before anything is touched, with the key that frees the column.",
        "cases/drop_partition_field/partitions.yaml",
        "the column goes and the partitions stay",
    ),
    Trap(
        "In format version 1, the column of a partition field that was dropped goes",
        "void-partition-source-missing",
        "Accepted. The field stays as a void one, and where another one partitions, every insert fails.",
        "Warns, and says what can be written then; the drop needs consent, and undoing it heals the table.",
        "cases/drop_column/columns.yaml",
        "the source of a partition field that format version 1 keeps as void, "
        "without which Spark cannot write",
    ),
    Trap(
        "A column goes that the sort order uses",
        "sort-source-missing",
        "Refused by Java; a library that let it through left a table that nothing could read.",
        "Refused before anything is touched, with the key that frees the column.",
        "cases/free_sort_order/orders.yaml",
        "the order is not freed",
    ),
    Trap(
        "A column goes that an earlier sort order used",
        None,
        "Accepted; seen to read, write, update, rewrite and sort on, in formats 1 to 3.",
        "Nothing has to be told.",
        _PARTITIONS,
        "dropping what an older sort order used does no harm",
    ),
    Trap(
        "The name of a partition field that was dropped, for a column",
        "partition-name-is-a-column",
        "Refused for as long as the field's source is there, whatever the table is partitioned by now.",
        "Refused by `check`, without a catalog.",
        _KNOWN,
        "the name of a partition field that an older spec still holds",
    ),
    Trap(
        "The name of a partition field that was dropped, for another partition field",
        "partition-name-again",
        "Accepted from format version 2 on. Updates by merge-on-read and the tables `files` and `partitions` "
        "fail from then on; no expiry mends it.",
        "Refused, with a name that is free.",
        _PARTITIONS,
        "the name of one partition field goes to another one",
    ),
    Trap(
        "The source of a partition field is renamed, and its old name used again",
        "partition-name-is-a-column",
        "The new column is refused: partition names do not follow renames.",
        "Refused by `check`, before the rename is done.",
        _KNOWN,
        "the source of an identity partition is renamed, and its old name used again",
    ),
    Trap(
        "The table is partitioned by a field of a struct that may be null, as it is",
        "identity-partition-in-optional-struct",
        "Accepted. A query that reads nothing of the struct but such fields takes one that is null for one "
        "whose fields are null: `WHERE s IS NOT NULL` keeps it. Where a struct has no other fields, "
        "rewriting a row writes that down.",
        "Warns, and names what partitions without harm.",
        _UNREAD,
        "an identity partition on a field of a struct that may be null",
    ),
    Trap(
        "A variant is added, renamed or brought back on a table that has a snapshot",
        "variant-unknown-to-rows",
        "Accepted. Spark fails on every query of the column, and on updates by copy-on-write, with a "
        "`NullPointerException`, until something is written.",
        "Warns, with the statement that ends it; a `backfill` of the same migration needs none.",
        _UNREAD,
        "a variant that the newest snapshot does not know",
    ),
    Trap(
        "A column becomes required, and a branch has rows without it",
        "branch-lacks-required",
        "Accepted: a branch has the table's schema, and nobody who asks about rows looks at it. Every query "
        "of the branch fails (`Missing required field`).",
        "Refused, with what fills it there.",
        _BRANCHES,
        "a column becomes required that is not in the files of a branch",
    ),
    Trap(
        "Rows are changed by `backfill` or `retype`, and a branch has rows of its own",
        "rows-left-on-branch",
        "An `UPDATE` is of one branch. The new column reads null on all others, and the old one is gone from "
        "the schema by which they are read.",
        "Warns, with the SQL that brings the values over; what would make a branch unreadable is refused.",
        "cases/data_steps/branches.yaml",
        "a column is retyped, and a branch keeps its rows",
    ),
    Trap(
        "Names that differ in case alone",
        "names-differ-by-case",
        "Accepted by Iceberg. Spark, Hive and Trino fail on the table.",
        "Refused.",
        _REFUSED,
        "a name that differs from another in case alone",
    ),
    Trap(
        "The last field of a struct goes",
        "empty-struct",
        "Accepted. Neither Parquet nor Spark reads the table afterwards.",
        "Refused.",
        "cases/drop_column/refused.yaml",
        "the last field of a struct",
    ),
    Trap(
        "A column is named like a metadata column",
        "metadata-column-name",
        "Accepted. Reading fails later.",
        "Refused.",
        _REFUSED,
        "the name of a metadata column",
    ),
    Trap(
        "A required column without a default, on a table with rows",
        "missing-allow",
        "Spark SQL has no words for it; Java takes it with a switch, and no file from before can be read.",
        "Wants the consent `incompatible`, refused where there are rows; [IM105](rules/IM105.md) warns "
        "of it as well.",
        _REFUSED,
        "a required one without consent",
    ),
    Trap(
        "The name of a dropped column again",
        "IM108",
        "Accepted. It is another column: the old values stay hidden.",
        "Warns, and names `restore_columns`.",
        "checks/IM108/cases.yaml",
        "two migrations later",
    ),
    Trap(
        "A rewriting behind a drop",
        "IM304",
        "The dropped values are not in the new files: an undo brings the column back empty.",
        "Warns, and the plan says which columns lose their way back, before it is applied.",
        "checks/IM304/cases.yaml",
        "a column that an earlier migration dropped",
    ),
)


def traps_page() -> str:
    """The page."""
    rows = (f"| {t.title} | {_link(t.rule)} | {t.iceberg} | {t.here} | {_case(t)} |\n" for t in TRAPS)
    return "".join([_HEAD, *rows])


_HEAD = """# Traps

Iceberg lets changes through that engines regret later, and some that it refuses are refused when half of a
migration is done. What was seen of Spark is of 4.1 with Iceberg 1.12. Each line names what icemigrate tells,
and the document that shows it, which the tests hold icemigrate to.

| trap | told as | without icemigrate | here | case |
| --- | --- | --- | --- | --- |
"""


def _link(rule: str | None) -> str:
    if rule is None:
        return "–"
    if rule_of(rule) is not None:
        return f"[{rule}](rules/{rule}.md)"
    return f"[`{rule}`](rules.md)"


def _case(trap: Trap) -> str:
    return f"[{trap.case}](../tests/{trap.file})"


def untrue(traps: Iterable[Trap] = TRAPS) -> list[str]:
    """What the list says and its cases do not."""
    wrong = []
    for trap in traps:
        documents = (CASES / trap.file).read_text(encoding="utf-8").split("\n---\n")
        found = [d for d in documents if d.startswith(f"case: {trap.case}\n")]
        if not found:
            wrong.append(f"{trap.file} has no case `{trap.case}`")
        elif trap.rule is not None and f" {trap.rule}: " not in found[0]:
            wrong.append(f"`{trap.case}` does not tell {trap.rule}")
        elif trap.rule is None and ("\nerror:" in found[0] or "\nwarnings:" in found[0]):
            wrong.append(f"`{trap.case}` tells something")
    return wrong
