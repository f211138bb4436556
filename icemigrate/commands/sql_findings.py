"""Findings about SQL files of a project that use objects which its migrations change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from icemigrate.commands.affected_objects import collect_declared_tables
from icemigrate.commands.dbt_files import DbtFiles
from icemigrate.commands.plan_from_empty import OfflinePlan
from icemigrate.commands.rule_findings import EnabledRule, apply_ignores, enabled_rules
from icemigrate.diagnostics import Diagnostic, Severity, did_you_mean
from icemigrate.errors import extra_hint, os_error_reason
from icemigrate.files.parse.source_text import SourceText, read_text
from icemigrate.files.read.ignore_comments import read_sql_ignores
from icemigrate.frozen import replace
from icemigrate.iceberg.names import format_path
from icemigrate.project.project_values import Project, SqlFiles
from icemigrate.rules import im111_breaks_sql, im112_may_break_sql, im113_retyped_in_sql, im114_sql_not_read
from icemigrate.rules.rule import Rule
from icemigrate.sql_impact.affected import ChangeKind
from icemigrate.sql_impact.dbt_sources import read_dbt_sources
from icemigrate.sql_impact.jinja_values import UNKNOWN, VARIABLE
from icemigrate.sql_impact.query_uses import SqlUse
from icemigrate.sql_impact.script import FileUses, Language, Script
from icemigrate.sql_impact.search import find_sql_uses
from icemigrate.sql_impact.sql_parser import is_sqlglot_installed, sql_dialects
from icemigrate.system.path_patterns import find_matching_files
from icemigrate.system.repository_boundary import OutsideRepository

_BREAKS, _MAY_BREAK = im111_breaks_sql.RULE, im112_may_break_sql.RULE
_RETYPED, _NOT_READ = im113_retyped_in_sql.RULE, im114_sql_not_read.RULE
_SQL_RULE_IDS = frozenset({_BREAKS.id, _MAY_BREAK.id, _RETYPED.id, _NOT_READ.id})
_LANGUAGES = {
    **dict.fromkeys((".sql", ".hql", ".ddl"), Language.SQL),
    ".py": Language.PYTHON,
    ".ipynb": Language.NOTEBOOK,
    **dict.fromkeys((".yml", ".yaml"), Language.YAML),
    **dict.fromkeys(
        (".scala", ".java", ".kt", ".r", ".sh", ".lkml", ".json", ".tf", ".toml", ".conf"), Language.OTHER
    ),
}
"""How a file is searched, by its extension.  Others hold no code that runs on tables."""
_SKIPPED = frozenset({"target", "dbt_packages", "node_modules", "__pycache__"})
"""Folders of generated files, with copies of other files."""
_NOT_SEARCHED = "this may use what migrations change, and was not searched"
_MOST_PATHS = 200
"""Each path of `impact` is compared with every file in its folder."""


def sql_findings(
    project: Project, rehearsed: OfflinePlan, new: frozenset[str] | None
) -> tuple[Diagnostic, ...]:
    """Findings about a project's SQL files.

    :param new: files of the migrations under review; ``None`` for all.
    """
    active = enabled_rules(project.rules)
    if not any(one.rule.id in _SQL_RULE_IDS for one in active):
        return ()
    if not is_sqlglot_installed():
        hint = extra_hint("impact")
        place = project.impact[0].paths[0][1]
        message = "cannot search the SQL of `impact`: SQLGlot is not installed"
        return (Diagnostic("missing-extra", message, place, hint),)
    wrong = tuple(_wrong_dialects(project))
    if wrong:
        return wrong
    reported: list[Diagnostic] = []
    dbt = DbtFiles(project)
    unread: list[Diagnostic] = []
    scripts = tuple(_scripts(project, dbt, reported, unread))
    sources = {source.version: source for source in rehearsed.sources}
    files = ((plan, sources[plan.version].file.path) for plan in rehearsed.plans)
    asked = ((plan, Path(path).name, new is None or path in new) for plan, path in files)
    declared_tables = collect_declared_tables(
        project, rehearsed.state, asked, lambda plan: sources[plan.version].before, is_review=new is not None
    )
    # The position of a column matters to views that exist, which are in catalogs.
    named = tuple(one for one in declared_tables.affected_objects if one.change is not ChangeKind.MOVED)
    declared_tables = replace(declared_tables, affected_objects=named)
    names = dbt.names()
    sources_of_dbt = read_dbt_sources((one.source.path for one in scripts), project.top, names.sources)
    reported += dbt.reported
    if declared_tables.affected_objects:
        reported += [*dbt.stale(), *_unread_files(unread, active)]
    for found in find_sql_uses(scripts, declared_tables, replace(names, sources=sources_of_dbt)):
        reported += _script_findings(found, active, is_looked_at=new is None)
    return tuple(reported)


def _wrong_dialects(project: Project) -> Iterator[Diagnostic]:
    known = sql_dialects()
    for files in project.impact:
        if files.dialect not in known:
            message = f"SQLGlot has no dialect `{files.dialect}`"
            hint = did_you_mean(files.dialect, known) or f"known: {', '.join(sorted(known))}"
            yield Diagnostic("unknown-dialect", message, files.dialect_place, hint)


def _scripts(
    project: Project, dbt: DbtFiles, reported: list[Diagnostic], unread: list[Diagnostic]
) -> Iterator[Script]:
    """The files that a project names, each once; the first setting that matches a file gives its dialect.

    :param unread: takes why a file cannot be read.
    """
    if (count := sum(len(files.paths) for files in project.impact)) > _MOST_PATHS:
        message = f"`impact` names {count:,} paths; at most {_MOST_PATHS} are allowed"
        reported.append(
            Diagnostic("too-large", message, project.impact[0].paths[0][1], "name folders or patterns")
        )
        return
    seen: set[str] = set()
    for files in project.impact:
        for pattern, place in files.paths:
            try:
                named = find_matching_files(project.root, pattern, project.top, _SKIPPED)
            except OutsideRepository as error:
                message = f"cannot read the SQL at `{pattern}`: {os_error_reason(error)}"
                hint = "name files inside the repository"
                reported.append(Diagnostic("outside-repository", message, place, hint))
                continue
            except OSError as error:
                message = f"cannot read the SQL at `{pattern}`: {os_error_reason(error)}"
                reported.append(Diagnostic("unreadable-file", message, place, None, Severity.WARNING))
                continue
            paths = [path for path in named if _is_searched(path, project)]
            if not paths:
                message = f"no SQL, Python, notebook or YAML file matches `{pattern}`"
                reported.append(Diagnostic("no-sql-found", message, place, None, Severity.WARNING))
            for path in paths:
                source = read_text(path, top=project.top) if str(path) not in seen else None
                seen.add(str(path))
                if isinstance(source, Diagnostic):
                    unread.append(source)
                elif source is not None:
                    yield _script(source, path, files, dbt)


def _is_searched(path: Path, project: Project) -> bool:
    """Whether a file may use tables; the project's own files declare them."""
    is_file = (
        project.file is not None and path.parent == project.root and path.name == Path(project.file).name
    )
    is_own = is_file or path.parent == project.migrations_dir
    is_manifest = any(
        files.manifest is not None and path == project.root / files.manifest[0] for files in project.impact
    )
    return path.suffix.lower() in _LANGUAGES and not is_own and not is_manifest


