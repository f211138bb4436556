"""What ``import`` came to."""

from __future__ import annotations

from icemigrate.frozen import Frozen


class ImportResult(Frozen):
    """What ``import`` wrote.

    :param path: of the new file, as the user would type it; ``None`` where none was written.
    :param tables: declared names of the tables that it takes in.
    :param content: the file's text.
    :param notes: what was left out, and what of a table no file can say.
    """

    project: str
    environment: str
    path: str | None
    tables: tuple[str, ...]
    content: str
    notes: tuple[str, ...] = ()
