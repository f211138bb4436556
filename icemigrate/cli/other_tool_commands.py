"""Commands and options of Flyway, Alembic, dbt, Terraform and git, and their names here.

A word of another tool gets a hint about its meaning there, and a command of `table` its full name.  Similar
spellings are suggested only without one, and a destructive command only for a single typing error.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Sequence

import click

from icemigrate.diagnostics import did_you_mean

CAREFUL_COMMANDS = frozenset({"rollback", "unlock", "maintain", "squash", "repair"})
"""Commands that take something away or renounce a guard."""
CAREFUL_TABLE_COMMANDS = frozenset({"delete", "drop-column", "expire", "rollback", "update"})
"""Commands of `table` that do."""
CAREFUL_OPTIONS = frozenset(
    {
        *("--auto-approve", "--discard-new-data", "--metadata-only", "--overwrite", "--partial", "--accept"),
        *("--allow", "--trash", "--orphans", "--rows", "--snapshots", "--reconcile", "--fix"),
    }
)
"""Options that do."""

FOREIGN_COMMANDS: tuple[tuple[str, str], ...] = (
    (
        "use `icemigrate apply`",
        "migrate up upgrade deploy run update push execute sync build commit migrate-up update-count",
    ),
    (
        "use `icemigrate status`",
        "info state list ls current heads head pending show-status version-status get branches",
    ),
    ("use `icemigrate check`", "validate lint verify fmt format compile parse analyze checks"),
    (
        "use `icemigrate rollback`",
        "undo downgrade down back rollback-one rollback-count migrate-down unapply reset-hard",
    ),
    (
        "`icemigrate plan` shows pending changes, `icemigrate drift` shows changes by other clients",
        "compare difference changes snapshot refresh",
    ),
    (
        "use `icemigrate plan`",
        "preview dry-run dryrun simulate what-if update-sql upgrade-sql pretend previewing",
    ),
    (
        "use `icemigrate new`",
        "create add revision make makemigrations make-migration migration g create-migration",
    ),
    (
        "`icemigrate apply --baseline` records existing tables, `icemigrate import` writes a "
        "migration for them; `icemigrate repair --adopt TABLE` records a table that was dropped and "
        "created again",
        "baseline stamp changelog-sync mark-applied fake adopt",
    ),
    (
        "use `icemigrate import`",
        "introspect inspect pull generate-changelog dump reverse-engineer extract export",
    ),
    (
        "use `icemigrate reset` in a disposable environment; `icemigrate rollback --to 0` rolls back all "
        "migrations",
        "destroy clean drop drop-all delete remove teardown purge wipe",
    ),
    ("use `icemigrate apply --redo VERSION`", "redo reapply rerun retry"),
    ("use `icemigrate history`", "log logs audit reflog changelog events"),
    ("use `icemigrate unlock`", "force-unlock release-locks release-lock unlock-state list-locks"),
    (
        "use `icemigrate maintain`",
        "vacuum expire expire-snapshots cleanup gc optimize compact clean-up housekeeping prune",
    ),
    ("use `icemigrate rebase`", "merge renumber reorder merge-heads"),
    ("use `icemigrate squash`", "squashmigrations flatten consolidate"),
    ("use `icemigrate init`", "setup start begin bootstrap install new-project"),
    ("use `icemigrate doctor`", "debug diagnose check-connection ping deps"),
    ("use `icemigrate show`", "cat describe schema print output ddl display"),
    ("use `icemigrate explain`", "why what describe-error"),
    ("use `icemigrate --help`", "help man docs usage"),
    ("use `icemigrate --version`", "version -v"),
    ("choose an environment with `--env NAME`", "env workspace environment target profile select"),
)

FOREIGN_OPTIONS: tuple[tuple[str, str], ...] = (
    (
        "--auto-approve",
        "y yes assume-yes force f no-input noinput non-interactive no-prompt approve confirm",
    ),
    ("--out FILE", "o output out-file save plan-file file"),
    ("--format json", "json j as-json to-json o output output-format output-type machine-readable"),
    ("--format markdown", "markdown md"),
    ("--to VERSION", "target up-to until revision version target-version through last"),
    ("--through VERSION", "to up-to until target version"),
    ("--at VERSION", "to version revision as-of target"),
    ("--env NAME", "e environment target profile workspace stage env-name t environments"),
    (
        "--project FILE",
        "c config config-file configfiles configuration project-dir chdir directory dir f p profiles-dir",
    ),
    ("--lock-timeout TIME", "timeout wait lock-wait lock-timeout-seconds lock-retry"),
    ("--redo VERSION", "replay again rerun reapply retry"),
    ("--no-color", "no-colour nocolor color colour no-colors plain"),
    ("--detailed-exitcode", "exit-code detailed-exit-code exitcode fail-on-changes error-on-changes"),
    ("--table TABLE", "tables select s t models only"),
    ("--baseline", "fake stamp mark-applied baseline-on-migrate skip-executing"),
    ("--rehearse", "test try trial validate"),
    ("--git-base REF", "base against branch since from ref"),
    ("--exclude PATTERN", "ignore skip except"),
    ("--description TEXT", "m message name desc d"),
)
"""An option here, and words of other tools for it; the first one that a command has is suggested."""

_DRY = frozenset(
    {
        *("dry-run", "dryrun", "check", "preview", "what-if", "whatif", "noop", "n"),
        *("simulate", "pretend", "plan", "diff"),
    }
)
_LOUD = frozenset(["v", "vv", "verbose", "debug", "d", "trace", "x", "log-level", "stacktrace"])
_LAST = frozenset(["steps", "step", "count", "n", "number"])
_CONDITION = re.compile(r"[=<>]|\b(?:is|in|like|between)\b", re.IGNORECASE)
_EXTRA = re.compile(r"Got unexpected extra arguments? \((.*)\)")


def command_hint(
    word: str, known: Collection[str], table_commands: Collection[str] = (), *, knows_other_tools: bool = True
) -> str | None:
    """The command to call instead of an unknown one.

    :param table_commands: the names of commands of `table`, which are known there alone.
    :param knows_other_tools: whether a word of another tool gets the hint about its meaning.
    """
    if not knows_other_tools:
        return did_you_mean(word, known, CAREFUL_COMMANDS | CAREFUL_TABLE_COMMANDS)
    plain = word.lower().replace("_", "-").replace(":", "-")
    meant = next((said for said, words in FOREIGN_COMMANDS if plain in words.split()), None)
    if plain in table_commands:
        own = f"`icemigrate table {plain}`"
        return f"use {own}" if meant is None else f"{meant}; {own} is for one table"
    return meant or did_you_mean(word, known, CAREFUL_COMMANDS)


def usage_message(error: click.ClickException, args: Sequence[str]) -> str:
    """Click's message about wrong usage, with a hint where the intention is clear."""
    message = error.format_message()
    if not isinstance(error, click.UsageError) or error.ctx is None:
        return message
    if isinstance(error, click.NoSuchOption):
        written = _written(error.option_name, args)
        hint = option_hint(written, error.ctx.command)
        return f"`{error.ctx.command_path}` has no option `{written}`" + (f": {hint}" if hint else "")
    if isinstance(error, click.BadParameter) and error.param is not None and error.message:
        return f"`{_shown_parameter(error.param)}`: {error.message}"
    if isinstance(error, click.MissingParameter) and isinstance(error.param, click.Option):
        return _missing_option(error.param, error.ctx, args)
    if isinstance(error, click.MissingParameter) and error.param is not None:
        return f"`{error.ctx.command_path}` needs the argument `{_shown_parameter(error.param)}`"
    if isinstance(error, click.BadOptionUsage):
        return _option_usage(error.option_name, error.ctx) or message
    if extra := _EXTRA.match(message):
        hint = _extra_hint(extra[1], error.ctx.command)
        more = "more " if any(isinstance(p, click.Argument) for p in error.ctx.command.params) else ""
        text = f"`{error.ctx.command_path}` takes no {more}argument, but got `{extra[1]}`"
        return f"{text}: {hint or 'remove it, or put quotes around a value with spaces'}"
    return message


