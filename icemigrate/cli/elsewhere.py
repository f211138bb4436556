"""Commands and options as users of Flyway, Alembic, dbt, Terraform and git call them, and their names here.

A word of another tool is answered by what it means there.  What is spelt alike is guessed only after that,
and what takes something away only where one slip of the finger leads to it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

import click

from icemigrate.diagnostics import did_you_mean

CAREFUL_COMMANDS = frozenset({"rollback", "unlock", "maintain", "squash", "repair"})
"""Commands that take something away or renounce a guard."""
CAREFUL_OPTIONS = frozenset(
    {
        *("--auto-approve", "--discard-new-data", "--metadata-only", "--overwrite", "--partial", "--accept"),
        *("--allow", "--trash", "--orphans", "--rows", "--snapshots", "--reconcile", "--fix"),
    }
)
"""Options that do."""

COMMANDS_ELSEWHERE: tuple[tuple[str, str], ...] = (
    (
        "here it is `icemigrate apply`",
        "migrate up upgrade deploy run update push execute sync build commit migrate-up update-count",
    ),
    (
        "here it is `icemigrate status`",
        "info state list ls current heads head pending show-status version-status get branches",
    ),
    ("here it is `icemigrate check`", "validate lint test verify fmt format compile parse analyze checks"),
    (
        "here it is `icemigrate rollback`",
        "undo downgrade down back rollback-one rollback-count migrate-down unapply reset-hard",
    ),
    (
        "`icemigrate plan` shows what the files would do, `icemigrate drift` what others did to the tables",
        "diff compare difference changes snapshot refresh",
    ),
    (
        "here it is `icemigrate plan`",
        "preview dry-run dryrun simulate what-if update-sql sql upgrade-sql pretend previewing",
    ),
    (
        "here it is `icemigrate new`",
        "generate create add revision make makemigrations make-migration migration g create-migration",
    ),
    (
        "`icemigrate apply --baseline` records what is there, `icemigrate import` writes its migration",
        "baseline stamp changelog-sync mark-applied fake adopt",
    ),
    (
        "here it is `icemigrate import`",
        "introspect inspect pull generate-changelog dump reverse-engineer extract export",
    ),
    (
        "nothing drops all tables at once: `icemigrate rollback --to 0` takes the migrations back",
        "destroy clean drop drop-all reset delete remove teardown purge wipe",
    ),
    ("here it is `icemigrate apply --redo VERSION`", "redo reapply rerun retry"),
    ("here it is `icemigrate history`", "log logs audit reflog changelog events"),
    ("here it is `icemigrate unlock`", "force-unlock release-locks release-lock unlock-state list-locks"),
    (
        "here it is `icemigrate maintain`",
        "vacuum expire expire-snapshots cleanup gc optimize compact clean-up housekeeping prune",
    ),
    ("here it is `icemigrate rebase`", "merge renumber reorder merge-heads"),
    ("here it is `icemigrate squash`", "squashmigrations flatten consolidate"),
    ("here it is `icemigrate init`", "setup start begin bootstrap install new-project"),
    ("here it is `icemigrate doctor`", "debug diagnose check-connection ping deps"),
    ("here it is `icemigrate show`", "cat describe schema print output ddl display"),
    ("here it is `icemigrate explain`", "why what describe-error"),
    ("here it is `icemigrate --help`", "help man docs usage"),
    ("here it is `icemigrate --version`", "version -v"),
    ("an environment is chosen by `--env NAME`", "env workspace environment target profile select"),
)

OPTIONS_ELSEWHERE: tuple[tuple[str, str], ...] = (
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
    ("--lock-timeout SECONDS", "timeout wait lock-wait lock-timeout-seconds lock-retry"),
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
"""An option here, and the words of others for it; of several the first that a command has is meant."""

_DRY = frozenset(
    {
        *("dry-run", "dryrun", "check", "preview", "what-if", "whatif", "noop", "n"),
        *("simulate", "pretend", "plan", "diff"),
    }
)
_LOUD = frozenset(["v", "vv", "verbose", "debug", "d", "trace", "x", "log-level", "stacktrace"])
_LAST = frozenset(["steps", "step", "count", "n", "number"])
_EXTRA = re.compile(r"Got unexpected extra arguments? \((.*)\)")


def command_hint(word: str, known: Collection[str]) -> str | None:
    """What to call instead of a command that is not there."""
    plain = word.lower().replace("_", "-").replace(":", "-")
    meant = next((said for said, words in COMMANDS_ELSEWHERE if plain in words.split()), None)
    return meant or did_you_mean(word, known, CAREFUL_COMMANDS)


def usage_message(error: click.ClickException, args: Sequence[str]) -> str:
    """What Click says of wrong usage, with what is meant where that can be told.

    :param args: of the whole command line: Click names no more than the first letter of ``-auto-approve``.
    """
    message = error.format_message()
    if not isinstance(error, click.UsageError) or error.ctx is None:
        return message
    if isinstance(error, click.NoSuchOption):
        written = _written(error.option_name, args)
        hint = option_hint(written, error.ctx.command)
        return f"`{error.ctx.command_path}` has no option `{written}`" + (f": {hint}" if hint else "")
    if (extra := _EXTRA.match(message)) and (hint := _extra_hint(extra[1], error.ctx.command)):
        return f"`{error.ctx.command_path}` takes no argument, but `{extra[1]}` is given: {hint}"
    return message


def option_hint(written: str, command: click.Command) -> str | None:
    """What to write instead of an option that a command does not have."""
    known = {option for param in command.params for option in (*param.opts, *param.secondary_opts)}
    word = written.lstrip("-").lower().replace("_", "-")
    if f"--{word}" in known:
        return f"write `--{word}`"
    return (
        _of_a_kind(word, command, known)
        or next((f"write `{one}`" for one in _meant(word) if one.split()[0] in known), None)
        or _near(word, known)
        or ("options of a command stand behind its name" if isinstance(command, click.Group) else None)
    )


def _near(word: str, known: Collection[str]) -> str | None:
    # Without the dashes, which make all short options alike.
    bare = [option[2:] for option in known if option.startswith("--")]
    near = did_you_mean(word, bare, {option[2:] for option in CAREFUL_OPTIONS}) if len(word) > 1 else None
    return near and near.replace("`", "`--", 1)


def _of_a_kind(word: str, command: click.Command, known: Collection[str]) -> str | None:
    if word in _DRY and "--dry-run" in known:
        return "write `--dry-run`"
    if word in _DRY and command.name == "apply":
        return "`icemigrate plan` shows what would be done, and does nothing"
    if word in _DRY and command.name == "plan":
        return "leave it away: `plan` changes nothing"
    if word in _DRY - _LAST and "--auto-approve" in known:
        return "leave it away: what would be done is shown and asked about before"
    if word in _LAST and command.name == "rollback":
        return "`--to VERSION` takes back all after it; without it the last one is"
    if word == "version" and command.name == "rollback":
        return "`--to VERSION` takes back all after it, `--only VERSION` that one alone"
    if word in _LOUD:
        return "`ICEMIGRATE_DEBUG=1` in the environment shows the traceback of a fault"
    return None


def _meant(word: str) -> Iterator[str]:
    return (option for option, words in OPTIONS_ELSEWHERE if word in words.split())


def _written(name: str, args: Sequence[str]) -> str:
    """The option as it was written: of ``-out=x`` Click names ``-o``."""
    if name.startswith("--"):
        return name
    whole = next((arg for arg in args if arg.startswith(name) and not arg.startswith("--")), name)
    return whole.partition("=")[0]


def _extra_hint(extra: str, command: click.Command) -> str | None:
    known = {option for param in command.params for option in param.opts}
    if not extra.isdigit():
        return None
    if "--only" in known:
        return f"`--to {extra}` takes back all after it, `--only {extra}` that one alone"
    option = next((one for one in ("--to", "--through", "--at") if one in known), None)
    return f"write `{option} {extra}`" if option else None
