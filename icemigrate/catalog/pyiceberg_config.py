"""PyIceberg's own settings, without the file that a repository may hold."""

from __future__ import annotations

import os


def ignore_working_directory() -> None:
    """Keep PyIceberg from reading ``.pyiceberg.yaml`` in the working directory.

    It reads the first one of ``PYICEBERG_HOME``, the home folder and the working directory when it is
    imported (``pyiceberg.utils.config``).  A repository may hold one, which names catalogs and addresses.
    Call this before anything else of PyIceberg is imported; where it is not installed, nothing is done.
    """
    try:
        from pyiceberg.utils import config
    except ImportError:
        return
    vars(config)["os"] = _WithoutWorkingDirectory()


class _WithoutWorkingDirectory:
    """The module `os` as that file of PyIceberg sees it: the working directory has no name."""

    def __getattr__(self, name: str) -> object:
        return getattr(os, name)

    def getcwd(self) -> str:
        """No folder, so that nothing is looked for in it."""
        return ""