def _shown_parameter(param: click.Parameter) -> str:
    return param.opts[-1] if isinstance(param, click.Option) else str(param.metavar or param.name).upper()


def _option_usage(name: str, ctx: click.Context) -> str | None:
    """The message of an option without its value, or of a flag with one."""
    options = (param for param in ctx.command.params if isinstance(param, click.Option))
    option = next((one for one in options if name in (*one.opts, *one.secondary_opts)), None)
    if option is None:
        return None
    if option.is_flag or option.count:
        return f"`{name}` takes no value: write `{name}` alone"
    return f"`{name}` needs a value: write `{name} {option.make_metavar(ctx)}`"


def _missing_option(option: click.Option, ctx: click.Context, args: Sequence[str]) -> str:
    """The message of a missing option; an argument that nothing takes may be its value."""
    name = option.opts[-1]
    message = f"`{ctx.command_path}` needs the option `{name} {option.metavar or option.type.name.upper()}`"
    extra = _extra_arguments(ctx, args)
    return f"{message}: write `{name} {shlex.quote(extra[0])}`" if extra else message


def _extra_arguments(ctx: click.Context, args: Sequence[str]) -> list[str]:
    """The arguments of a command that none of its parameters takes."""
    rest = list(args)
    for word in ctx.command_path.split()[1:]:
        if word not in rest:
            return []
        rest = rest[rest.index(word) + 1 :]
    try:
        _, extra, _ = ctx.command.make_parser(ctx).parse_args(rest)
    except click.UsageError:
        return []
    return extra


