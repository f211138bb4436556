"""SQL of a file, with the position of each character in the file.

Templates and string literals are converted to SQL that can be parsed; every character keeps the index that
it, or its source, has in the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class SqlFragment:
    """SQL of a file.

    :param indexes: index in the file of each character; a range where the text is unchanged.
    """

    text: str
    indexes: Sequence[int] = field(repr=False)

    @classmethod
    def whole(cls, text: str) -> SqlFragment:
        """A file that is SQL from end to end."""
        return cls(text, range(len(text)))

    def index(self, at: int) -> int:
        """The index in the file of a character of the text."""
        if not self.indexes:
            return 0
        return self.indexes[min(at, len(self.indexes) - 1)]

    def inside(self, outer: SqlFragment) -> SqlFragment:
        """The same SQL, where the indexes so far are those of another fragment's text."""
        return SqlFragment(self.text, [outer.index(at) for at in self.indexes])


@dataclass(slots=True)
class FragmentBuilder:
    """A fragment that is being put together."""

    parts: list[str] = field(default_factory=list)
    indexes: list[int] = field(default_factory=list)

    def copy(self, text: str, at: int) -> None:
        """Append characters that are unchanged in the file, from ``at`` on."""
        self.parts.append(text)
        self.indexes.extend(range(at, at + len(text)))

    def put(self, text: str, at: int) -> None:
        """Append characters that all come from ``at``."""
        self.parts.append(text)
        self.indexes.extend([at] * len(text))

    def append(self, fragment: SqlFragment) -> None:
        """Characters that have their indexes already."""
        self.parts.append(fragment.text)
        self.indexes.extend(fragment.indexes)

    def tail(self) -> str:
        """The last characters, some two hundred where there are as many."""
        found = ""
        for part in reversed(self.parts):
            found = part[-200:] + found
            if len(found) >= 200:
                break
        return found

    def built(self) -> SqlFragment:
        """The fragment."""
        return SqlFragment("".join(self.parts), self.indexes)
