"""What may not fit between files, the history and the catalog, on the way there and on the way back."""

from __future__ import annotations

from collections.abc import Mapping

HISTORY_CODES: Mapping[str, str] = {
    "baseline-does-more": "`apply --baseline` records existing tables, but this migration does more than "
    "adopt. With `--to VERSION`, record all versions up to the state of the catalog; `apply` runs the rest.",
    "baseline-interrupted": "A migration was interrupted, and a baseline does not finish it. `apply` "
    "finishes it, `rollback` undoes it.",
    "baseline-namespace": "A baseline creates no namespace. Create it first.",
    "branch-holds-nulls": "A column becomes required, but a branch has rows in which it is null: Spark "
    "would read 0 there, and `IS NULL` would find nothing. Fill it there first, or drop a branch that you "
    "no longer need.",
    "branch-may-lack-required": "A column becomes required, and icemigrate cannot know quickly whether "
    "every row of a branch has a value. Check it, or fill the column there first.",
    "branch-written": "An undo cannot drop a branch, because rows were written to it since and would be "
    "lost. `rollback --partial` leaves the branch.",
    "cannot-adopt": "A Parquet file does not fit the table of `adopt-parquet`; the message gives the reason. "
    "The table and the files are as before.",
    "cannot-import": "A table cannot be imported; the message gives the reason. `--exclude` skips it.",
    "deleted-migration": "A migration of the base is missing in this change, but environments may have "
    "applied it. Restore the file; `revert` writes a migration that undoes it, `squash` replaces several "
    "files with one.",
    "edited-file": "The file of an applied migration has changed. Restore it, and put new changes into a "
    "new migration; if both declare the same, `icemigrate repair` accepts it.",
    "edited-migration": "This change edits a migration of the base that environments may have applied. "
    "Restore it, and put new changes into a new migration.",
    "format-downgrade": "Iceberg cannot downgrade a format version. `rollback --partial` undoes the rest.",
    "history-lost": "This project created a table that its history does not record: the project file names "
    "another history, or the history was dropped. Restore the history, or adopt the table with `adopt: "
    "true`.",
    "interrupted": "A run was interrupted between its first change and its end. `apply` finishes it, "
    "`rollback` undoes it; other migrations of its tables wait.",
    "late-file": "A file has a lower number than the last applied migration, for example after a branch "
    "was merged late, and both change the same facts. `icemigrate rebase` renumbers it.",
    "left-in-part": "A version to redo was rolled back in part, and the tables still have what the "
    "rollback left. Remove that from the file, or from the tables, first.",
    "lock-held": "Another process is applying or rolling back migrations. The plan can be different when "
    "it has finished.",
    "applied-with": "`apply_with` of the environment, or `--apply-with`, commits changes of metadata in "
    "Python. The note names the migrations that need Spark too, and why.",
    "needs-spark": "`apply_with: metadata` never starts Spark, and a part of the migration changes rows, "
    "data files or views, or renames a table on Glue, which only Spark does. Apply it with "
    "`--apply-with auto` or `spark`.",
    "needs-jvm": "The environment has a Spark Connect server, which runs statements, and Python cannot "
    "commit its metadata: a library is missing, or `apply_with` is `spark`. The message says which.",
    "missing-file": "The file of an applied version is missing. Pull the branch that has it, or restore it "
    "from version control.",
    "name-taken": "A dropped column cannot be restored: another column has its name now.",
    "narrow-type": "A type cannot be narrowed, and a dropped column cannot be restored with a narrower "
    "type: files were written with the wider type, and reading them would fail, whatever the values.",
    "may-lack-required": "A required column is restored, or a field becomes required in an optional "
    "struct, and icemigrate cannot know quickly whether every file has it. Leave it optional until all "
    "files were rewritten; for a restored column, a later migration that makes it required checks the rows.",
    "newer-rows": "Rows were written since a migration that changed rows, and restoring the snapshot "
    "before it would lose them. `--discard-new-data` discards them; `--metadata-only` leaves all rows as "
    "they are.",
    "no-branches": "Rows are written on a branch and published when the checks pass, but this catalog does "
    "not support branches, or they stop its snapshot expiry. Change the rows with a job of your own, "
    "between two migrations.",
    "gone": "`rollback --partial` leaves a table out that the migration changed and that the catalog no "
    "longer has, or has as another table.",
    "location": "A table is in another location than recorded, and `--reconcile` cannot move its files. "
    "`icemigrate drift --accept` records the new location.",
    "last-applied": "`rollback` undoes the last applied version. Later ones are rolled back already, so a "
    "repeated `rollback` goes back by one more version. `--only` and `--to` name the version.",
    "no-views": "`keep_view` creates a view, and the catalog has none. Catalogs of type `sqlite` and "
    "`sql` have views, and so have REST servers that list the endpoints of views or have "
    "`view-endpoints-supported: true` in their `properties`.",
    "nothing-to-refill": "`rollback --refill` has no value to restore: each value of a dropped column is "
    "in the data files, or no tag or snapshot has it.",
    "renumbered-migration": "A file of the base branch has another number in this change. Environments that "
    "applied it report the old number as missing. Rename the file back, and renumber the new file.",
    "required-holds-nulls": "A column becomes required, but rows exist in which it is null: Spark would "
    "read 0 there, and `IS NULL` would find nothing. Fill it in an earlier migration.",
    "required-not-in-every-file": "A column becomes required, but some files lack it, also after the "
    "migration fills it: the table could not be read. Make it required in a later migration, after all "
    "files were rewritten.",
    "rows-left-on-branch": "A migration fills or retypes columns in the rows of main, but a branch keeps "
    "its rows: a retyped column is null there. The hint shows the SQL that copies the values.",
    "override-differs": "An override of the environment and the table in the catalog differ. Make them "
    "equal first.",
    "replaced-file": "A file is in the range of a squash. Remove it if it is one of the squashed files; "
    "otherwise it is out of order, and `icemigrate rebase` renumbers it.",
    "required-again": "A column cannot become required again: nulls were written since, or icemigrate "
    "cannot tell, and Spark would read them as 0.",
    "retype-unknown": "A column of type `unknown` contains only nulls. Drop the column and add it again "
    "where its values can be written.",
    "rows-not-loaded": "Spark runs data steps, but cannot load a table with a column of this type. Change "
    "the rows with a job of your own in another engine, between two migrations.",
    "snapshot-expired": "The snapshot that an undo or a reference needs has expired, together with its rows.",
    "sql-not-understood": "Spark rejects an expression or a query of a migration file; no rows were "
    "changed. Fix it at the location shown.",
    "squash-differs": "One file cannot declare the same as the files one after another. Squash through an "
    "earlier version.",
    "squash-digest": "A squashed file has changed since the squash.",
    "squash-partial": "A squash replaces several versions, of which only some are applied here. Apply the "
    "rest first, from the commit before the squash, which still has the files.",
    "squash-range": "Two squashes replace one version. Squash again, from complete files.",
    "squash-rows": "A migration changes rows of an adopted table, which a squash cannot express in one file.",
    "squash-values": "A rollback of a version that a squash replaces left values in a snapshot, and the "
    "record of that version keeps the snapshot. Restore or give up the values before the squash.",
    "values-kept": "A version to redo was rolled back without all values of a dropped column: only a tag "
    "or a snapshot has them. `rollback --only VERSION --refill` restores them before the redo; the redo "
    "leaves the tag, so they can also be restored later.",
    "table-exists": "Another table has the name: no migration of this project created it, or it was "
    "created later. Move it away, or adopt it with `adopt: true`.",
    "table-owned": "Another project owns the table, according to its property `icemigrate.owner`. Change "
    "it in that project, or hand it over: set the property to this project's name.",
    "table-gone": "A recorded table is not in the catalog. Register its last metadata file again, or "
    "declare with `drift --accept` that it is gone.",
    "trash-emptied": "A dropped table cannot be restored: it is no longer in the trash.",
    "trash-taken": "The trash already contains a table with the name that this one would get.",
    "unproved": "A plan does not produce the declared state, which is a bug in icemigrate, found before "
    "any table was changed. Report it; `icemigrate revert` can be a workaround.",
    "unproved-field": "An interrupted run or another client added a field, and the table's older metadata "
    "files, which would show who did, are gone. `rollback --partial` leaves the field.",
    "unreadable-metadata": "The metadata of a table cannot be read. `--exclude` skips the table.",
    "values-rewritten": "The values of a dropped column were rewritten away; a tag can still have them. "
    "`rollback --refill` restores them by row, `--no-refill` leaves them.",
    "version-applied": "Another file with this version is applied, usually from a branch that used the same "
    "number at the same time. Merge that branch, then run `icemigrate rebase`: it renumbers the file that "
    "was never applied. If it is the applied file, edited, restore it.",
    "version-taken": "The number of a new migration is already taken on the target branch. `icemigrate "
    "rebase` renumbers it.",
    "view-breaks": "A view of the catalog uses a column or a table that is dropped or renamed, and fails "
    "afterwards. Replace the view at the same time. Only views in the namespace of the table are searched.",
    "view-exists": "A table cannot be created or renamed to a name that a view of the catalog has.",
    "view-may-break": "A view of the catalog may use what changes: it selects `*`, the name is not certain, "
    "or the type of a column changes. Read its SQL.",
    "view-name-taken": "A view of `keep_view` cannot get its name, because a table or another view has this "
    "name, in the catalog or in the migration files. Give it another `name`, or drop or rename the other "
    "one.",
    "view-not-read": "A view of the catalog may use what changes, but its SQL cannot be parsed, or SQLGlot "
    "is not installed (the extra `impact`). Read its SQL.",
}
