"""The page of all keys and environment variables, from the schemas, the options and a table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import click

from icemigrate.cli.group import LEAF_COMMANDS, command_of
from icemigrate.files.parse.json_schemas import schema_text

VARIABLES = {
    "ICEMIGRATE_ARCHIVE": "`off`: do not make or use the archive of classes that makes Spark start faster.",
    "ICEMIGRATE_CACHE": "An absolute folder for downloaded jars and the archive of classes. Default: "
    "`$XDG_CACHE_HOME/icemigrate`, or `~/.cache/icemigrate`.",
    "ICEMIGRATE_DEBUG": "`1`: show Spark's own output, and tracebacks of errors.",
    "ICEMIGRATE_JARS": "A folder with the jars that Spark needs; nothing is downloaded then.",
    "ICEMIGRATE_LOCK_LEASE": "How long the lock stays valid without renewal: seconds, or a number and "
    "a unit (`2m`).",
    "ICEMIGRATE_SOURCE": "What pip installs in the CI files of `init` and in `ci/gitlab.yml`.",
    "CI": "Set by code hosts: the text of `check` has all findings, not only those of the change.",
    "DEFAULT_ARTIFACT_REPOSITORY": "Spark's own: the repository that is asked first for jars.",
    "FORCE_COLOR": "Use colour also where the output is not a terminal.",
    "GITHUB_TOKEN": "The token with which `comment` writes on GitHub.",
    "GITLAB_TOKEN": "The token with which `comment` writes on GitLab.",
    "HOME": "Where `~` is; the default of the cache.",
    "JAVA_HOME": "The Java that starts Spark, if Spark supports it.",
    "NO_COLOR": "Use no colour, the same as `--no-color`.",
    "PATH": "Absolute folders of it are searched for `java` and `git`.",
    "SPARK_HOME": "The Spark to start. Default: the installed PySpark.",
    "TERM": "`dumb`: use no colour.",
    "XDG_CACHE_HOME": "An absolute folder of caches.",
}
"""Variables that are no options, and what they do."""

_FILES = {
    "Project file": "project",
    "Migration files": "migration",
    "Migration tests": "migration-test",
}


def reference_page() -> str:
    """The whole page."""
    parts = [
        "# Keys and environment variables\n\n"
        "The pages of the [project file](project-file.md), [migration files](migration-files.md) and "
        "[commands](commands.md) explain them. `[]` means each item of a list, and `*` each name.\n"
    ]
    for title, name in _FILES.items():
        rows = (f"| `{path}` | {text} |\n" for path, text in schema_keys(name).items())
        parts.append(f"\n## {title}\n\n| key | meaning |\n| --- | --- |\n{''.join(rows)}")
    rows = (f"| `{name}` | {text} |\n" for name, text in VARIABLES.items())
    parts.append(
        "\n## Environment variables\n\n"
        "A variable is read from the environment of the process, never from a file of the repository.\n\n"
        f"| variable | meaning |\n| --- | --- |\n{''.join(rows)}"
        "\nCode hosts also set variables such as `GITHUB_BASE_REF` and `CI_PROJECT_DIR`, which describe the "
        "change to `check` and `comment`.\n"
        "\n### Options as variables\n\n"
        "Options can also be variables. An option on the command line comes first. A flag is `1` or `0`. "
        "Several values of a repeatable option have spaces between them. A variable applies to the listed "
        "commands; a run shows each one that changes what it does. What `rollback`, `maintain`, `reset`, "
        "`repair` and `unlock` undo or remove, and what `--allow` and `--overwrite` accept, is read from the "
        "command line only.\n\n"
        f"| variable | option | commands |\n| --- | --- | --- |\n{''.join(_option_rows())}"
    )
    return "".join(parts)


def schema_keys(name: str) -> dict[str, str]:
    """All keys of a file, by their paths, with their meaning."""
    schema = json.loads(schema_text(name))
    found: dict[str, str] = {}
    for path, text in _keys(schema, schema["$defs"], "", ()):
        found.setdefault(path, text)
    return found


def _keys(
    node: dict[str, Any], definitions: dict[str, Any], path: str, inside: tuple[str, ...]
) -> Iterator[tuple[str, str]]:
    if "$ref" in node:
        name = node["$ref"].rpartition("/")[2]
        if name not in inside:
            yield from _keys(definitions[name], definitions, path, (*inside, name))
        return
    for key, value in node.get("properties", {}).items():
        below = f"{path}.{key}" if path else key
        yield below, _text(value, definitions)
        yield from _keys(value, definitions, below, inside)
    if isinstance(node.get("items"), dict):
        yield from _keys(node["items"], definitions, f"{path}[]", inside)
    if isinstance(node.get("additionalProperties"), dict):
        yield from _keys(node["additionalProperties"], definitions, f"{path}.*" if path else "*", inside)
    for word in ("oneOf", "anyOf", "allOf"):
        for one in node.get(word, ()):
            yield from _keys(one, definitions, path, inside)


def _text(node: dict[str, Any], definitions: dict[str, Any]) -> str:
    referred = definitions.get(node.get("$ref", "").rpartition("/")[2], {})
    text = node.get("description") or referred.get("description") or ""
    return " ".join(text.split()).replace("|", "\\|")


def _option_rows() -> Iterator[str]:
    options: dict[str, tuple[str, list[str]]] = {}
    for name in LEAF_COMMANDS:
        for param in command_of(name).params:
            if isinstance(param, click.Option) and param.envvar:
                names = " / ".join(max(opts, key=len) for opts in (param.opts, param.secondary_opts) if opts)
                options.setdefault(str(param.envvar), (names, []))[1].append(name)
    everywhere = len(LEAF_COMMANDS) - 1  # all but `completion`
    for variable, (option, commands) in sorted(options.items()):
        listed = "all" if len(commands) >= everywhere else ", ".join(f"`{name}`" for name in commands)
        yield f"| `{variable}` | `{option}` | {listed} |\n"
