"""What a table may not be, or should not, whatever leads there; see :mod:`icemigrate.model.legality`."""

from __future__ import annotations

from collections.abc import Mapping

TABLES: Mapping[str, str] = {
    "ambiguous-path": "A column `a.b` and a field `b` of struct `a` are one name to Iceberg. Give one of "
    "them a name without a dot.",
    "blank-edged-name": "A name begins or ends with a blank, which nobody sees in a query.",
    "branch-follows-schema": "A table has one schema for all branches: who reads a branch sees the change "
    "at once. Tell them, or let them read a tag, which keeps its schema.",
    "branch-lacks-required": "A field becomes required that the files of a branch do not have: Iceberg "
    "fails on a file that lacks a required field, so nobody could read the branch any more. Fill it there "
    "first, or declare it with `required: false` for now; drop a branch that nobody needs.",
    "default-needs-newer-format": "Defaults are of format version 3. `format_version: 3` upgrades the "
    "table, for which there is no way back.",
    "default-not-read-from-orc": "Iceberg's library cannot fill in the default of a new column where rows "
    "lie in ORC files, and reading the table fails. Leave the default out, or have the files written anew "
    "as Parquet.",
    "default-of-another-type": "A default is no value of its column's type.",
    "duplicate-name": "Two fields of one parent have one name.",
    "duplicate-partition-field": "Two partition fields are the same transform of the same column.",
    "duplicate-partition-name": "Two partition fields have one name. Name one of them: `… as another_name`.",
    "earlier-partition-source-missing": "A column goes that the table was partitioned by before. Iceberg "
    "lets it, and updates, deletes and merges by merge-on-read fail from then on, since files of that "
    "partitioning are still known. Keep the column, or have the table write by copy-on-write. After "
    "`identity` and `truncate`, manifests that are written later lose the partition values, and delete files "
    "may apply to no row: write the files of that partitioning again first (`rewrite: {partitions: old}`).",
    "empty-struct": "A struct has no field left. Neither Parquet nor Spark reads the table then.",
    "identity-partition-in-optional-struct": "A table is partitioned by a field, as it is, of a struct "
    "that may be null. Where a query reads nothing else of the struct, Spark takes one that is null for "
    "one whose fields are null. Partition by another transform of it, or by a column outside.",
    "identifier-in-list-or-map": "A field of a list or a map may occur many times in a row, so it "
    "identifies none.",
    "identifier-in-optional-struct": "An identifier field stands in a struct that may be null.",
    "identifier-missing": "The identifier names a field that is not there. Take it out in the migration "
    "that drops the field.",
    "identifier-optional": "An identifier field may be null. Write `required: true`, or take it out.",
    "identifier-type": "A value of this type identifies no row: floating point numbers, structs, lists and "
    "maps.",
    "initial-default-is-final": "What older rows read for a column is fixed when it is added. Change the "
    "default for new rows, or add another column.",
    "metadata-column-name": "Iceberg has metadata columns of this name, such as `_pos`; adding one passes, "
    "and reading the table fails.",
    "name-is-a-path": "A part of a table's name leads to another folder, where files of others may lie: "
    "catalogs put files where the name says.",
    "name-too-long": "A part of a table's name becomes a folder, and folders have names of at most 255 "
    "bytes.",
    "names-differ-by-case": "Names differ in case alone. Iceberg tells them apart; Spark, Hive and Trino "
    "do not, and fail on the table.",
    "names-look-the-same": "Two names look the same: their letters are written in different ways of Unicode.",
    "no-columns": "A table has no column, and no engine can write it.",
    "partition-name-again": "A partition field gets a name that another one had. Updates by merge-on-read "
    "and the metadata tables would fail for good. Give it a name that the table has not had.",
    "partition-name-is-a-column": "A column gets the name of a partition field that is or was there. "
    "Iceberg refuses it for as long as the field's source is there.",
    "partition-name-not-portable": "A partition name has characters that some readers of manifests reject.",
    "partition-of-several-fields": "A partition field has several sources, which no engine writes yet.",
    "partition-source-in-list-or-map": "A table is partitioned by fields outside of lists and maps.",
    "partition-source-missing": "A column goes that the table is partitioned by. Write `partition_by` "
    "without it in the same migration.",
    "partition-transform": "A transform cannot be applied to a column of this type.",
    "partition-width": "The number of a `bucket` or `truncate` is one or more.",
    "redundant-partitions": "A table is partitioned by a coarse and a fine time of one column. The finer "
    "one serves filters on both.",
    "reserved-property": "Iceberg keeps this property for itself and refuses it, or drops it in silence.",
    "retention-column-missing": "Rows are kept for a time by a column that is not there.",
    "retention-column-type": "Rows are kept for a time by a column that holds no time.",
    "size-out-of-range": "A type with a size that does not exist, such as a decimal of 39 digits.",
    "sort-source": "A table cannot be sorted by this: the transform does not fit, or it stands in a list "
    "or a map.",
    "sort-source-missing": "A column goes that the table is sorted by. Write `sort_by` without it in the "
    "same migration.",
    "type-needs-newer-format": "The type is of a later format version. `format_version:` upgrades the "
    "table, for which there is no way back.",
    "unknown-is-required": "A column of type `unknown` is always null, so it cannot be required.",
    "unknown-not-written": "A table, a list, a map or a struct holds nothing but `unknown`, for which "
    "Parquet has no place: no row can be written.",
    "unprintable-name": "A name has characters that nobody can type or see: control characters, line "
    "breaks, marks that turn the direction of writing.",
    "variant-unknown-to-rows": "Iceberg on Spark cannot read a variant that the newest snapshot knows "
    "nothing of. Append no rows when it is done: `INSERT INTO t SELECT * FROM t WHERE false`.",
    "void-partition-source-missing": "In format version 1 a dropped partition field stays as a void one, "
    "and without its source Spark can write no row. Keep the column, or bring it back with "
    "`restore_columns`.",
    "write-distribution": "The mode is none of `none`, `hash` and `range`.",
}
