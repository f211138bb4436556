"""What may be wrong with what a migration file says of tables that are declared before it."""

from __future__ import annotations

from collections.abc import Mapping

SAYING: Mapping[str, str] = {
    "adopt-known": "`adopt: true` takes a table in that no file declared yet, and this one is declared. "
    "Leave it out.",
    "age-not-in-minutes": "Spark SQL has no words for the age of a branch or a tag that is no whole number "
    "of minutes. Write whole minutes, hours or days.",
    "backfill-retyped": "`backfill` sets a column whose values `retype` takes away in the same migration. "
    "Give the value by `using` of the `retype`, or fill the column in a later migration.",
    "bad-default": "A default is no value of its column's type.",
    "bad-expression": "An expression of a data step is none, or would change the statement that it is put "
    "into: it is empty, is more than one, has a comment, a `;` or a `where` in it, or leaves a quote or a "
    "bracket open.",
    "bad-path": "A part of a list or a map cannot be set alone. Set the column as a whole.",
    "bad-position": "`first` and `after` of several columns exclude each other, or name a column that is "
    "not there.",
    "bad-term": "A term of `partition_by` or `sort_by` cannot be read: `day(at)`, `bucket(16, id) as "
    "name`, `price desc nulls last`.",
    "bad-type": "A type cannot be read. Types are Iceberg's (`long`, `decimal(18,6)`, `struct<a: int, b: "
    "list<string>>`); Spark's unambiguous names are taken too.",
    "bad-query": "The query of a check is none: it is empty, holds several statements, or does something "
    "else than ask.",
    "drop-part": "The parts of lists and maps cannot be dropped alone. Drop the whole column.",
    "dropped-twice": "A column is dropped together with one that it stands in. Name the outer one alone.",
    "duplicate-column": "A column stands twice in one entry or in one step.",
    "duplicate-table": "A table stands twice in one file. Write all about it in one entry, or in two files.",
    "first-mention": "The first mention of a table makes it, so that nothing can be renamed, dropped, "
    "brought back or asked in it yet. Is its name right?",
    "key-required": "The key of a map is always required.",
    "location-fixed": "The location of a table is chosen when it is made. Leave `location` out.",
    "main-branch": "The branch `main` is the table itself: always there, always a branch, and never "
    "expired. How long its snapshots are kept can be said: `branches: {main: {retention: {snapshots: "
    "{max_age: 30d}}}}`.",
    "map-key": "The key of a map cannot change, since Iceberg compares maps by it. Make a new column with "
    "the map that you need.",
    "missing-allow": "The migration destroys something, breaks readers or has no way back, and its file "
    "does not say that this is meant. The hint holds the line of `allow` to add; it is reviewed with the "
    "file.",
    "name-in-use": "A rename leads to a name that another column or table has. Rename that one too, which "
    "may be a swap, or drop it in the same file.",
    "near-name": "A new table has nearly the name of a declared one, which is mostly a slip. Where it is "
    "meant, ignore it with a reason.",
    "never-dropped": "`restore_columns` names a column that no migration dropped.",
    "no-match": "A pattern fits no table that is declared before the migration. The whole name has to fit, "
    "the namespace included: `bronze.*`.",
    "no-part-of-that": "A list has an `element`, a map a `key` and a `value`, a struct `fields`; another "
    "part is given here.",
    "no-promotion": "Iceberg changes a type only where every value that was written can be read as the new "
    'one (specification, "Schema Evolution"): `int` to `long`, `float` to `double`, a decimal to more '
    "digits before the point, and in format version 3 `date` to `timestamp`. `retype` in a migration file "
    "does the rest: it writes the rows anew, asks your checks, and swaps the columns.",
    "nowhere-to-describe": "Iceberg keeps no description of a list's element or a map's key and value. Say "
    "it in the description of the column.",
    "promotion-changes-partitions": "The column is partitioned by a transform that gives other values for "
    "the wider type, so that rows would be looked for in the wrong place. Take the partition field out "
    "first.",
    "promotion-keeps-transform": "The table is partitioned or sorted by the year, month or day of the "
    "column. The format lets that stay, and Iceberg's library refuses it. Take the term out in the migration "
    "that gives the column its type, and put it back in the next: until then there are no rows to lay out.",
    "promotion-needs-v3": "Format version 3 lets this type become that one, and the table is of an earlier "
    "one. `format_version: 3` upgrades it, for which there is no way back.",
    "promotion-not-read": "The format allows the promotion, and Iceberg's library reads the rows that are "
    "there wrongly. `retype` writes them anew.",
    "property-without-column": "A property of a column, such as its metrics or its bloom filter, names a "
    "column that is not there.",
    "purge-unsupported": "A column cannot be erased from data files yet. Without `purge` it is dropped, "
    "and its values stay in the files that hold them until these are rewritten and expired.",
    "reference-kind": "A branch cannot become a tag, nor a tag a branch. Drop it first, in a migration of "
    "its own.",
    "refill-part": "Values come back for whole columns, not for a part of one.",
    "rename-other-parent": "A rename leads out of its struct. Iceberg moves a field within its parent alone.",
    "rename-part": "The format itself names the parts of lists and maps: `element`, `key`, `value`.",
    "rename-to-itself": "A rename leads to the name that is there already. Leave it out.",
    "renamed-and-dropped": "A column is renamed and dropped in one file. Drop it by its old name.",
    "reserved-reference": "A branch or a tag has a name that icemigrate gives its own "
    "(`icemigrate-market-0002`, `icemigrate-market-0002-before`, `icemigrate-market-0002-data`, "
    "`icemigrate-fence`, `icemigrate-market-refill`). Choose another one.",
    "reserved-table": "The table is icemigrate's own: a project's history, or what waits in the trash. "
    "Name another one; where the history is kept, `history:` in the project file says.",
    "retype-default": "A column that is retyped has a default, which is no value of the new type. Say it "
    "anew.",
    "retype-nested": "A part of a list or a map cannot be made anew alone. Retype the list or the map as a "
    "whole: in its `using`, `transform` goes over a list and `transform_values` over a map.",
    "retype-to-itself": "A column is retyped to the type that it has. Leave it out.",
    "retype-twice": "Of two retypes in one entry, one is of a part of what the other makes anew. Retype "
    "the outer one alone: its `using` gives all that is in it.",
    "retype-unneeded": "Iceberg changes this type by itself, without writing a row. Give the column the "
    "new type.",
    "said-twice": "A property says what a key of its own says as well, such as `retention`. Keep one of "
    "the two.",
    "table-mark-missing": "The query of a check does not say where the rows stand that it asks about. "
    "Write the mark of the table in its place.",
    "tag-without-snapshot": "A tag names a snapshot, and a table without rows has none. Tag it in a later "
    "migration, or write rows first.",
    "type-missing": "A column that is not declared yet needs a type.",
    "unknown-column": "A name is none of the table's columns at this place of the migration. Every name "
    "outside the left side of `renames` is a new one.",
    "unknown-format-version": "There is no such format version of Iceberg.",
    "unknown-property": "No migration declared the property that is to be removed. As a rule of `check`, "
    "IM501: a property is none that Iceberg knows, and looks like one.",
    "unknown-reference": "No migration declared the branch or the tag that is to be removed.",
    "unknown-table": "There is no table of this name, declared or in the catalog; the hint names the "
    "nearest one.",
}
