"""The SQL that a project names, searched for what its migrations change, as findings with places."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from icemigrate.app.offline import Rehearsed
from icemigrate.app.ruling import Active, active_rules, after_ignores
from icemigrate.app.stakes import lake_of
from icemigrate.checks import im111_breaks_sql, im112_may_break_sql, im113_retyped_in_sql, im114_sql_not_read
from icemigrate.checks.base import Rule
from icemigrate.declare.ignores import read_sql_ignores
from icemigrate.declare.source import Source, read_source
from icemigrate.diagnostics import Diagnostic, Severity, did_you_mean
from icemigrate.errors import extra_hint, why
from icemigrate.files.boundary import OutsideRepository
from icemigrate.files.patterns import matching
from icemigrate.frozen import replace
from icemigrate.impact.dbt_sources import read_dbt_sources
from icemigrate.impact.parsing import dialects, is_there
from icemigrate.impact.reading import Use
from icemigrate.impact.search import Found, Script, search
from icemigrate.impact.stakes import Fate
from icemigrate.model.names import format_path
from icemigrate.project.values import Project, SqlFiles

_BREAKS, _MAY_BREAK = im111_breaks_sql.RULE, im112_may_break_sql.RULE
_RETYPED, _NOT_READ = im113_retyped_in_sql.RULE, im114_sql_not_read.RULE
_OWN = frozenset({_BREAKS.id, _MAY_BREAK.id, _RETYPED.id, _NOT_READ.id})
_EXTENSIONS = frozenset({".sql", ".py"})
_SKIPPED = frozenset({"target", "dbt_packages", "node_modules", "__pycache__"})
"""Folders that tools fill, with copies of what stands elsewhere."""
_MOST_PATHS = 200
"""Each path of `impact` is compared with every file below its folder."""


def sql_findings(
    project: Project, rehearsed: Rehearsed, new: frozenset[str] | None
) -> tuple[Diagnostic, ...]:
    """What the SQL of a project has against its migrations.

    :param new: files of the migrations under review; ``None`` where all are looked at.
    """
    active = active_rules(project.rules)
    if not any(one.rule.id in _OWN for one in active):
        return ()
    if not is_there():
        hint = extra_hint("impact")
        place = project.impact[0].paths[0][1]
        message = "the SQL of `impact` cannot be searched: SQLGlot is not installed"
        return (Diagnostic("missing-extra", message, place, hint),)
    wrong = tuple(_wrong_dialects(project))
    if wrong:
        return wrong
    told: list[Diagnostic] = []
    scripts = tuple(_scripts(project, told))
    files = ((plan, rehearsed.folding.file_of(plan).path) for plan in rehearsed.plans)
    asked = ((plan, Path(path).name, new is None or path in new) for plan, path in files)
    lake = lake_of(project, rehearsed.state, asked, rehearsed.folding.before, is_review=new is not None)
    for found in search(scripts, lake, read_dbt_sources((one.source.path for one in scripts), project.top)):
        told += _told(found, active, is_looked_at=new is None)
    return tuple(told)


def _wrong_dialects(project: Project) -> Iterator[Diagnostic]:
    known = dialects()
    for files in project.impact:
        if files.dialect not in known:
            message = f"SQLGlot knows no dialect `{files.dialect}`"
            hint = did_you_mean(files.dialect, known) or f"known: {', '.join(sorted(known))}"
            yield Diagnostic("unknown-dialect", message, files.dialect_place, hint)


def _scripts(project: Project, told: list[Diagnostic]) -> Iterator[Script]:
    """The files that a project names, each once; the first to name one says its dialect."""
    if (count := sum(len(files.paths) for files in project.impact)) > _MOST_PATHS:
        message = f"`impact` names {count:,} paths, and at most {_MOST_PATHS} are searched"
        told.append(
            Diagnostic("too-large", message, project.impact[0].paths[0][1], "name folders or patterns")
        )
        return
    seen: set[str] = set()
    for files in project.impact:
        for pattern, place in files.paths:
            try:
                named = matching(project.root, pattern, project.top, _SKIPPED)
            except OutsideRepository as error:
                message = f"the SQL at `{pattern}` is not read: {why(error)}"
                hint = "name files of the repository, below the folder of the project file or beside it"
                told.append(Diagnostic("outside-repository", message, place, hint))
                continue
            except OSError as error:
                message = f"the SQL at `{pattern}` is not read: {why(error)}"
                told.append(Diagnostic("unreadable-file", message, place, None, Severity.WARNING))
                continue
            paths = [path for path in named if path.suffix.lower() in _EXTENSIONS]
            if not paths:
                message = f"there is no `.sql` or `.py` file at `{pattern}`"
                told.append(Diagnostic("no-sql-found", message, place, None, Severity.WARNING))
            for path in paths:
                source = read_source(path, top=project.top) if str(path) not in seen else None
                seen.add(str(path))
                if isinstance(source, Diagnostic):
                    told.append(replace(source, severity=Severity.WARNING))
                elif source is not None:
                    yield _script(source, path, files)


def _script(source: Source, path: Path, files: SqlFiles) -> Script:
    is_python = path.suffix.lower() == ".py"
    return Script(source, path.stem, is_python, "spark" if is_python else files.dialect, files.namespace)


def _told(found: Found, active: tuple[Active, ...], *, is_looked_at: bool) -> Iterator[Diagnostic]:
    source = found.script.source
    starts = source.line_starts()
    levels = {one.rule.id: one.severity for one in active}
    diagnostics = [
        Diagnostic(rule.id, message, source.place_at(at, starts), hint, levels[rule.id])
        for at, rule, message, hint in (*map(_of_use, found.uses), *_of_unread(found))
        if rule.id in levels
    ]
    yield from after_ignores(diagnostics, read_sql_ignores(source), active, is_looked_at=is_looked_at)


def _of_use(found: tuple[int, Use]) -> tuple[int, Rule, str, str]:
    at, use = found
    stake = use.stake
    rule = _RETYPED if stake.fate is Fate.RETYPED else _BREAKS if use.is_sure else _MAY_BREAK
    through = f", through {' and '.join(f'`{name}`' for name in reversed(use.via))}" if use.via else ""
    if use.by_position:
        says = "`*` takes in" if use.written == "*" else "values without a list of columns count on"
    elif use.via:
        says = f"`{use.written}` comes from"
    else:
        says = f"`{use.written}` {'is' if use.is_sure else 'may be'}"
    return at, rule, f"{says} {stake.what}{through}, {stake.says}", _hint(use)


def _hint(use: Use) -> str:
    stake = use.stake
    if use.via and not use.is_sure:
        return f"it fails unless `{use.via[0]}` goes on to give it under this name"
    if stake.fate is Fate.RETYPED:
        return "see that nothing here relies on the narrower type"
    if use.by_position:
        return "name the columns, so that each goes where it belongs"
    if stake.fate is Fate.RENAMED:
        write = f"write `{stake.to if not stake.path else format_path((stake.to,))}`"
        return write if use.is_sure else f"{write}, or say whose it is"
    what = "the table" if not stake.path else "it"
    return f"take {what} out here first, or keep it until nothing uses it"


def _of_unread(found: Found) -> Iterator[tuple[int, Rule, str, str]]:
    for statement in found.unread:
        hint = "is the `dialect` of its path in the project file the right one? Else look at it by eye"
        yield statement.at, _NOT_READ, f"the SQL cannot be read, so it is not searched: {statement.why}", hint
