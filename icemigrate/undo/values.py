"""What an undo is told, and what it finds in the way."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from icemigrate.changes.base import Subject
from icemigrate.frozen import Frozen
from icemigrate.model.table import Table
from icemigrate.model.undo_record import TableUndo

Key: TypeAlias = tuple[str, ...]
"""A fact that stays as the migration left it, as ``("type", "7")``; see :mod:`icemigrate.undo.keeping`."""


class Unanswered(Exception):
    """A question about files was not answered: a bug in the caller."""


class Options(Frozen):
    """What the user wants of an undo.

    :param partial: what cannot be undone stays, and the rest is undone.
    :param discard_new_data: rows written since a migration that changed rows are given up.
    :param metadata_only: the rows of a migration that changed rows stay as they are.
    :param apart: a run that failed takes back what it did: what it made goes into the trash under a name that
        no other try uses, since the file may be tried again under the same version; and nothing is brought
        back without its values.
    :param taken_back: what the summaries of the snapshots say that migrations made which the same plan takes
        back before: rows that these wrote are none that would be lost.
    :param refill: values that the files do not hold any more are brought back from a tag that keeps them;
        ``None``: only where an earlier try has begun that.
    """

    partial: bool = False
    discard_new_data: bool = False
    metadata_only: bool = False
    apart: bool = False
    taken_back: frozenset[str] = frozenset()
    refill: bool | None = None


PLAIN = Options()


class Refusal(Frozen):
    """A fact of the migration that cannot be undone.

    :param key: what stays then.
    :param rule: permanent identifier.
    :param what: the fact, as it is named in a message.
    :param verdict: what cannot be, as it follows on :attr:`what`.
    :param why: the reason, in words that facts of one kind share.
    :param stays: what stays, in a few words.
    """

    key: Key
    rule: str
    subject: Subject
    what: str
    verdict: str
    why: str
    stays: str


class Refused(Frozen):
    """Facts that cannot be undone for one reason, told as one: a table may have hundreds of columns."""

    facts: tuple[Refusal, ...]

    @property
    def rule(self) -> str:
        """Permanent identifier."""
        return self.facts[0].rule

    @property
    def subject(self) -> Subject:
        """Where the first one is declared."""
        return self.facts[0].subject

    @property
    def message(self) -> str:
        """The reason."""
        first = self.facts[0]
        return f"{', '.join(f.what for f in self.facts)} {first.verdict}: {first.why}"

    @property
    def stays(self) -> str:
        """What stays, in a few words."""
        return ", ".join(f.stays for f in self.facts)


def by_reason(refusals: Iterable[Refusal]) -> tuple[Refused, ...]:
    """Refusals put together as far as they say the same."""
    groups: dict[tuple[str, str, str], list[Refusal]] = {}
    for refusal in refusals:
        groups.setdefault((refusal.rule, refusal.verdict, refusal.why), []).append(refusal)
    return tuple(Refused(tuple(group)) for group in groups.values())


def both_sides(undo: TableUndo) -> tuple[Table, Table]:
    """A table as declared before and after the migration; only for one that is there on both sides."""
    before, after = undo.before, undo.after
    assert before is not None, "it was declared before the migration"
    assert after is not None, "it is declared after the migration"
    return before, after
