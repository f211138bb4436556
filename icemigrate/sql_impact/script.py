"""A file of the search, and what is found in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from icemigrate.files.parse.source_text import SourceText
from icemigrate.frozen import Frozen
from icemigrate.sql_impact.jinja_values import Variables
from icemigrate.sql_impact.query_uses import SqlUse
from icemigrate.sql_impact.sql_parser import ParsedStatement

Parts = tuple[str, ...]


class Language(Enum):
    """How a file is read."""

    SQL = "sql"
    PYTHON = "python"
    YAML = "yaml"
    NOTEBOOK = "notebook"
    VIEW = "view"
    """The definition of a catalog's view: SQL, and never a template."""
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Script:
    """A file that may use tables.

    :param stem: its name without the extension, which is what `dbt` calls a model.
    :param dialect: of its SQL.
    :param namespace: what a table without one belongs to; empty where it is unknown.
    :param variables: the variables of its dbt project.
    :param compiled: the code that dbt compiled of it; empty where there is none, or an old one.
    :param compiled_dialect: of that code.
    """

    source: SourceText = field(repr=False)
    stem: str
    language: Language
    dialect: str
    namespace: Parts = ()
    variables: Variables = field(default_factory=dict, repr=False)
    compiled: str = field(default="", repr=False)
    compiled_dialect: str = ""


class FileUses(Frozen):
    """What is used in one file, by the index in its text; and what of it could not be read."""

    script: Script
    uses: tuple[tuple[int, SqlUse], ...]
    unread: tuple[ParsedStatement, ...]