def option_hint(written: str, command: click.Command) -> str | None:
    """The option to write instead of an unknown one."""
    known = {option for param in command.params for option in (*param.opts, *param.secondary_opts)}
    word = written.lstrip("-").lower().replace("_", "-")
    if f"--{word}" in known:
        return f"write `--{word}`"
    return (
        _of_a_kind(word, command, known)
        or next((f"write `{one}`" for one in _meant(word) if one.split()[0] in known), None)
        or _similar_option(word, known)
        or ("put the options of a command after its name" if isinstance(command, click.Group) else None)
    )


def _similar_option(word: str, known: Collection[str]) -> str | None:
    # Without the dashes, which make all short options alike.
    bare = [option[2:] for option in known if option.startswith("--")]
    near = did_you_mean(word, bare, {option[2:] for option in CAREFUL_OPTIONS}) if len(word) > 1 else None
    return near and near.replace("`", "`--", 1)


def _of_a_kind(word: str, command: click.Command, known: Collection[str]) -> str | None:
    counts_versions = word in _LAST and command.name == "rollback"
    if word in _DRY and "--dry-run" in known and not counts_versions:
        return "write `--dry-run`"
    if word in _DRY and command.name == "apply":
        return "`icemigrate plan` shows what would be done, and changes nothing"
    if word in _DRY and command.name == "plan":
        return "remove it: `plan` changes nothing"
    if word in _DRY - _LAST and "--auto-approve" in known:
        return "remove it: the command shows what it would do and asks before it changes anything"
    if counts_versions:
        return "`--to VERSION` rolls back all later versions; the default is the last one"
    if word == "version" and command.name == "rollback":
        return "`--to VERSION` rolls back all later versions, `--only VERSION` that one alone"
    if word in _LOUD:
        return "set `ICEMIGRATE_DEBUG=1` to see the traceback of an error"
    return None


def _meant(word: str) -> Iterator[str]:
    return (option for option, words in FOREIGN_OPTIONS if word in words.split())


def _written(name: str, args: Sequence[str]) -> str:
    """The option as it was written: of ``-out=x`` Click names ``-o``."""
    if name.startswith("--"):
        return name
    whole = next((arg for arg in args if arg.startswith(name) and not arg.startswith("--")), name)
    return whole.partition("=")[0]


def _extra_hint(extra: str, command: click.Command) -> str | None:
    known = {option for param in command.params for option in param.opts}
    if "--where" in known and _CONDITION.search(extra):
        return f"write `--where {shlex.quote(extra)}`"
    if not (extra.isascii() and extra.isdigit()):
        return None
    if "--only" in known:
        return f"`--to {extra}` rolls back all later versions, `--only {extra}` that one alone"
    option = next((one for one in ("--to", "--through", "--at") if one in known), None)
    return f"write `{option} {extra}`" if option else None
