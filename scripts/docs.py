"""The generated pages, picture and schemas; ``python -m scripts.docs`` writes them, a test compares."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from icemigrate.cli.group import COMMANDS, LEAF_COMMANDS, command_of
from icemigrate.cli.options import global_options
from icemigrate.cli.outputs import OutputType
from icemigrate.errors import ExitCode
from icemigrate.explanations import EXPLANATION_GROUPS
from scripts.docs_kinds import kinds_page
from scripts.docs_reference import reference_page
from scripts.docs_rules import rule_pages, rules_page
from scripts.docs_schemas import result_schemas
from scripts.docs_traps import traps_page
from scripts.plan_picture import plan_picture

ROOT = Path(__file__).resolve().parent.parent
NOTE = "<!-- Made from the code by `make docs`; change the code. -->\n\n"


def generated() -> dict[Path, str]:
    """Every file that is made, or partly made, from code, and what it must hold."""
    readme = ROOT / "README.md"
    docs = ROOT / "docs"
    return {
        docs / "commands.md": NOTE + commands_page(),
        docs / "exit-codes.md": NOTE + exit_codes_page(),
        docs / "rules.md": NOTE + rules_page(),
        **{docs / "rules" / name: NOTE + text for name, text in rule_pages().items()},
        docs / "kinds-of-change.md": NOTE + kinds_page(),
        docs / "traps.md": NOTE + traps_page(),
        docs / "reference.md": NOTE + reference_page(),
        docs / "identifiers.md": NOTE + identifiers_page(),
        **{ROOT / "schemas" / name: text for name, text in result_schemas().items()},
        docs / "plan.svg": plan_picture(readme.read_text(encoding="utf-8")),
        readme: with_parts(readme.read_text(encoding="utf-8"), {"commands": command_table()}),
    }


def with_parts(text: str, parts: dict[str, str]) -> str:
    """A page with new text between ``<!-- name -->`` and ``<!-- /name -->``."""
    for name, part in parts.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        assert text.count(begin) == text.count(end) == 1, f"the page has no part `{name}`, or several"
        text = text[: text.index(begin)] + begin + part + text[text.index(end) :]
    return text


def command_table() -> str:
    """Commands and what they do."""
    rows = (f"| [`{name}`](docs/commands.md#{name}) | {what} |" for name, what in COMMANDS.items())
    return "\n".join(["| command | what it does |", "| --- | --- |", *rows]) + "\n"


def exit_code_table() -> str:
    """Codes and their meaning."""
    rows = (f"| {code} | {meaning} |" for code, meaning in _meanings())
    return "\n".join(["| code | meaning |", "| --- | --- |", *rows]) + "\n"


def _meanings() -> Iterator[tuple[int, str]]:
    """The members of the enumeration with the texts below them, which only the source has."""
    (definition,) = ast.parse(inspect.getsource(ExitCode)).body
    assert isinstance(definition, ast.ClassDef)
    name = ""
    for node in definition.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and name:
            yield ExitCode[name].value, markdown(str(node.value.value))


def markdown(text: str) -> str:
    """A docstring's text as Markdown on one line."""
    text = re.sub(r":\w+:`(?:~[\w.]+\.)?([^`]+)`", r"`\1`", text.replace("``", "`"))
    return " ".join(text.split())


def exit_codes_page() -> str:
    """The page of exit codes."""
    return (
        "# Exit codes\n\n"
        "Every command exits with one of these codes.\n\n"
        f"{exit_code_table()}\n"
        "If several codes apply, the problem that you must fix first decides: `plan` exits with "
        f"{ExitCode.FINDINGS.value} if a file must be changed, and with {ExitCode.CONFLICT.value} if only "
        "the catalog has a problem.\n\n"
        f"What only waits is no error: `status` and `ingest status` exit with {ExitCode.OK.value} also for "
        "pending migrations, for tenants or other new values of a list to which `apply` extends migrations, "
        "and for entries of a log, with or without a problem of their table. `plan --detailed-exitcode` "
        f"exits with {ExitCode.CHANGES.value} for pending migrations and for new values. `ingest` exits with "
        f"{ExitCode.ERROR.value} if entries of tables with a problem stay in the log.\n\n"
        "With `--format json` an error is also written to standard output, in the form of "
        "[`schemas/error.schema.json`](../schemas/error.schema.json). Its `exit_code` is the exit code.\n"
    )


def identifiers_page() -> str:
    """The page of identifiers that are no rules of their own."""
    parts = [
        "# Identifiers\n\n"
        "The identifier in square brackets at the end of a message never changes its meaning, so programs "
        "can use it. `icemigrate explain` shows the same text in the terminal, also for "
        "[rules](rules.md) and for the kinds of errors in JSON.\n"
    ]
    for title, texts in EXPLANATION_GROUPS.items():
        rows = (f"- `{word}`: {text}\n" for word, text in sorted(texts.items()))
        parts.append(f"\n## {title}\n\n{''.join(rows)}")
    return "".join(parts)


