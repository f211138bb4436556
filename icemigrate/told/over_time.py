"""What may not fit between files, the history and the catalog, on the way there and on the way back."""

from __future__ import annotations

from collections.abc import Mapping

OVER_TIME: Mapping[str, str] = {
    "baseline-does-more": "`apply --baseline` records what is there already, and this migration does more "
    "than adopt. With `--to VERSION` all versions are recorded up to the one that the catalog is at; "
    "`apply` does the rest.",
    "baseline-interrupted": "A migration was interrupted on its way, and a baseline finishes nothing. "
    "`apply` finishes it, `rollback` undoes it.",
    "baseline-namespace": "A baseline makes no namespace. Make it first.",
    "branch-holds-nulls": "A column becomes required, and a branch has rows in which it is null: Spark would "
    "read 0 there, and `IS NULL` find nothing. Fill it there first, or drop a branch that nobody needs.",
    "branch-may-lack-required": "A column becomes required, and nobody could tell quickly whether every row "
    "of a branch has a value of it. See that it has, or fill it there first.",
    "branch-written": "A branch cannot be dropped by an undo: rows were written to it since, which would "
    "be lost. `rollback --partial` leaves it.",
    "cannot-import": "A table cannot be taken in; the message says why. `--exclude` leaves it out.",
    "deleted-migration": "A migration of the base is gone in this change. Others have applied it: bring "
    "the file back; `revert` writes the way back as a migration, `squash` one file for several.",
    "edited-file": "An applied file says something else now than what was applied. Bring it back, and "
    "write what is new into a new migration; where both declare the same, `icemigrate repair` accepts it.",
    "edited-migration": "A migration of the base says something else in this change. Others have applied "
    "it as it was: what is new goes into a new migration.",
    "format-downgrade": "Iceberg does not go back to an earlier format version. `rollback --partial` "
    "undoes the rest.",
    "history-lost": "A table was made by this project, and the history knows nothing of it: another "
    "history is named in the project file, or the history was dropped. Bring it back, or take the table in "
    "with `adopt: true`.",
    "interrupted": "A run was broken off between its first change and its end. `apply` finishes it, "
    "`rollback` undoes it; other migrations of its tables wait.",
    "late-file": "A file has a lower number than what was applied last, as of a branch that was merged "
    "later, and touches the same. `icemigrate rebase` renumbers it.",
    "lock-held": "Somebody applies or rolls back just now. What is planned meanwhile may be another plan "
    "by then.",
    "missing-file": "An applied version has no file any more. Bring it back from version control.",
    "name-taken": "A dropped column cannot come back: another one has its name by now.",
    "narrow-type": "A type cannot become narrow again, and a dropped column cannot come back under a "
    "narrower type: files were written under the wider one, and reading them would fail, whatever the "
    "values.",
    "may-lack-required": "A required column comes back, or a field becomes required in a struct that may be "
    "null, and nobody could tell quickly whether every file has it. Leave it optional until all files were "
    "written again with it; of one that comes back, a later migration that makes it required asks the rows.",
    "newer-rows": "Rows were written since a migration that changed rows, and going back to the snapshot "
    "before it would lose them. `--discard-new-data` gives them up; `--metadata-only` leaves all rows as "
    "they are.",
    "no-branches": "Rows are written on a branch and published when the checks hold, and this catalog has "
    "no branches, or is harmed by them. Change the rows by a job of your own, between two migrations.",
    "nothing-to-refill": "`rollback --refill` has no value to bring back: each value of a dropped column is "
    "in the files, or no tag or snapshot keeps it.",
    "required-holds-nulls": "A column becomes required, and there are rows in which it is null: Spark would "
    "read 0 there, and `IS NULL` find nothing. Fill it in an earlier migration.",
    "required-not-in-every-file": "A column becomes required, and files lack it, or would stay without it "
    "where the migration fills it: nobody could read the table. Make it required in a later migration, when "
    "all files were written again.",
    "rows-left-on-branch": "A migration fills or retypes columns in the rows of main, and a branch keeps "
    "its rows as they are: a retyped column reads null there. The hint holds the SQL that brings the values "
    "over.",
    "override-differs": "An override of the environment and the table in the catalog say different things. "
    "Bring the two together first.",
    "replaced-file": "A file is in the range of a squash. Remove it if it is one of those that were "
    "squashed; else it came late, and `icemigrate rebase` renumbers it.",
    "required-again": "A column cannot be required again: nulls were written since, or nobody can tell, "
    "and Spark would read them as 0.",
    "retype-unknown": "A column of type `unknown` holds nothing but nulls. Drop the column and add it anew, "
    "where its values may go.",
    "rows-not-loaded": "Spark does what is done to rows, and it cannot load a table that has a column of "
    "this type. Change the rows by a job of your own in another engine, between two migrations.",
    "snapshot-expired": "The snapshot that an undo or a reference needs has expired, and its rows with it.",
    "sql-not-understood": "Spark cannot run an expression or a query of a migration file, as it said "
    "before anything was done to rows. Mend it where it stands.",
    "squash-differs": "One file cannot declare what the files did one after another. Squash through an "
    "earlier version.",
    "squash-digest": "A file that a squash stands for says something else than what was squashed.",
    "squash-partial": "A squash stands for several versions, of which only some are applied here. Apply "
    "the rest first, from the commit before the squash, which still has the files.",
    "squash-range": "Two squashes stand for one version. Squash again, from files that are whole.",
    "squash-rows": "A migration changes the rows of a table that was adopted, which a squash cannot do in "
    "one file.",
    "squash-values": "A rollback of a version that a squash replaces left values in a snapshot, and the "
    "record of that version keeps the snapshot. Restore the values or give them up before the squash.",
    "table-exists": "Another table has the name: one that no migration of this project made, or one that "
    "was made since. Move it away, or take it in with `adopt: true`.",
    "table-owned": "Another project owns the table, as its property `icemigrate.owner` says. Change it in "
    "that project, or hand it over: set the property to this project's name.",
    "table-gone": "A recorded table is not in the catalog. Register its last metadata file again, or "
    "declare that it is gone by `drift --accept`.",
    "trash-emptied": "A dropped table cannot come back: the trash does not hold it any more.",
    "trash-taken": "The trash holds another table of the name that this one would get there.",
    "unproved": "A plan does not lead to what was declared, which is a fault of icemigrate's, seen before "
    "anything was touched. Report it; `icemigrate revert` may be a way on.",
    "unproved-field": "An interrupted run or another client added a field, and the table's older metadata "
    "files, which would tell, are gone. `rollback --partial` leaves the field.",
    "unreadable-metadata": "The metadata of a table cannot be read. `--exclude` leaves the table out.",
    "values-rewritten": "The values of a dropped column were written away with the files that held them; a "
    "tag may still keep them. `rollback --refill` brings them back by row, `--no-refill` leaves them.",
    "version-taken": "The number of a new migration is taken on the branch that the change goes to. "
    "`icemigrate rebase` renumbers it.",
}
