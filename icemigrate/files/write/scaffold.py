"""The texts that ``init`` and ``new`` write, and the one function that writes them."""

from __future__ import annotations

import datetime
import os
import re
import shlex
import unicodedata
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from icemigrate.errors import IcemigrateError, UsageError, os_error_reason
from icemigrate.files.parse.json_schemas import schema_text
from icemigrate.files.parse.yaml_nodes import plain_value
from icemigrate.files.version_number import Version
from icemigrate.system.file_writes import create_inside, remove_inside
from icemigrate.system.repository_boundary import OutsideRepository

_WIDTH = 4
_TIMESTAMP_DIGITS = 14
_SLUG_LENGTH = 60

_PROJECT = """\
# yaml-language-server: $schema=schemas/project.schema.json
# Without any of this, icemigrate works on a SQLite catalog and a warehouse in `.icemigrate/`.
project: {project}
environments:
  local:
    catalog: {{type: sqlite}}
  # prod:
  #   catalog:
  #     {{type: rest, name: lake, warehouse: "s3://lake", uri: "${{URI}}", credential: "${{CREDENTIAL}}"}}
  #   storage: {{region: us-east-1}}
  #   spark: {{master: yarn}}
default_environment: local
"""

_FIRST = """\
# yaml-language-server: $schema=../schemas/migration.schema.json
description: Create the table of events
namespaces: [demo]
tables:
  - name: demo.events
    description: What happened, one row for each event
    columns:
      - {name: id, type: long, required: true}
      - {name: happened_at, type: timestamptz, required: true}
      - {name: kind, type: string}
    partition_by: [day(happened_at)]
    sort_by: [happened_at]
"""

_NEXT = """\
# yaml-language-server: $schema={schema}
description: {description}
# tables:
#   - name: namespace.table
#     renames: {{old_name: new_name}}
#     columns:
#       - {{name: added_column, type: string}}
"""

_WORKFLOW = """\
name: Migrations
on:
  pull_request:
    paths: ["@MIGRATIONS@/**", icemigrate.yaml, .github/workflows/icemigrate.yaml]
permissions:
  contents: read
  # For the comment. For pull requests from forks GitHub gives no more than `read`.
  pull-requests: write
jobs:
  check:
    runs-on: ubuntu-latest
    env:
      # What pip installs: a requirement, an address or a path; the variable is one of the repository.
      ICEMIGRATE_SOURCE: "${{ vars.ICEMIGRATE_SOURCE@SOURCE@ }}"
    steps:
      - uses: actions/checkout@v4
        with:
          # The whole history, so that what the change adds can be told from what is there.
          fetch-depth: 0
          # No token in `.git/config`, which the steps below can read.
          persist-credentials: false
      - uses: actions/setup-python@v5
        with:
          python-version: "3.12"
      - name: Install icemigrate
        run: |
          if [ -z "$ICEMIGRATE_SOURCE" ]; then
            example="icemigrate @ git+https://git.example.com/tools/icemigrate.git"
            echo "::error title=icemigrate::Set the variable ICEMIGRATE_SOURCE to what pip installs: $example"
            exit 1
          fi
          case "$ICEMIGRATE_SOURCE" in
            ./* | ../*) ICEMIGRATE_SOURCE="$GITHUB_WORKSPACE/$ICEMIGRATE_SOURCE" ;;
          esac
          # Outside of the workspace and with `-I`, so that no file of the change is imported.
          cd "$RUNNER_TEMP"
          python -I -m pip install "$ICEMIGRATE_SOURCE"
      - name: Check
        run: python -I -m icemigrate.cli check --format github --format "markdown=$RUNNER_TEMP/check.md"
      - name: Tell
        if: ${{ !cancelled() }}
        env:
          GITHUB_TOKEN: ${{ github.token }}
        run: |
          [ -f "$RUNNER_TEMP/check.md" ] || exit 0
          cat "$RUNNER_TEMP/check.md" >> "$GITHUB_STEP_SUMMARY"
          cd "$RUNNER_TEMP"
          python -I -m icemigrate.cli comment check.md ||
            echo "::warning title=icemigrate::There is no comment; the summary of this run says all of it."
"""

