"""A field whose type becomes wider; and every other change of a type, which is refused here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from icemigrate.changes.alteration import Alteration
from icemigrate.changes.base import (
    Harm,
    Pair,
    Phase,
    Problem,
    Reversal,
    Reversible,
    Subject,
)
from icemigrate.changes.fields import is_reshaped
from icemigrate.frozen import replace
from icemigrate.model.names import format_path
from icemigrate.model.partitioning import PartitionField, is_taken_along, reads_as_same
from icemigrate.model.promotions import is_promotion, is_read_back, promoted_default, promotion_since
from icemigrate.model.sorting import SortField
from icemigrate.model.table import Table
from icemigrate.model.type_text import format_type
from icemigrate.model.types import Decimal, Field, Primitive, Struct, Type, is_nested
from icemigrate.model.writers import Whom
from icemigrate.sql.types import spark_type

_DATE, _UNKNOWN = Primitive("date"), Primitive("unknown")
_WIDER = {
    "int": "`long`",
    "float": "`double`",
    "date": "`timestamp` or `timestamp_ns` (format version 3)",
    "unknown": "any type without fields below it (format version 3)",
}


class WidenType(Alteration):
    """Give a field another type, which must be a promotion.

    A change of the kind of nesting is one of these too (never a legal one); its children then
    belong to it and are no changes of their own.
    """

    kind: ClassVar[str] = "widen_type"
    phase: ClassVar[Phase] = Phase.ALTER

    old: Type
    new: Type

    @classmethod
    def detect(cls, pair: Pair) -> Iterator[WidenType]:
        if pair.both is None:
            return
        for before, after in pair.altered:
            old, new = before.field.type, after.field.type
            if is_reshaped(old, new) or (not is_nested(old) and old != new):
                yield cls(pair.both[0].name, after.field.id, after.path, old, new)

    @property
    def subject(self) -> Subject:
        return self.of_column("type")

    def apply(self, table: Table) -> Table:
        return self.edit(table, self._widened)

    def _widened(self, field: Field) -> Field:
        initial, write = (
            promoted_default(value, self.old, self.new)
            for value in (field.initial_default, field.write_default)
        )
        return replace(field, type=self.new, initial_default=initial, write_default=write)

    def action(self) -> str | None:
        """The type, but for the promotions of format version 3, which Iceberg's own API refuses as well."""
        type_ = spark_type(self.new)
        return None if self.old in (_DATE, _UNKNOWN) or type_ is None else f"TYPE {type_}"

    def commit_text(self) -> str:
        return f"widen {self.describe()}"

    def problems(self, before: Table) -> Iterator[Problem]:
        in_map_key = tuple(self.map_key_problem(before))
        yield from in_map_key
        if in_map_key:
            return
        since = promotion_since(self.old, self.new)
        if since is None:
            yield from self._kept_transforms(before)
            yield self._no_promotion(before)
            return
        is_unread = before.has_rows and not is_read_back(self.old, self.new)
        if before.format_version < since:
            # Where an upgrade, which is for good, would not help, it is not offered.
            yield self._problem(
                "promotion-needs-v3",
                f"format version {before.format_version} does not let {self._from_to()}",
                self._made_anew(before)
                if is_unread
                else f"declare `format_version: {since}` for the table, which cannot be undone",
            )
        elif is_unread:
            yield self._not_read_back(before)
        if not is_unread:
            yield from self._kept_transforms(before)
        for field in before.spec.live:
            if self.field_id in field.source_ids and not reads_as_same(field.transform, self.old, self.new):
                yield self._partitioned_by(field)

    def _kept_transforms(self, before: Table) -> Iterator[Problem]:
        """Transforms in the way of a promotion or of its undo, though they give the same values."""
        if promotion_since(self.old, self.new) is None and promotion_since(self.new, self.old) is None:
            return
        terms: list[tuple[str, str, PartitionField | SortField]] = [
            *((f"partitioned by {f.transform} as `{f.name}`", "partition_by", f) for f in before.spec.live),
            *((f"sorted by its {f.transform}", "sort_by", f) for f in before.sort_order.fields),
        ]
        for what, key, term in terms:
            if self.field_id in term.source_ids and not is_taken_along(term.transform, self.old, self.new):
                yield self._problem(
                    "promotion-keeps-transform",
                    f"the table is {what}, and Iceberg's library, though the format allows it, does not let"
                    f" {self._from_to()} meanwhile",
                    f"write `{key}` without it in this migration, and with it again in the next",
                )

    def _no_promotion(self, before: Table) -> Problem:
        name = format_path(self.path)
        wider = _WIDER.get(self.old.name) if isinstance(self.old, Primitive) else None
        if isinstance(self.old, Decimal):
            wider = f"a decimal of more digits and the same scale ({self.old.scale})"
        can = f"`{format_type(self.old)}` may only become {wider}" if wider else ""
        anew = (
            f"to make it anew, name `{name}` in `drop_columns` and in `columns`: it then gets a new field id,"
            " and its old values can no longer be read"
        )
        if self._can_be_retyped(before):
            to = format_type(self.new)
            to = to if to.isidentifier() else f'"{to}"'
            anew = (
                f"`retype: {{{name}: {{to: {to}, using: …}}}}` keeps its values, computed by `using`; {anew}"
            )
        message = f"no format version lets {self._from_to()}"
        return self._problem("no-promotion", message, f"{can}; {anew}" if can else anew)

    def _not_read_back(self, before: Table) -> Problem:
        return self._problem(
            "promotion-not-read",
            f"the table has rows, and Iceberg's library cannot read them if it lets {self._from_to()}: Spark"
            " fails on them, or takes days for microseconds",
            self._made_anew(before),
        )

    def _can_be_retyped(self, before: Table) -> bool:
        """Whether it is a column, or a field of structs alone: a part of a list or a map is not."""
        return all(isinstance(above.type, Struct) for above in before.schema.line_to(self.field_id)[:-1])

    def _made_anew(self, before: Table) -> str:
        name, new, in_spark = format_path(self.path), format_type(self.new), spark_type(self.new)
        is_plain = all(part.isidentifier() for part in self.path)
        if in_spark is None or not is_plain or not self._can_be_retyped(before):
            return f"add a new column of type `{new}`, fill it from `{name}`, and drop that one later"
        retype = f"retype: {{{name}: {{to: {new}, using: cast({name} as {in_spark})}}}}"
        return f"write `{retype}` instead, which makes the column anew and fills it"

    def _partitioned_by(self, field: PartitionField) -> Problem:
        return self._problem(
            "promotion-changes-partitions",
            f"`{format_path(self.path)}` is partitioned by {field.transform} as `{field.name}`, which gives"
            f" other values for a `{format_type(self.new)}`",
            f"take `{field.name}` out of `partition_by` first",
        )

    def _from_to(self) -> str:
        return f"`{format_path(self.path)}` go from `{format_type(self.old)}` to `{format_type(self.new)}`"

    def _problem(self, rule: str, message: str, hint: str) -> Problem:
        return Problem(rule, self.table, self.subject, message, hint)

    def harms(self) -> tuple[Harm, ...]:
        return (Harm(Whom.STREAMS, f"goes on writing `{format_path(self.path)}` as it was when it started"),)

    def reversal(self, before: Table) -> Reversal:
        narrow = format_type(self.old)
        if is_promotion(self.new, self.old, before.format_version) and is_read_back(self.new, self.old):
            # No migration narrows a type; what leads back one that others made wider does.
            return Reversal(Reversible.YES, f"undoing makes it `{narrow}` again, which reads every file")
        return Reversal(
            Reversible.WHILE,
            f"no file was added since: one that was is unreadable as `{narrow}`, whatever it holds",
        )

    def describe(self) -> str:
        return f"{format_path(self.path)} {format_type(self.old)} → {format_type(self.new)}"
