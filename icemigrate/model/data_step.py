"""What a migration does to the rows of a table, as the declared side hands it on."""

from __future__ import annotations

from typing import ClassVar

from icemigrate.frozen import AbstractFrozen


class DataStep(AbstractFrozen):
    """One data step of a migration file; no difference of metadata tells of it.

    Its kinds and all that they answer are in :mod:`icemigrate.data`.
    """

    kind: ClassVar[str]
    """Permanent name of the kind in plan files."""