_PIPELINE = """\
icemigrate-check:
  image: python:3.12-slim
  rules:
    - if: $CI_PIPELINE_SOURCE == "merge_request_event"
      changes: ["@MIGRATIONS@/**/*", icemigrate.yaml, .gitlab-ci.yml]
  variables:
    # The whole history, to compare the change with.
    GIT_DEPTH: "0"
  before_script:
    # What pip installs: a requirement, an address or a path; a variable of the project comes first.
    - |
      [ -n "${ICEMIGRATE_SOURCE:-}" ] || export ICEMIGRATE_SOURCE=@SOURCE@
    - ': "${ICEMIGRATE_SOURCE:?set it to what pip installs: icemigrate @ git+https://git.example.com/i.git}"'
    - command -v git >/dev/null || { apt-get update -qq && apt-get install -qq --yes git >/dev/null; }
    - case "$ICEMIGRATE_SOURCE" in ./* | ../*) ICEMIGRATE_SOURCE="$CI_PROJECT_DIR/$ICEMIGRATE_SOURCE" ;; esac
    # Outside of the repository and with `-I`, so that no file of the change is imported.
    - home="$(mktemp -d)"
    - cd "$home"
    - python -I -m venv "$home"
    - PATH="$home/bin:$PATH"
    - env -u GITLAB_TOKEN python -I -m pip install --quiet --disable-pip-version-check "$ICEMIGRATE_SOURCE"
    - cd "$CI_PROJECT_DIR"
  script:
    # The change may hold links of these names.
    - rm -rf icemigrate-quality.json icemigrate-check.xml icemigrate-check.md
    - code=0
    - >-
      env -u GITLAB_TOKEN python -I -m icemigrate.cli check
      --format text --format gitlab=icemigrate-quality.json
      --format junit=icemigrate-check.xml --format markdown=icemigrate-check.md || code=$?
    - |
      if [ -n "${GITLAB_TOKEN:-}" ] && [ -f icemigrate-check.md ]; then
        python -I -m icemigrate.cli comment icemigrate-check.md ||
          echo "There is no comment; this log says all of it."
      fi
    - exit "$code"
  artifacts:
    when: always
    reports:
      codequality: icemigrate-quality.json
      junit: icemigrate-check.xml
"""

CI_FILES = {"github": ".github/workflows/icemigrate.yaml", "gitlab": ".gitlab-ci.yml"}
"""The file that checks changes, by code host."""

_IGNORED = """\
# The embedded catalog and its warehouse are of this machine alone.
*
"""


def init_files(
    project: str,
    migrations: str = "migrations",
    source: str = "",
    ci: str = "github",
    *,
    is_empty: bool = False,
) -> dict[str, str]:
    """The files of a new project: path relative to its folder → text.

    :param source: the requirement that pip installs in CI; without it a variable must have it.
    :param ci: a key of :data:`CI_FILES`; another word for no file of CI.
    :param is_empty: whether there is no first migration.
    """
    # Not `format`: the texts contain many braces. A quote is doubled in an expression of GitHub's.
    by_itself = " || '" + source.replace("'", "''") + "'" if source else ""
    ci_texts = {
        "github": _WORKFLOW.replace("@SOURCE@", by_itself),
        "gitlab": _PIPELINE.replace("@SOURCE@", shlex.quote(source)),
    }
    return {
        "icemigrate.yaml": _PROJECT.format(project=project),
        **({f"{migrations}/.gitkeep": ""} if is_empty else {f"{migrations}/0001_create_events.yaml": _FIRST}),
        **({CI_FILES[ci]: ci_texts[ci].replace("@MIGRATIONS@", migrations)} if ci in CI_FILES else {}),
        "schemas/migration.schema.json": schema_text("migration"),
        "schemas/project.schema.json": schema_text("project"),
        ".icemigrate/.gitignore": _IGNORED,
    }


