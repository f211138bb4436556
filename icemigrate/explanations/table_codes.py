"""What a table may not be, or should not, whatever leads there; see :mod:`icemigrate.iceberg.validation`."""

from __future__ import annotations

from collections.abc import Mapping

TABLE_CODES: Mapping[str, str] = {
    "ambiguous-path": "A column `a.b` and a field `b` of struct `a` have the same name in Iceberg. Rename "
    "one of them, without a dot.",
    "blank-edged-name": "A name begins or ends with a space, which is invisible in a query.",
    "branch-follows-schema": "A table has one schema for all branches: readers of a branch see the change "
    "at once. Inform them, or let them read a tag, which keeps its schema.",
    "branch-lacks-required": "A field becomes required, but the files of a branch do not have it: Iceberg "
    "fails on a file that lacks a required field, so the branch could no longer be read. Fill it there "
    "first, or declare it with `required: false` for now; drop a branch that you no longer need.",
    "default-needs-newer-format": "Defaults need format version 3. `format_version: 3` upgrades the table, "
    "which cannot be undone.",
    "default-not-read-from-orc": "Iceberg's library cannot apply the default of a new column to rows in "
    "ORC files, and reading the table fails. Remove the default, or rewrite the files as Parquet.",
    "default-of-another-type": "A default is not a value of its column's type.",
    "duplicate-name": "Two fields of one parent have the same name.",
    "duplicate-partition-field": "Two partition fields apply the same transform to the same column.",
    "duplicate-partition-name": "Two partition fields have the same name. Name one of them: `… as "
    "another_name`.",
    "earlier-partition-source-missing": "The migration drops a column by which the table was partitioned "
    "earlier. Iceberg allows it, but then merge-on-read updates, deletes and merges fail, because files of "
    "that partitioning still exist. Keep the column, or use copy-on-write. After `identity` and "
    "`truncate`, later manifests lose the partition values, and delete files can apply to no row: rewrite "
    "the files of that partitioning first (`rewrite: {partitions: old}`).",
    "empty-struct": "A struct has no fields. Neither Parquet nor Spark can read the table then.",
    "identity-partition-in-optional-struct": "A table is partitioned by the identity of a field in an "
    "optional struct. If a query in Spark reads only this field of the struct, a null struct "
    "becomes a struct of nulls. Use another transform, or a column outside the struct.",
    "identifier-in-list-or-map": "A field of a list or a map can occur many times in a row, so it cannot "
    "be an identifier field.",
    "identifier-in-optional-struct": "An identifier field is in an optional struct.",
    "identifier-missing": "The identifier names a field that does not exist. Remove it in the migration "
    "that drops the field.",
    "identifier-optional": "An identifier field is optional. Write `required: true`, or remove it from the "
    "identifier.",
    "identifier-type": "A value of this type cannot identify a row: floating point numbers, structs, lists "
    "and maps.",
    "initial-default-is-final": "The value that older rows read for a column is fixed when the column is "
    "added. Change the default for new rows, or add another column.",
    "metadata-column-name": "Iceberg has metadata columns of this name, such as `_pos`; adding a column "
    "succeeds, but reading the table fails.",
    "name-is-a-path": "A part of a table's name leads to another folder, which can contain files of "
    "other tables: catalogs derive the folder from the name.",
    "name-too-long": "A part of a table's name becomes a folder, and folder names have at most 255 bytes.",
    "names-differ-by-case": "Names differ only in case. Iceberg distinguishes them, but Spark, Hive and "
    "Trino do not, and fail on the table.",
    "names-look-the-same": "Two names look the same: they use different Unicode forms of the same letters.",
    "no-columns": "A table has no columns, and no engine can write it.",
    "partition-name-again": "A partition field gets a name that another one had. Merge-on-read updates and "
    "the metadata tables would fail from then on. Choose a name that the table has not used.",
    "partition-name-is-a-column": "A column gets the name of a current or former partition field. Iceberg "
    "rejects it while the field's source exists.",
    "partition-name-not-portable": "A partition name has characters that some manifest readers reject.",
    "partition-of-several-fields": "A partition field has several sources, which no engine writes yet.",
    "partition-source-in-list-or-map": "Partition sources must be outside lists and maps.",
    "partition-source-missing": "The migration drops a column by which the table is partitioned. Change "
    "`partition_by` in the same migration.",
    "partition-transform": "A transform cannot be applied to a column of this type.",
    "partition-width": "The number of a `bucket` or `truncate` must be at least one.",
    "redundant-partitions": "A table is partitioned by a coarse and a fine time of one column. The finer "
    "one serves filters on both.",
    "reserved-property": "Iceberg reserves this property and rejects it, or silently drops it; or icemigrate "
    "sets it itself.",
    "retention-column-missing": "Row retention uses a column that does not exist.",
    "retention-column-type": "Row retention uses a column that is not a time.",
    "size-out-of-range": "A type has an invalid size, such as a decimal of 39 digits.",
    "sort-source": "A table cannot be sorted by this: the transform does not fit the type, or the column "
    "is in a list or a map.",
    "sort-source-missing": "The migration drops a column by which the table is sorted. Change `sort_by` in "
    "the same migration.",
    "type-needs-newer-format": "The type needs a later format version. `format_version:` upgrades the "
    "table, which cannot be undone.",
    "unknown-is-required": "A column of type `unknown` is always null, so it cannot be required.",
    "unknown-not-written": "A table, a list, a map or a struct contains only `unknown`, which Parquet "
    "cannot store: no row can be written.",
    "unprintable-name": "A name has characters that cannot be typed or seen: control characters, line "
    "breaks, marks that change the direction of writing.",
    "variant-unknown-to-rows": "Iceberg on Spark cannot read a variant column that the newest snapshot "
    "does not have. After the migration, append zero rows: `INSERT INTO t SELECT * FROM t WHERE false`.",
    "void-partition-source-missing": "In format version 1 a dropped partition field stays as a void field, "
    "and without its source Spark cannot write. Keep the column, or restore it with `restore_columns`.",
    "write-distribution": "The mode must be `none`, `hash` or `range`.",
}
