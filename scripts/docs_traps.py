"""The page of traps: changes that Iceberg accepts and engines fail on, generated from the list below.

Each trap names a document of ``tests/``; a test checks that icemigrate reports the trap's rule in that
document.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from icemigrate.frozen import Frozen
from icemigrate.rules import find_rule

ROOT = Path(__file__).resolve().parent.parent
CASES = ROOT / "tests"


class Trap(Frozen):
    """One trap.

    :param rule: the code that icemigrate reports; ``None`` if it reports nothing.
    :param iceberg: what happens without icemigrate.
    :param here: what icemigrate does.
    :param file: the file of documents below ``tests/``.
    :param case: the title of the document that shows the trap.
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
        "A column is dropped that an earlier partitioning used",
        "earlier-partition-source-missing",
        "Accepted. Iceberg 1.12 can still read and append. Every update, delete and merge by "
        "merge-on-read fails, even after all files are rewritten. Earlier versions fail on the whole "
        "table.",
        "Warns. Refuses it if the table writes by merge-on-read.",
        _PARTITIONS,
        "dropping what an older spec was partitioned by, where rows are deleted by merge-on-read",
    ),
    Trap(
        "A column is dropped that an earlier partitioning used with `identity` or `truncate`",
        "earlier-partition-source-missing",
        "Accepted. Every newly written manifest of that partitioning has null as the partition value. "
        "If delete files exist, reads fail (`Mismatched partition tuples`), or deleted rows reappear. A"
        " restored column reads null in Spark, and filters find nothing.",
        "Warns, and says what to do first. The commit that restores the column also restores the "
        "partition values.",
        _KNOWN,
        "dropping what an older spec was partitioned by",
    ),
    Trap(
        "A column is dropped that the current partitioning uses",
        "partition-source-missing",
        "Iceberg refuses it, after the statements before it have run.",
        "Refuses it before any change, and names the key that frees the column.",
        "cases/drop_partition_field/partitions.yaml",
        "the column goes and the partitions stay",
    ),
    Trap(
        "In format version 1, the column of a dropped partition field is dropped",
        "void-partition-source-missing",
        "Accepted. The field stays as a void field. If the table has another partition field, every "
        "insert fails.",
        "Warns, and says what can still be written. The drop needs a consent, and undoing it repairs "
        "the table.",
        "cases/drop_column/columns.yaml",
        "the source of a partition field that format version 1 keeps as void, without which Spark "
        "cannot write",
    ),
    Trap(
        "A column is dropped that the sort order uses",
        "sort-source-missing",
        "Java refuses it. A library that accepted it left a table that no engine could read.",
        "Refuses it before any change, and names the key that frees the column.",
        "cases/free_sort_order/orders.yaml",
        "the order is not freed",
    ),
    Trap(
        "A column is dropped that an earlier sort order used",
        None,
        "Accepted. Reads, writes, updates, rewrites and sorts work, in format versions 1 to 3.",
        "No message is needed.",
        _PARTITIONS,
        "dropping what an older sort order used does no harm",
    ),
    Trap(
        "A column gets the name of a dropped partition field",
        "partition-name-is-a-column",
        "Refused while the field's source exists, even if the table is partitioned otherwise now.",
        "`check` refuses it without a catalog.",
        _KNOWN,
        "the name of a partition field that an older spec still holds",
    ),
    Trap(
        "A partition field gets the name of a dropped partition field",
        "partition-name-again",
        "Accepted from format version 2 on. Updates by merge-on-read and the tables `files` and "
        "`partitions` fail, and expiring snapshots does not help.",
        "Refuses it, and suggests a free name.",
        _PARTITIONS,
        "the name of one partition field goes to another one",
    ),
    Trap(
        "The source of a partition field is renamed, and a new column gets its old name",
        "partition-name-is-a-column",
        "Iceberg refuses the new column, because partition names do not follow renames.",
        "`check` refuses it before the rename.",
        _KNOWN,
        "the source of an identity partition is renamed, and its old name used again",
    ),
    Trap(
        "The table is partitioned by a field of an optional struct with `identity`",
        "identity-partition-in-optional-struct",
        "Accepted. If a query reads only such fields of the struct, a null struct becomes a struct of "
        "nulls: `WHERE s IS NOT NULL` keeps it. If the struct has no other fields, rewriting a row "
        "stores the wrong value.",
        "Warns, and names transforms that are safe.",
        _UNREAD,
        "an identity partition on a field of a struct that may be null",
    ),
    Trap(
        "A variant is added, renamed or restored on a table with a snapshot",
        "variant-unknown-to-rows",
        "Accepted. Every Spark query of the column, and every update by copy-on-write, fails with a "
        "`NullPointerException` until a client writes to the table.",
        "Warns, and shows a statement that fixes it. A `backfill` in the same migration also fixes it.",
        _UNREAD,
        "a variant that the newest snapshot does not know",
    ),
    Trap(
        "A column becomes required, and a branch has rows without it",
        "branch-lacks-required",
        "Accepted, because a branch has the table's schema and only main is checked. Every query of the"
        " branch fails (`Missing required field`).",
        "Refuses it, and shows how to fill the column on the branch.",
        _BRANCHES,
        "a column becomes required that is not in the files of a branch",
    ),
    Trap(
        "`backfill` or `retype` changes rows, and a branch has its own rows",
        "rows-left-on-branch",
        "An `UPDATE` changes only one branch. On all other branches the new column reads null, and the "
        "old column is no longer in the schema.",
        "Warns, and shows SQL that copies the values. Refuses what would make a branch unreadable.",
        "cases/data_steps/branches.yaml",
        "a column is retyped, and a branch keeps its rows",
    ),
    Trap(
        "Two names differ only in case",
        "names-differ-by-case",
        "Iceberg accepts it. Spark, Hive and Trino fail on the table.",
        "Refuses it.",
        _REFUSED,
        "a name that differs from another in case alone",
    ),
    Trap(
        "The last field of a struct is dropped",
        "empty-struct",
        "Accepted. Neither Parquet nor Spark can read the table.",
        "Refuses it.",
        "cases/drop_column/refused.yaml",
        "the last field of a struct",
    ),
    Trap(
        "A column has the name of a metadata column",
        "metadata-column-name",
        "Accepted. Reading fails later.",
        "Refuses it.",
        _REFUSED,
        "the name of a metadata column",
    ),
    Trap(
        "A required column without a default is added to a table with rows",
        "missing-allow",
        "Spark SQL cannot express it. Java accepts it with a switch, and then no older file can be read.",
        "Needs the consent `incompatible`, and is refused if the table has rows. "
        "[IM105](rules/IM105.md) also warns.",
        _REFUSED,
        "a required one without consent",
    ),
    Trap(
        "A new column has the name of a dropped column",
        "IM108",
        "Accepted. It is a different column, and the old values stay hidden.",
        "Warns, and suggests `restore_columns`.",
        "checks/IM108/cases.yaml",
        "two migrations later",
    ),
    Trap(
        "Files are rewritten after a column was dropped",
        "IM304",
        "The new files do not contain the dropped values, so an undo restores an empty column.",
        "Warns. The plan names the columns whose values can no longer be restored.",
        "checks/IM304/cases.yaml",
        "a column that an earlier migration dropped",
    ),
)


