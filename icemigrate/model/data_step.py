"""What a migration does to the rows of a table, as the declared side hands it on."""

from __future__ import annotations

from abc import ABC
from typing import ClassVar


class DataStep(ABC):
    """One data step of a migration file; no difference of metadata tells of it.

    Its kinds and all that they answer are in :mod:`icemigrate.data`.
    """

    __slots__ = ()

    kind: ClassVar[str]
    """Permanent name of the kind in plan files."""
