"""Identifiers of errors in the text of a file."""

from __future__ import annotations

from collections.abc import Mapping

FILE_CODES: Mapping[str, str] = {
    "bad-format": "A value has the wrong format; the message describes the right one. A pattern must match "
    "the whole value.",
    "bad-merge": "YAML's `<<` takes a mapping or a list of mappings, usually an alias: `<<: *common`.",
    "bad-name": "A dotted name is not valid: a part is empty, a backtick is not closed, or a table has no "
    "namespace. Put a name that is not a plain word in backticks, and double a backtick inside it.",
    "bad-pattern": "A pattern is not a regular expression of Python, cannot be matched in linear time "
    "(look-around, references to groups), or is too long. Double each backslash in double quotes.",
    "bad-row": "A row of the data does not fit the table: a value is not of the type of its column or would "
    "change, a required value is missing, or a record has another number of values than the header. Correct "
    "the row, or keep it in a file with `--bad-rows`.",
    "bad-value": "The key does not accept this value; the message lists the accepted ones.",
    "conflicting-keys": "Two keys contradict each other, or one has no meaning beside the other. Remove one.",
    "control-character": "YAML does not allow this character, which is often copied by accident. Remove "
    "it, or write it as an escape in double quotes.",
    "duplicate-key": "A key occurs twice in one mapping. Most YAML readers silently use the last one. "
    "Remove one of the two.",
    "duplicate-namespace": "A namespace is listed twice.",
    "duplicate-rule": "A rule is set twice in the project file, by its id and by its name. Remove one of "
    "the two.",
    "duplicate-version": "Two files have the same number, or a number is taken on the target branch. "
    "`icemigrate rebase` renumbers the newer file.",
    "empty-file": "A migration file is empty. Remove it, or write the migration.",
    "empty-migration": "A migration declares nothing, such as the file that `icemigrate new` writes. "
    "Declare the change under `tables`, or remove the file.",
    "empty-value": "A list or a text is empty, but needs at least one value. Remove the key instead.",
    "folder-not-read": "Migration files are read only from the folder itself, not from its subfolders. "
    "Move them up.",
    "hidden-character": "A file contains a character that a reviewer does not see. A bidirectional control "
    "or a tag character is an error, because the line displays other text than it contains; a zero-width "
    "character or an unusual space is a warning. Remove it, or write it as an escape in double quotes: the "
    "checksum stays the same.",
    "key-not-plain": "A key is a list or a mapping. Put a text that begins with `{` or `[` in quotes.",
    "left-list-values": "Values left a list since migrations were applied for them. Their tables stay, and "
    "later migrations for the list do not change them. Write a migration with `drop: true` for a table that "
    "is to go.",
    "listed-twice": "A value occurs twice in a list. Remove one of the two.",
    "lock-chain": "A line of the lock file does not follow from the line before it, for example after a "
    "manual merge. Check the order of the files, then run `icemigrate check --fix`.",
    "lock-conflict": "Two branches added migrations at the same time, and Git reports a conflict in the "
    "lock file. Put the new files in the right order (`icemigrate rebase` renumbers them), then run "
    "`icemigrate check --fix`.",
    "lock-kept": "`check --fix` did not update the lock file, because a migration has an error. Fix it, "
    "then run `icemigrate check --fix` again. Findings of rules do not count.",
    "lock-stale": "A migration file differs from its checksum in the lock file: `check` fails (it warns of "
    "a file that is not committed), `plan` and "
    "`apply` warn. If `icemigrate status` shows the file as `edited`, restore it; otherwise run "
    "`icemigrate check --fix` and commit both files.",
    "lock-unreadable": "A line of the lock file is not valid. `icemigrate check --fix` rewrites the lock "
    "file.",
    "lock-written": "`check --fix` wrote the lock file. Commit it with the migrations.",
    "misnamed-file": "The name of a migration file consists of its version, an underscore and a name: "
    "`0003_rename_volume.yaml`.",
    "missing-extra": "A required extra of icemigrate is not installed. The hint shows the `pip` command.",
    "missing-key": "A required key is missing.",
    "missing-variable": "The project file uses `${NAME}`, but the environment variable is not set. Export "
    "it; keep secrets out of the file.",
    "new-list-values": "A list has values for which applied migrations are not applied yet. The plan extends "
    "these migrations: run `icemigrate apply`.",
    "no-git-base": "CI names a base to compare with, but the clone does not contain it. Fetch it: with "
    "GitHub's checkout use `fetch-depth: 0`.",
    "no-migrations": "The migrations folder is empty or missing. `icemigrate new` writes the first file.",
    "no-sql-found": "A pattern under `impact:` matches no SQL file. Patterns are relative to the folder of "
    "the project file.",
    "not-utf8": "A file is not UTF-8. Save it as UTF-8.",
    "out-of-range": "A number is out of range, or a list or map has too many entries.",
    "outside-repository": "A path leads out of the repository, as written or through a link, or into its "
    "`.git` folder, or a link leads to a hidden file. icemigrate neither reads nor writes there, because "
    "anyone who can send a change can send a link. The repository is the folder with `.git`; without one, "
    "the folder of the project file.",
    "placeholder-value": "The values of a list are not in the project file, and `check` reads no catalog and "
    "no log. It checks the entry once, with a placeholder for the value, such as `any_tenant`.",
    "private-variable": "An environment variable becomes part of a name, a location or a property, which "
    "is printed and stored. If its value is not secret, list it under `public_variables` in the project "
    "file.",
    "recursive-alias": "A YAML alias is inside the anchor that it names, so it would never end.",
    "secret-in-file": "A secret is in plain text in the project file. Write `${NAME}` and set NAME in the "
    "environment; then change the secret.",
    "template-name-taken": "A template gives a table the name that another entry declares, for a value of "
    "its list. The template would change that table by accident, so nothing is applied. One of both needs "
    "another name, or the value leaves the list.",
    "several-documents": "A YAML file of icemigrate contains one document. Use one file for each document.",
    "split-value": "A comma ends a value in a flow list, so a term such as `bucket(16, id)` is split in "
    "two. Put the whole term in quotes.",
    "stale-manifest": "`manifest.json` of dbt is older than `dbt_project.yml`, or has other checksums or "
    "macros than the files. `check` reads these files without their compiled code. Run `dbt compile`.",
    "tab-indentation": "YAML allows only spaces for indentation. Replace the tab.",
    "too-deep": "Values are nested too deeply.",
    "too-large": "A file is too large to review: split it into several. Or `impact` names too many paths: "
    "name folders.",
    "too-many-nodes": "The aliases of a file expand to too many values.",
    "template-values": "A command writes a migration file, and the tables of a template are known in an "
    "environment only, since the values of its list are not in the project file.",
    "too-many-tables": "An entry with `for_each`, or all of them together, expand to too many tables or "
    "too much text.",
    "too-much-work": "Each migration compares all columns, properties, branches and tags of its tables. The "
    "sum over all migrations is limited, so that `check` and `plan` end in a short time. A squash replaces "
    "many migrations by one; one large migration can be split.",
    "unknown-alias": "A YAML alias names an anchor that is not defined before it.",
    "unknown-dialect": "SQLGlot has no dialect of this name; the hint names the nearest one.",
    "unknown-environment": "The project file has no environment of this name.",
    "spelling-fixed": "`check --fix` replaced a misspelled key or type with the suggested one.",
    "unknown-key": "An unknown key, usually a typo; the hint names the nearest one. Unknown keys are "
    "errors, because a key that is silently ignored looks as if it worked.",
    "unknown-list": "`for_each` names a list that is neither in the entry nor under `lists:` in the "
    "project file.",
    "unknown-option": "A rule has no option of this name; `icemigrate explain` with the rule's id lists "
    "its options.",
    "unknown-rule": "No rule has this id or name; `icemigrate rules` lists them.",
    "unknown-tag": "A YAML tag such as `!!str` has no meaning here. To write a text, put the value in "
    "quotes.",
    "unknown-variable": "`${…}` in an entry names a variable that its `for_each` does not define.",
    "unknown-version": "A migration test names a version that no migration file has.",
    "unreadable-file": "The system refuses to read the file; the message has the reason.",
    "unreadable-manifest": "`manifest.json` of dbt is not JSON, or not a manifest. `check` searches the "
    "models without it. Run `dbt compile`.",
    "wrong-extension": "A file looks like a migration but does not end with `.yaml` or `.yml`. Rename it.",
    "wrong-type": "The value has the wrong kind: a list, a mapping, a text, a number or a flag.",
    "yaml-syntax": "The file is not YAML; the message shows where parsing stops. Put texts with `: `, ` #` "
    "or a leading bracket in quotes.",
}