def _script(source: SourceText, path: Path, files: SqlFiles, dbt: DbtFiles) -> Script:
    language = _LANGUAGES[path.suffix.lower()]
    dialect = files.dialect if language in (Language.SQL, Language.YAML) else "spark"
    dbt_project = dbt.projects.around(path)
    variables, compiled, compiled_dialect = {}, "", ""
    if dbt_project is not None:
        variables = dict(dbt_project.variables)
        manifest = dbt.manifest(dbt_project, files)
        if manifest is not None and language is Language.SQL:
            compiled, compiled_dialect = dbt.compiled(manifest, path, source, dialect)
    settings = (files.namespace, variables, compiled, compiled_dialect)
    return Script(source, path.stem, language, dialect, *settings)


def _unread_files(unread: Iterable[Diagnostic], active: tuple[EnabledRule, ...]) -> Iterator[Diagnostic]:
    """One finding for each file that cannot be read, since it may use anything."""
    for enabled in (one for one in active if one.rule.id == _NOT_READ.id):
        for why in unread:
            hint = f"{why.hint}, or review it by hand" if why.hint else "review it by hand"
            message = f"{_NOT_SEARCHED}: {why.message}"
            yield Diagnostic(_NOT_READ.id, message, why.place, hint, enabled.severity)


def _script_findings(
    found: FileUses, active: tuple[EnabledRule, ...], *, is_looked_at: bool
) -> Iterator[Diagnostic]:
    source = found.script.source
    starts = source.line_starts()
    levels = {one.rule.id: one.severity for one in active}
    diagnostics = [
        Diagnostic(rule.id, message, source.place_at(at, starts), hint, levels[rule.id])
        for at, rule, message, hint in (*map(_of_use, found.uses), *_of_unread(found))
        if rule.id in levels
    ]
    yield from apply_ignores(diagnostics, read_sql_ignores(source), active, is_looked_at=is_looked_at)


def _of_use(found: tuple[int, SqlUse]) -> tuple[int, Rule, str, str]:
    at, use = found
    affected = use.affected
    rule = _RETYPED if affected.change is ChangeKind.RETYPED else _BREAKS if use.is_sure else _MAY_BREAK
    through = f", through {' and '.join(f'`{name}`' for name in reversed(use.via))}" if use.via else ""
    if use.by_position:
        says = "`*` includes" if use.written == "*" else "values without a column list rely on"
    elif use.via:
        says = f"`{use.written}` comes from"
    else:
        written = use.written.replace(VARIABLE, "{{ … }}").replace(UNKNOWN, "{{ … }}")
        says = f"`{written}` {'is' if use.is_sure else 'may be'}"
    return at, rule, f"{says} {affected.what}{through}, {affected.says}", _hint(use)


def _hint(use: SqlUse) -> str:
    affected = use.affected
    if use.via and not use.is_sure:
        return f"it fails unless `{use.via[0]}` still provides it under this name"
    if affected.change is ChangeKind.RETYPED:
        return "check that nothing here relies on the narrower type"
    if use.by_position:
        return "list the columns by name"
    if affected.change is ChangeKind.RENAMED:
        write = f"write `{affected.to if not affected.path else format_path((affected.to,))}`"
        return write if use.is_sure else f"{write}, or qualify the column with its table"
    what = "the table" if not affected.path else "it"
    return f"remove {what} here first, or keep it until nothing uses it"


def _of_unread(found: FileUses) -> Iterator[tuple[int, Rule, str, str]]:
    for statement in found.unread:
        if statement.is_sql:
            message = f"cannot parse this SQL, so it was not searched: {statement.why}"
            hint = (
                "check the `dialect` of this path in the project file; if it is right, review the SQL by hand"
            )
        else:
            message = f"{_NOT_SEARCHED}: {statement.why}"
            hint = "review it by hand"
        yield statement.at, _NOT_READ, message, hint