def commands_page() -> str:
    """The page of commands."""
    shared = _options(global_options(click.Command("shared")))
    parts = [
        "# Commands\n\n"
        f"{_java_table()}\n"
        "Every command has these options, before or after its name:\n\n"
        f"{_option_table(shared)}"
    ]
    names = {option.name for option in shared}
    for name, what in {**COMMANDS, **LEAF_COMMANDS}.items():
        command = command_of(name)
        if isinstance(command, click.Group):
            listed = ", ".join(f"[`{name} {one}`](#{name}-{one})" for one in command.list_commands(None))  # type: ignore[arg-type]
            parts.append(f"\n## {name}\n\n**{what}**\n\nIts commands are {listed}.\n")
            continue
        own = [option for option in _options(command) if option.name not in names]
        usage = " ".join(["icemigrate", name, *command.collect_usage_pieces(click.Context(command))])
        parts.append(f"\n## {name}\n\n**{what}**\n\n`{usage.replace('[OPTIONS]', '[options]')}`\n")
        if rest := _rest_of_help(command):
            parts.append(f"\n{rest}\n")
        if own:
            parts.append(f"\n{_option_table(own)}")
    return "".join(parts)


_WITH_JAVA_OPTIONS = {"plan": ("plan --rehearse", "plan --reconcile"), "doctor": ("doctor --spark",)}
"""Commands that start Spark with these options only."""
_COMMIT_IN_PYTHON = (
    "adopt-parquet",
    "rollback",
    "repair",
    "unlock",
    "plan --reconcile",
    "reset",
    "maintain",
    "shell",
)
"""Commands that start Spark only for what Python cannot commit."""

_WITH_CATALOG_OPTIONS = {"diff": "diff --from-env"}
"""Commands that read the catalog with this option only."""
_COLUMN_COMMANDS = ("table add-column", "table rename-column", "table drop-column")
"""Commands whose shared module reads the catalog."""
_WITHOUT_CATALOG = ("test", "ingest status", "ingest propose")
"""Commands that use an environment's settings, and not its catalog."""
_REWRITE_FILES = ("table update", "table delete", "table upsert")
"""Commands that start Spark only for rows that Python cannot write again."""


def _java_table() -> str:
    """What each command reads, and whether it starts Spark, as its module shows."""
    files, catalog, spark = list[str](), list[str](), list[str]()
    for name in LEAF_COMMANDS:
        source = inspect.getsource(sys.modules[command_of(name).callback.__module__])  # type: ignore[union-attr]
        starts = "before_start" in source or "Starting Spark" in source
        if name in _WITH_JAVA_OPTIONS:
            catalog.append(name)
            spark += _WITH_JAVA_OPTIONS[name]
        else:
            reads_catalog = "settings.environment" in source or name in _COLUMN_COMMANDS
            reads_catalog = reads_catalog and name not in _WITHOUT_CATALOG
            (spark if starts else catalog if reads_catalog else files).append(name)
        if name in _WITH_CATALOG_OPTIONS:
            catalog.append(_WITH_CATALOG_OPTIONS[name])
    in_python = [name for name in spark if name in _COMMIT_IN_PYTHON]
    tests = [name for name in spark if name in _WITHOUT_CATALOG]
    spark = [name for name in spark if name not in (*in_python, *tests)]
    rewrites = [name for name in catalog if name in _REWRITE_FILES]
    catalog = [name for name in catalog if name not in rewrites]
    rows = (
        (files, "only files", "no"),
        (tests, "only files", "yes"),
        (catalog, "files and the catalog", "no"),
        (in_python, "files and the catalog", "for rows, data files and views"),
        (rewrites, "files and the catalog", "for format version 3, merge-on-read and equality deletes"),
        (spark, "files and the catalog", "yes, unless `apply_with` spares it"),
    )
    body = "".join(
        f"| {', '.join(f'`{n}`' for n in names)} | {reads} | {java} |\n" for names, reads, java in rows
    )
    return f"| commands | read | need Java |\n| --- | --- | --- |\n{body}"


def _rest_of_help(command: click.Command) -> str:
    """What the help says behind its first sentence, which the table of commands has in other words."""
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")[1:]
    return "\n\n".join(_paragraph(p) for p in paragraphs)


def _paragraph(text: str) -> str:
    if text.startswith("\b\n"):
        return "\n".join(["```sh", *(_shell(line) for line in text.splitlines()[1:]), "```"])
    return " ".join(text.split())


def _shell(line: str) -> str:
    """``bash:  command   in FILE`` as a line of a shell."""
    found = re.fullmatch(r"(\w+):\s+(.+?)\s{2,}(.+)", line.strip())
    assert found, line
    return f"{found[2]}  # {found[1]}, {found[3]}"


def _options(command: click.Command) -> list[click.Option]:
    return [p for p in command.params if isinstance(p, click.Option)]


def _option_table(options: list[click.Option]) -> str:
    rows = [f"| {_names(option)} | {_help(option)} |" for option in options]
    return "\n".join(["| option | meaning |", "| --- | --- |", *rows]) + "\n"


def _names(option: click.Option) -> str:
    if isinstance(option.type, click.Choice):
        value = " " + "\\|".join(map(str, option.type.choices))
    elif isinstance(option.type, OutputType):
        value = " " + "\\|".join(option.type.names) + "[=FILE]"
    else:
        value = "" if option.is_flag else f" {option.metavar}"
    names = ", ".join(option.opts)
    return f"`{' / '.join([names, *option.secondary_opts])}{value}`"


def _help(option: click.Option) -> str:
    text = markdown(option.help or "")
    if isinstance(option.type, click.Choice) and isinstance(option.default, str):
        text += f" Default: `{option.default}`."
    elif isinstance(option.type, OutputType):
        text += f" Default: `{option.type.names[0]}`."
    return text


def main() -> None:
    """Write what differs."""
    for path, text in generated().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
            sys.stdout.write(f"{path.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
