"""What may be wrong with what a migration file says of tables that are declared before it."""

from __future__ import annotations

from collections.abc import Mapping

DECLARATION_CODES: Mapping[str, str] = {
    "adopt-known": "`adopt: true` adopts a table that no file declares yet, but this table is declared. "
    "Remove `adopt`.",
    "age-not-in-minutes": "Spark SQL can express the age of a branch or a tag only in whole minutes. Write "
    "whole minutes, hours or days.",
    "ambiguous-rename": "`diff` found something new and something missing of the same type, which may be a "
    "rename. A rename keeps the values, so no guess is made: pass `--rename OLD=NEW`, or `--no-renames` if "
    "nothing is renamed.",
    "backfill-retyped": "`backfill` sets a column whose values `retype` replaces in the same migration. "
    "Compute the value in `using` of the `retype`, or fill the column in a later migration.",
    "bad-default": "A default is not a value of its column's type.",
    "bad-expression": "An expression of a data step is not valid, or would change the statement around it: "
    "it is empty, is more than one expression, contains a comment, a `;` or a `where`, or leaves a quote "
    "or a bracket open.",
    "bad-path": "A part of a list or a map cannot be set alone. Set the whole column.",
    "bad-position": "`first` and `after` of several columns contradict each other, or name a column that "
    "does not exist.",
    "bad-term": "A term of `partition_by` or `sort_by` is not valid. Examples: `day(at)`, `bucket(16, id) "
    "as name`, `price desc nulls last`.",
    "bad-type": "A type is not valid. Use Iceberg's types (`long`, `decimal(18,6)`, `struct<a: int, b: "
    "list<string>>`); Spark's unambiguous names are accepted too.",
    "bad-query": "The query of a check is not valid: it is empty, contains several statements, or does "
    "more than read.",
    "check-always-fails": "A query such as `select count(*) from {table}` always returns one row; a check "
    "without `gives` expects no rows. Add `gives: 0`, or select the wrong rows instead of their number.",
    "destructive": "A consent of `allow`: the change destroys data, or hides it from readers. `allow: "
    "[destructive market_data.trades.note]` permits it for one column.",
    "drop-part": "Parts of lists and maps cannot be dropped alone. Drop the whole column.",
    "dropped-twice": "A column is dropped together with a column that contains it. Name only the outer "
    "column.",
    "duplicate-column": "A column occurs twice in one entry or in one step.",
    "duplicate-table": "A table occurs twice in one file. Write one entry for it, or use two files.",
    "first-mention": "The first mention of a table creates it, so it has nothing to rename, drop, restore "
    "or check yet. Check its name.",
    "incompatible": "A consent of `allow`: readers or writers that rely on the old table fail after the "
    "change, or need an update. `allow: [incompatible market_data.trades.price]` permits it for one column.",
    "irreversible": "A consent of `allow`: no rollback can undo the change. `allow: [irreversible "
    "market_data.trades]` permits it for one table.",
    "keep-view-age": "`keep_view` keeps a view for at most 100 years: `36525d`.",
    "keep-view-column": "A view with the old names reads a column that the table does not have under "
    "that name, because another client renamed or dropped it. `icemigrate drift --accept` writes a "
    "migration that declares that.",
    "keep-view-namespace": "A table moves to another namespace, and a view of `keep_view` would stay in "
    "the old one. Drop the views of the table in an earlier migration: `keep_view: null`.",
    "keep-view-renames": "`keep_view` gives columns their old names, so it needs `renames` of columns "
    "in the same entry. A view cannot give a nested field its old name: rename nested fields in another "
    "migration.",
    "keep-view-unreadable": "Spark cannot read the table, so it cannot create or read a view of it. Drop the "
    "views of the table with `keep_view: null`.",
    "key-required": "The key of a map is always required.",
    "location-changed": "The desired state of `diff` has another `location` than the declared table. No "
    "migration moves a table: remove the key.",
    "location-fixed": "The location of a table is chosen when the table is created. Remove `location`.",
    "main-branch": "The branch `main` is the table itself: it always exists, is always a branch, and never "
    "expires. Its snapshot retention can be set: `branches: {main: {retention: {snapshots: {max_age: "
    "30d}}}}`.",
    "map-key": "The key of a map cannot change, because Iceberg compares maps by it. Add a new column with "
    "the map that you need.",
    "metadata-table-name": "Spark reads `db.trades.snapshots` as the snapshots of a table `db.trades`, and "
    "in the same way `history`, `files`, `partitions`, `branch_…` and others. Such a table cannot exist next "
    "to the table with the name of its namespace. Choose another name.",
    "missing-allow": "The migration destroys data, breaks readers or cannot be undone, and its file does "
    "not consent to it. The hint shows the `allow` line to add; it is reviewed with the file.",
    "name-in-use": "A rename uses a name that another column or table has. Rename that one too (a swap is "
    "possible), or drop it in the same file.",
    "near-name": "A new table has almost the same name as a declared table, which is usually a typo. If it "
    "is intended, ignore the finding with a reason.",
    "never-dropped": "`restore_columns` names a column that no migration dropped.",
    "no-kept-view": "`keep_view: null` drops the views of a table, and no migration keeps one. Remove "
    "the key.",
    "no-match": "A pattern matches no table that is declared before the migration. It must match the whole "
    "name, including the namespace: `bronze.*`.",
    "no-part-of-that": "A list has an `element`, a map has a `key` and a `value`, a struct has `fields`; "
    "this type has another part.",
    "no-promotion": "Iceberg changes a type only if every written value can be read as the new type "
    '(specification, "Schema Evolution"): `int` to `long`, `float` to `double`, a decimal to more digits '
    "before the point, and in format version 3 `date` to `timestamp`. For other types use `retype`: it "
    "rewrites the rows, runs your checks, and swaps the columns.",
    "no-such-snapshot": "A branch or a tag is to point to a snapshot that the table does not have: its id is "
    "unknown, the time is before the first snapshot, the branch does not exist, or the migration creates the "
    "table. The hint names the metadata table that lists those that there are.",
    "nowhere-to-describe": "Iceberg stores no description of a list's element or of a map's key and value. "
    "Describe the column instead.",
    "pin-before-rows": "A branch or a tag is to point to the newest snapshot of `main`, to which the same "
    "plan writes rows first. Move it in a later migration, and apply the earlier ones first with `--to`.",
    "pin-changed": "The desired state of `diff` pins a branch or a tag to another snapshot. `diff` does not "
    "write that: move it in a migration of its own.",
    "promotion-changes-partitions": "The partition transform of this column gives other values for the "
    "wider type, so rows would be searched in the wrong partition. Remove the partition field first.",
    "promotion-keeps-transform": "The table is partitioned or sorted by the year, month or day of the "
    "column. The format allows this promotion, but Iceberg's library rejects it. Remove the term in the "
    "migration that changes the type, and add it again in the next one; write no rows in between.",
    "promotion-needs-v3": "This promotion needs format version 3. `format_version: 3` upgrades the table, "
    "which cannot be undone.",
    "promotion-not-read": "The format allows the promotion, but Iceberg's library reads existing rows "
    "wrongly. Use `retype`, which rewrites them.",
    "property-without-column": "A property of a column, such as its metrics or its bloom filter, names a "
    "column that does not exist.",
    "purge-unsupported": "A column cannot be erased from data files yet. Without `purge` it is dropped, "
    "and its values stay in data files until these are rewritten and expired.",
    "reference-kind": "A branch cannot become a tag, nor a tag a branch. Drop it first, in a migration of "
    "its own.",
    "refill-part": "Values can be restored only for whole columns, not for a part of one.",
    "rename-other-parent": "A rename moves a field out of its struct. Iceberg can move a field only within "
    "its parent.",
    "rename-part": "The format fixes the names of the parts of lists and maps: `element`, `key`, `value`.",
    "rename-to-itself": "A rename has the same old and new name. Remove it.",
    "renamed-and-dropped": "A column is renamed and dropped in one file. Drop it by its old name.",
    "reserved-reference": "A branch or a tag has a name that icemigrate reserves "
    "(`icemigrate-market-0002`, `icemigrate-market-0002-before`, `icemigrate-market-0002-released`, "
    "`icemigrate-market-0002-data`, `icemigrate-fence`, `icemigrate-market-refill`). Choose another name.",
    "reserved-table": "The table is reserved for icemigrate: a project's history, or a table in the trash. "
    "Choose another name; `history:` in the project file names the history.",
    "retype-default": "A retyped column has a default that is not a value of the new type. Declare a new "
    "default.",
    "retype-nested": "A part of a list or a map cannot be retyped alone. Retype the whole list or map: in "
    "`using`, use `transform` for a list and `transform_values` for a map.",
    "retype-to-itself": "A column is retyped to the type that it already has. Remove the `retype`.",
    "retype-twice": "Two retypes in one entry overlap: one is inside the other. Retype only the outer "
    "column; its `using` computes everything in it.",
    "retype-unneeded": "Iceberg promotes this type without rewriting rows. Set the new `type` instead of "
    "`retype`.",
    "rows-needed": "A change of a column needs rows to be read or written, which the commands of `table` "
    "do not do. Declare it in a migration file.",
    "said-twice": "A property sets the same as a dedicated key such as `retention`. Keep one of the two.",
    "table-mark-missing": "The query of a check does not read the table's rows. Write `{table}` instead of "
    "the table's name.",
    "type-missing": "A new column needs a type.",
    "unclear-type": "A type of another tool has no equal in Iceberg, or several: `timestamp` has a time zone "
    "in Spark and none in Trino. A column that exists keeps its type if that may be meant; for a new one, "
    "write the type that the message names.",
    "unknown-column": "A name is not a column of the table at this point of the migration. Only the left "
    "side of `renames` uses old names.",
    "unknown-format-version": "Iceberg has no such format version.",
    "unknown-property": "No migration declared the property to remove. As a rule of `check`, IM501: a "
    "property looks like one of Iceberg's but is unknown.",
    "unknown-reference": "No migration declared the branch or the tag to remove.",
    "unknown-table": "No table has this name, declared or in the catalog; the hint names the nearest one.",
}
