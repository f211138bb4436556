"""Files, searched for uses of what is at affected, through views and models of other files.

A file is parsed only if it contains the name of a changed object: of a table, or of a view or model whose
file contains one, and so on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from icemigrate.sql_impact.affected import DeclaredTables
from icemigrate.sql_impact.name_resolver import DbtNames, NameResolver
from icemigrate.sql_impact.python_file import give_constants
from icemigrate.sql_impact.python_sql import PythonModule
from icemigrate.sql_impact.read_files import ReadFile, find_called_macros
from icemigrate.sql_impact.script import FileUses, Language, Script


def find_sql_uses(
    scripts: Sequence[Script], declared_tables: DeclaredTables, dbt: DbtNames
) -> Iterator[FileUses]:
    """Find the uses of changed objects in all files."""
    names = {
        name[-1]
        for name, table in declared_tables.names()
        if any(s.table == table for s in declared_tables.affected_objects)
    }
    names |= {table for (_, table), parts in dbt.sources.items() if parts[-1] in names}
    resolver = NameResolver(declared_tables, dbt)
    files = [ReadFile(script) for script in scripts] if names else []
    waiting = list(files)
    while names:
        said = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, sorted(names)))})(?!\w)", re.IGNORECASE)
        now = [
            one for one in waiting if said.search(one.script.source.text) or said.search(one.script.compiled)
        ]
        taken = set(map(id, now))
        waiting = [one for one in waiting if id(one) not in taken]
        names = {name for one in now for name in resolver.take(one)} - names
    modules = {one.script.stem: one for one in files if one.script.language is Language.PYTHON}
    _take_importers(waiting, modules, resolver)
    macros = _macros(files)
    found = {id(file): file for file in resolver.files}
    for file in resolver.files:
        relations = file.search(resolver)
        for more in find_called_macros(file, relations, macros, resolver):
            found[id(more)] = more
        for module in _helpers(file, modules):
            if id(module) not in found or module in resolver.helpers:
                resolver.helpers.append(module)
                module.search(resolver, relations)
                found[id(module)] = module
    for file in found.values():
        yield file.found(resolver)


def _take_importers(
    waiting: Sequence[ReadFile], modules: Mapping[str, ReadFile], resolver: NameResolver
) -> None:
    """Take the Python files that name a table at affected by a constant of another file."""
    if not any(file.script.language is Language.PYTHON for file in resolver.files):
        return
    for file in resolver.files:
        give_constants(file, modules)
    for file in waiting:
        if file.script.language is Language.PYTHON and "import" in file.script.source.text:
            texts = give_constants(file, modules)
            if any(resolver.tables_in(text) for text in texts):
                resolver.take(file)


def _helpers(file: ReadFile, modules: Mapping[str, ReadFile]) -> Iterator[ReadFile]:
    """The Python files that a file imports."""
    if isinstance(file.module, PythonModule):
        stems = {stem for pair in file.module.names.imported.values() for stem in pair}
        for stem in sorted(stems & modules.keys()):
            if modules[stem] is not file:
                yield modules[stem]


def _macros(files: Sequence[ReadFile]) -> dict[str, list[ReadFile]]:
    """The files that define a macro of dbt, by its name."""
    found: dict[str, list[ReadFile]] = {}
    for file in files:
        is_defining = file.script.language is Language.SQL and "macro" in file.script.source.text
        if is_defining and file.template is not None:
            for name in file.template.macros:
                found.setdefault(name, []).append(file)
    return found