def new_file_name(title: str, existing: Iterable[Version], now: datetime.datetime) -> str:
    """The name of the next migration: ``rename volume`` → ``0004_rename_volume.yaml``.

    Numbers increase by one and keep the widest width in use; if the newest file has a timestamp of fourteen
    digits, the next one has too.

    :param now: in UTC, so that files of several authors sort; used for timestamps only.
    :raises UsageError: the title has no character that a file name can have.
    """
    slug = slugify(title)
    if not slug:
        raise UsageError(
            f"`{title}` is not usable as a file name", 'describe the migration: `new "rename volume"`'
        )
    return f"{next_version(tuple(existing), now)}_{slug}.yaml"


def slugify(title: str) -> str:
    """``Größe: rename it!`` → ``grosse_rename_it``: ASCII letters and digits, joined by ``_``."""
    plain = unicodedata.normalize("NFKD", title.casefold()).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "_", plain)[:_SLUG_LENGTH].strip("_")


def next_version(existing: tuple[Version, ...], now: datetime.datetime) -> str:
    """The version of the next file: one more than the newest, or the time where versions are times."""
    if not existing:
        return "1".zfill(_WIDTH)
    newest = max(existing)
    if len(newest.text) == _TIMESTAMP_DIGITS and not newest.text.startswith("0"):
        number = max(int(now.astimezone(datetime.timezone.utc).strftime("%Y%m%d%H%M%S")), newest.number + 1)
        return str(number)
    width = max(len(version.text) for version in existing)
    return str(newest.number + 1).zfill(width)


def renumbered_file_name(path: str, existing: Iterable[Version], now: datetime.datetime) -> str:
    """The name of a migration's file with the next version; the part after the version stays."""
    _, _, rest = Path(path).name.partition("_")
    return f"{next_version(tuple(existing), now)}_{rest}"


def new_text(title: str, schema: str = "../schemas/migration.schema.json") -> str:
    """The text of a new migration file.

    :param schema: where the file's schema is, as seen from it; for editors.
    """
    words = " ".join(title.split())
    quoted = "'" + words.replace("'", "''") + "'"
    safe = re.fullmatch(r"[A-Za-z][A-Za-z0-9 ,.()/-]*", words) is not None
    plain = safe and isinstance(plain_value(words), str)
    return _NEXT.format(schema=schema, description=words if plain else quoted)


def write_new(folder: Path, files: Mapping[str, str], top: Path) -> tuple[Path, ...]:
    """Write new files: all of them, or none when one exists.

    :param files: path relative to ``folder`` → text.
    :param top: the root of the repository; no file is written outside it.
    :raises UsageError: one of them exists; nothing is written then.
    :raises IcemigrateError: a file cannot be written.
    """
    paths = [folder / name for name in files]
    if taken := [path for path in paths if os.path.lexists(path)]:
        names = ", ".join(f"`{path.relative_to(folder)}`" for path in taken)
        raise UsageError(f"{names} already exists; nothing was written", "remove it, or choose another name")
    made: list[Path] = []
    for path, text in zip(paths, files.values(), strict=True):
        try:
            create_inside(path, text.encode("utf-8"), top)
            made.append(path)
        except OSError as error:
            remove_files(made, top)
            if path.parent.is_symlink() and not path.parent.exists():
                raise IcemigrateError(
                    f"`{path}` cannot be written: `{path.parent}` is a broken link",
                    "repair the link or remove it",
                ) from error
            hint = "replace the link by a folder" if isinstance(error, OutsideRepository) else None
            raise IcemigrateError(f"`{path}` cannot be written: {os_error_reason(error)}", hint) from error
    return tuple(paths)


def remove_files(paths: Iterable[Path], top: Path) -> None:
    """Remove partly written files, as far as possible; a disk may be full."""
    for path in paths:
        with suppress(OSError):
            remove_inside(path, top)
