"""Files, searched for uses of changed objects, through views and models of other files.

A file is parsed only if it contains the name of a changed object: of a table, or of a view or model whose
file contains one, and so on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from icemigrate.sql_impact.affected import DeclaredTables
from icemigrate.sql_impact.jinja_templates import Macro
from icemigrate.sql_impact.name_resolver import DbtNames, NameResolver
from icemigrate.sql_impact.python_file import give_constants
from icemigrate.sql_impact.python_sql import PythonModule
from icemigrate.sql_impact.read_files import ReadFile, find_called_macros
from icemigrate.sql_impact.relations import Relation
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
    modules = _modules(files)
    _take_importers(waiting, modules, resolver)
    macros = _macros(files)
    found = {id(file): file for file in resolver.files}
    reads: dict[int, list[Relation]] = {}
    helpers: dict[int, ReadFile] = {}
    helped: dict[int, list[Relation]] = {}
    for file in resolver.files:
        relations = reads[id(file)] = file.search(resolver)
        for more in find_called_macros(file, relations, macros, resolver):
            found[id(more)] = more
        for module in _helpers(file, modules):
            helped.setdefault(id(module), []).extend(relations)
            helpers[id(module)] = module
    for key, module in helpers.items():
        if key not in reads:
            module.search(resolver, helped[key])
            found[key] = module
    for importer in _search_importers(resolver, modules, reads):
        found[id(importer)] = importer
    for file in found.values():
        yield file.found(resolver)


def _take_importers(
    waiting: Sequence[ReadFile], modules: Mapping[str, Sequence[ReadFile]], resolver: NameResolver
) -> None:
    """Take the Python files that name a changed table by a constant of another file."""
    if not any(file.script.language is Language.PYTHON for file in resolver.files):
        return
    for file in resolver.files:
        give_constants(file, modules)
    for file in waiting:
        if file.script.language is Language.PYTHON and "import" in file.script.source.text:
            texts = give_constants(file, modules)
            if any(resolver.tables_in(text) for text in texts):
                resolver.take(file)


def _search_importers(
    resolver: NameResolver, modules: Mapping[str, Sequence[ReadFile]], reads: Mapping[int, Sequence[Relation]]
) -> Iterator[ReadFile]:
    """Search the Python files that import a file which reads a table, directly or through others.

    What such a file returns belongs to its importers, which need not name the table.
    """
    reading = {
        name: [relation for one in same for relation in reads.get(id(one), ()) if relation.tables]
        for name, same in modules.items()
    }
    waiting = [name for name, relations in reading.items() if relations]
    importers = _importers(modules) if waiting else {}
    given: dict[str, list[Relation]] = {}
    seen = set(waiting)
    while waiting:
        read = waiting.pop()
        for bound, importer, name in importers.get(read, ()):
            assert importer.module is not None
            importer.module.readers.add(bound)
            behind = given.setdefault(name, [])
            behind += [one for one in (*reading[read], *given.get(read, ())) if one not in behind]
            if name not in seen:
                seen.add(name)
                waiting.append(name)
    for name, relations in given.items():
        tables = {table for relation in relations for table in relation.tables}
        paths = (one.path for table in tables for one in resolver.affected_objects(table))
        columns = {path[-1].lower() for path in paths if path}
        for file in modules[name]:
            if file.module is not None and file.module.readers and columns & _words(file):
                file.search(resolver, relations)
                yield file


def _importers(modules: Mapping[str, Sequence[ReadFile]]) -> dict[str, list[tuple[str, ReadFile, str]]]:
    """The files that import each module: the name that they bind, the file, and its own module."""
    found: dict[str, list[tuple[str, ReadFile, str]]] = {}
    for name, file in ((name, one) for name, same in modules.items() for one in same):
        for bound, stems in file.module.names.imported.items() if file.module is not None else ():
            for imported in set(stems) & modules.keys() - {name}:
                found.setdefault(imported, []).append((bound, file, name))
    return found


def _words(file: ReadFile) -> set[str]:
    return set(re.findall(r"\w+", file.script.source.text.lower()))


def _helpers(file: ReadFile, modules: Mapping[str, Sequence[ReadFile]]) -> Iterator[ReadFile]:
    """The Python files that a file imports."""
    if isinstance(file.module, PythonModule):
        stems = {stem for pair in file.module.names.imported.values() for stem in pair}
        for stem in sorted(stems & modules.keys()):
            yield from (one for one in modules[stem] if one is not file)


def _modules(files: Sequence[ReadFile]) -> dict[str, list[ReadFile]]:
    """The Python files by the last names of their modules."""
    found: dict[str, list[ReadFile]] = {}
    for one in files:
        if one.script.language is Language.PYTHON:
            name = one.script.stem
            if name == "__init__":
                name = PurePosixPath(one.script.source.path).parent.name
            found.setdefault(name, []).append(one)
    return found


def _macros(files: Sequence[ReadFile]) -> dict[str, list[tuple[ReadFile, Macro]]]:
    """The macros of dbt with their files, by the names that call them.

    ``adapter.dispatch('pick')`` calls ``spark__pick``, so the part behind ``__`` is a name too.
    """
    found: dict[str, list[tuple[ReadFile, Macro]]] = {}
    for file in files:
        is_defining = file.script.language is Language.SQL and "macro" in file.script.source.text
        if is_defining and file.template is not None:
            for name, macro in file.template.macros.items():
                for called in {name, name.partition("__")[2]} - {""}:
                    found.setdefault(called, []).append((file, macro))
    return found
