"""SQL as it stands in a file, and where each of its characters stands there.

Templates and string literals are turned into SQL that can be parsed; every character keeps the index that it,
or what it stands for, has in the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Fragment:
    """SQL of a file.

    :param indexes: where in the file each character stands; a range where the text is the file's own.
    """

    text: str
    indexes: Sequence[int] = field(repr=False)

    @classmethod
    def whole(cls, text: str) -> Fragment:
        """A file that is SQL from end to end."""
        return cls(text, range(len(text)))

    def index(self, at: int) -> int:
        """Where in the file a character of the text stands."""
        if not self.indexes:
            return 0
        return self.indexes[min(at, len(self.indexes) - 1)]


@dataclass(slots=True)
class Building:
    """A fragment that is being put together."""

    parts: list[str] = field(default_factory=list)
    indexes: list[int] = field(default_factory=list)

    def copy(self, text: str, at: int) -> None:
        """Characters that stand in the file as they are, from ``at`` on."""
        self.parts.append(text)
        self.indexes.extend(range(at, at + len(text)))

    def put(self, text: str, at: int) -> None:
        """Characters that all stand for what is at ``at``."""
        self.parts.append(text)
        self.indexes.extend([at] * len(text))

    def built(self) -> Fragment:
        """The fragment."""
        return Fragment("".join(self.parts), self.indexes)
