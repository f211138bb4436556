"""Keeps PyIceberg from reading a configuration file of the repository."""

from __future__ import annotations

import os


def ignore_working_directory() -> None:
    """Keep PyIceberg from reading ``.pyiceberg.yaml`` in the working directory.

    On import (``pyiceberg.utils.config``) it reads the first one of ``PYICEBERG_HOME``, the home folder and
    the working directory.  A repository may contain one with catalogs and addresses.  Call this before any
    import of PyIceberg; without PyIceberg it does nothing.
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
        """An empty path, so that no file is found in it."""
        return ""