def traps_page() -> str:
    """The page."""
    rows = (f"| {t.title} | {_link(t.rule)} | {t.iceberg} | {t.here} | {_case(t)} |\n" for t in TRAPS)
    return "".join([_HEAD, *rows])


_HEAD = """# Traps

Iceberg accepts some changes that make engines fail later. It refuses others only when half of a migration
is done. This table shows what happens with Spark 4.1 and Iceberg 1.12, and what icemigrate does. The last
column links to a tested example.

| change | code | without icemigrate | with icemigrate | example |
| --- | --- | --- | --- | --- |
"""


def _link(rule: str | None) -> str:
    if rule is None:
        return "–"
    if find_rule(rule) is not None:
        return f"[{rule}](rules/{rule}.md)"
    return f"[`{rule}`](rules.md)"


def _case(trap: Trap) -> str:
    return f"[{trap.case}](../tests/{trap.file})"


def untrue(traps: Iterable[Trap] = TRAPS) -> list[str]:
    """Traps whose documents do not report their codes."""
    wrong = []
    for trap in traps:
        documents = (CASES / trap.file).read_text(encoding="utf-8").split("\n---\n")
        found = [d for d in documents if d.startswith(f"case: {trap.case}\n")]
        if not found:
            wrong.append(f"{trap.file} has no case `{trap.case}`")
        elif trap.rule is not None and f" {trap.rule}: " not in found[0]:
            wrong.append(f"`{trap.case}` does not report {trap.rule}")
        elif trap.rule is None and ("\nerror:" in found[0] or "\nwarnings:" in found[0]):
            wrong.append(f"`{trap.case}` reports a problem")
    return wrong
