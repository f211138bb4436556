"""What may be wrong with a file before anybody asks what it declares."""

from __future__ import annotations

from collections.abc import Mapping

READING: Mapping[str, str] = {
    "bad-format": "A value is not written as its key wants it; the message says how. For a pattern the "
    "whole value has to fit.",
    "bad-merge": "YAML's `<<` takes a mapping or a list of mappings, mostly by an alias: `<<: *common`.",
    "bad-name": "A dotted name cannot be read: a part is empty, a backtick is not closed, or a table has "
    "no namespace. A name that is not a plain word stands in backticks, a backtick inside is doubled.",
    "bad-pattern": "A pattern is no regular expression of Python, or one that cannot be matched in linear "
    "time (look-around, references to groups) or is too long. A backslash in double quotes is written "
    "twice.",
    "bad-value": "A value is none of those that the key takes; the message names them.",
    "conflicting-keys": "Two keys exclude each other, or one has no meaning beside the other. Keep the one "
    "that is meant.",
    "control-character": "A character that YAML does not allow, often copied along unseen. Remove it, or "
    "write it as an escape in double quotes.",
    "duplicate-key": "A key stands twice in one mapping. Most readers of YAML take the last in silence; "
    "here one of the two has to go.",
    "duplicate-namespace": "A namespace is listed twice.",
    "duplicate-rule": "A rule is set twice in the project file, by its id and by its name. Keep one of the "
    "two.",
    "duplicate-version": "Two files begin with the same number, or a number is taken on the branch that "
    "the change goes to. `icemigrate rebase` renumbers the newer one.",
    "empty-file": "A migration file says nothing. Remove it, or write what it is for.",
    "empty-value": "A list or a text is empty where at least one value is needed. Leave the key out instead.",
    "folder-not-read": "Migration files are read from the folder itself, not from folders in it. Move them "
    "up.",
    "hidden-character": "A file holds a character that a reviewer does not see. A bidirectional control or a "
    "tag character is an error, since the line shows other text than it holds; a zero-width character or an "
    "odd blank is a warning. Remove it, or write it as an escape in double quotes: the checksum stays.",
    "key-not-plain": "A key is a list or a mapping. A text that begins with `{` or `[` stands in quotes.",
    "listed-twice": "The same thing stands twice in a list. Keep one of the two.",
    "lock-chain": "A line of the lock file does not follow from the one before it, as after a merge by "
    "hand. `icemigrate check --fix` writes the lock file anew, once the order of the files is right.",
    "lock-conflict": "Two branches added migrations at the same time, and the lock file shows it as a "
    "conflict of Git. See that the new files are in the right order (`icemigrate rebase` renumbers), then "
    "`icemigrate check --fix`.",
    "lock-kept": "The lock file was not written, since migrations have errors. Mend them, then `check --fix` "
    "writes it.",
    "lock-stale": "A migration file says something else than the lock file notes. After an edit that is "
    "meant, `icemigrate check --fix` writes the lock file; commit both.",
    "lock-unreadable": "A line of the lock file is none. `icemigrate check --fix` writes the lock file anew.",
    "lock-written": "`check --fix` wrote the lock file. Commit it with the migrations.",
    "misnamed-file": "A migration file begins with its version, then an underscore and a name: "
    "`0003_rename_volume.yaml`.",
    "missing-extra": "A part of icemigrate is not installed that is needed here. The hint holds the line "
    "for `pip`.",
    "missing-key": "A key is missing without which the rest says nothing.",
    "missing-variable": "The project file names `${NAME}`, and no variable of the process environment is "
    "called so. Export it; what stands in a file should not be the secret itself.",
    "no-git-base": "CI says what the change is compared with, and the clone does not have it. Fetch it: "
    "with GitHub's checkout by `fetch-depth: 0`.",
    "no-migrations": "The folder of migrations is empty or is not there. `icemigrate new` writes the first "
    "file.",
    "no-sql-found": "A pattern under `impact:` fits no file of SQL. See that it begins at the project "
    "file's folder.",
    "not-utf8": "A file is not UTF-8. Save it as UTF-8.",
    "out-of-range": "A number is smaller or larger than it may be, or a list or map has too many entries.",
    "outside-repository": "A path leads out of the repository, as it is written or by a link, or into its "
    "folder `.git`, or a link leads to a hidden file. icemigrate neither reads nor writes there, since "
    "anyone who can send a change can send a link. The repository begins at the folder with `.git`; without "
    "one it is the folder of the project file.",
    "private-variable": "A variable of the environment becomes part of a name, a location or a property, "
    "which is printed and stored for all to see. List it under `public_variables` of the project file if its "
    "value is no secret.",
    "recursive-alias": "A YAML alias stands inside the anchor that it names, so that it would have no end.",
    "secret-in-file": "A secret stands in the project file for all to read. Write `${NAME}` and set NAME "
    "in the process environment; then change the secret.",
    "several-documents": "A YAML file of icemigrate holds one document. Give each a file of its own.",
    "split-value": "A comma in a flow list ends a value, so that a term such as `bucket(16, id)` falls "
    "into two. Put the whole term in quotes.",
    "tab-indentation": "YAML indents with blanks only. Replace the tab.",
    "too-deep": "Values are nested deeper than any real file needs.",
    "too-large": "A file is larger than any that people review: split it into several. Or `impact` names too "
    "many paths: name folders.",
    "too-many-nodes": "The aliases of a file stand for more values than any real file holds.",
    "too-many-tables": "An entry with `for_each`, or all of them together, stand for too many tables or for "
    "too much text.",
    "unknown-alias": "A YAML alias names an anchor that is not written above it.",
    "unknown-dialect": "SQLGlot knows no dialect of this name; the hint names the nearest one.",
    "unknown-environment": "The project file has no environment of this name.",
    "unknown-key": "A key that has no meaning here, mostly a slip; the hint names the nearest one. A key "
    "that were passed over in silence would be taken for done.",
    "unknown-list": "`for_each` names a list that neither the entry nor `lists:` in the project file has.",
    "unknown-option": "A rule goes by no option of this name; `icemigrate explain` with the rule's id "
    "lists them.",
    "unknown-rule": "There is no rule of this id or name; `icemigrate rules` lists them.",
    "unknown-tag": "A YAML tag such as `!!str` has no meaning here. Write the value in quotes where it is "
    "to be a text.",
    "unknown-variable": "`${…}` in an entry names a variable that its `for_each` does not give.",
    "unreadable-file": "The system does not let the file be read; the message has its reason.",
    "wrong-extension": "A file looks like a migration and ends otherwise than `.yaml` or `.yml`. Rename it.",
    "wrong-type": "A list, a mapping, a text, a number or a flag stands where another of these is wanted.",
    "yaml-syntax": "The file is no YAML; the message says where it stops being one. Texts with `: `, ` #` "
    "or a leading bracket stand in quotes.",
}
