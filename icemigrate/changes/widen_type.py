"""Promotion of a field's type; every other change of a type is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from icemigrate.changes.alter_column import AlterColumnChange
from icemigrate.changes.change import (
    ChangePhase,
    PlanProblem,
    Reversal,
    Reversibility,
    Subject,
    TablePair,
    TablePart,
    WriterImpact,
)
from icemigrate.changes.field_changes import is_reshaped
from icemigrate.frozen import replace
from icemigrate.iceberg.names import format_path
from icemigrate.iceberg.partitioning import PartitionField, SortField, can_promote_source, reads_as_same
from icemigrate.iceberg.snapshot_writers import WriterKind
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.type_promotions import is_promotion, is_read_back, promoted_default, promotion_since
from icemigrate.iceberg.type_text import format_type
from icemigrate.iceberg.types import Decimal, Field, Primitive, Struct, Type, is_nested
from icemigrate.spark_sql.type_sql import spark_type

_DATE, _UNKNOWN = Primitive("date"), Primitive("unknown")
_WIDER = {
    "int": "`long`",
    "float": "`double`",
    "date": "`timestamp` or `timestamp_ns` (format version 3)",
    "unknown": "any type without fields below it (format version 3)",
}


class WidenType(AlterColumnChange):
    """Change a field's type by a promotion.

    A change of the kind of nesting is also one (always refused), and covers the nested fields.
    """

    kind: ClassVar[str] = "widen_type"
    compares: ClassVar[frozenset[TablePart]] = frozenset({"fields"})
    phase: ClassVar[ChangePhase] = ChangePhase.ALTER

    old: Type
    new: Type

    @classmethod
    def detect(cls, pair: TablePair) -> Iterator[WidenType]:
        if pair.both is None:
            return
        for before, after in pair.altered:
            old, new = before.field.type, after.field.type
            if is_reshaped(old, new) or (not is_nested(old) and old != new):
                yield cls(pair.both[0].name, after.field.id, after.path, old, new)

    @property
    def subject(self) -> Subject:
        return self.column_subject("type")

    def apply(self, table: Table) -> Table:
        return self.edit(table, self._widened)

    def _widened(self, field: Field) -> Field:
        initial, write = (
            promoted_default(value, self.old, self.new)
            for value in (field.initial_default, field.write_default)
        )
        return replace(field, type=self.new, initial_default=initial, write_default=write)

    def action(self) -> str | None:
        """The clause; ``None`` for promotions of format version 3, which Iceberg's schema API refuses too."""
        type_ = spark_type(self.new)
        return None if self.old in (_DATE, _UNKNOWN) or type_ is None else f"TYPE {type_}"

    def commit_text(self) -> str:
        return f"widen {self.describe()}"

    def problems(self, before: Table) -> Iterator[PlanProblem]:
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
            # An upgrade is irreversible, so it is suggested only if it helps.
            yield self._problem(
                "promotion-needs-v3",
                f"format version {before.format_version} does not allow {self._from_to()}",
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

    def _kept_transforms(self, before: Table) -> Iterator[PlanProblem]:
        """Transforms that block a promotion or its undo, although they produce the same values."""
        if promotion_since(self.old, self.new) is None and promotion_since(self.new, self.old) is None:
            return
        terms: list[tuple[str, str, PartitionField | SortField]] = [
            *((f"partitioned by {f.transform} as `{f.name}`", "partition_by", f) for f in before.spec.live),
            *((f"sorted by its {f.transform}", "sort_by", f) for f in before.sort_order.fields),
        ]
        for what, key, term in terms:
            if self.field_id in term.source_ids and not can_promote_source(
                term.transform, self.old, self.new
            ):
                yield self._problem(
                    "promotion-keeps-transform",
                    f"the table is {what}; the format allows {self._from_to()}, but Iceberg's library refuses"
                    " it with this transform",
                    f"remove the transform from `{key}` in this migration, and add it again in the next",
                )

    def _no_promotion(self, before: Table) -> PlanProblem:
        name = format_path(self.path)
        wider = _WIDER.get(self.old.name) if isinstance(self.old, Primitive) else None
        if isinstance(self.old, Decimal):
            wider = f"a decimal of more digits and the same scale ({self.old.scale})"
        can = f"`{format_type(self.old)}` may only become {wider}" if wider else ""
        anew = (
            f"to replace the column, list `{name}` in `drop_columns` and in `columns`: it gets a new field id"
            " and loses its old values"
        )
        if self._can_be_retyped(before):
            to = format_type(self.new)
            to = to if to.isidentifier() else f'"{to}"'
            anew = (
                f"`retype: {{{name}: {{to: {to}, using: …}}}}` keeps its values, computed by `using`; {anew}"
            )
        message = f"no format version allows {self._from_to()}"
        return self._problem("no-promotion", message, f"{can}; {anew}" if can else anew)

    def _not_read_back(self, before: Table) -> PlanProblem:
        return self._problem(
            "promotion-not-read",
            f"the table has rows, and Iceberg's library cannot read them after {self._from_to()}: Spark"
            " fails, or reads days as microseconds",
            self._made_anew(before),
        )

    def _can_be_retyped(self, before: Table) -> bool:
        """Whether it is a column or a field of structs, and not part of a list or a map."""
        return all(isinstance(above.type, Struct) for above in before.schema.line_to(self.field_id)[:-1])

    def _made_anew(self, before: Table) -> str:
        name, new, in_spark = format_path(self.path), format_type(self.new), spark_type(self.new)
        is_plain = all(part.isidentifier() for part in self.path)
        if in_spark is None or not is_plain or not self._can_be_retyped(before):
            return f"add a new column of type `{new}`, fill it from `{name}`, and drop `{name}` later"
        retype = f"retype: {{{name}: {{to: {new}, using: cast({name} as {in_spark})}}}}"
        return f"write `{retype}` instead, which replaces the column and fills the new one"

    def _partitioned_by(self, field: PartitionField) -> PlanProblem:
        return self._problem(
            "promotion-changes-partitions",
            f"the table is partitioned by {field.transform} of `{format_path(self.path)}` as `{field.name}`,"
            f" which has different values for a `{format_type(self.new)}`",
            f"remove `{field.name}` from `partition_by` first",
        )

    def _from_to(self) -> str:
        old, new = format_type(self.old), format_type(self.new)
        return f"the change of `{format_path(self.path)}` from `{old}` to `{new}`"

    def _problem(self, rule: str, message: str, hint: str) -> PlanProblem:
        return PlanProblem(rule, self.table, self.subject, message, hint)

    def writer_impacts(self) -> tuple[WriterImpact, ...]:
        return (
            WriterImpact(
                WriterKind.STREAMS,
                f"keeps writing `{format_path(self.path)}` with the type that it started with",
            ),
        )

    def reversal(self, before: Table) -> Reversal:
        narrow = format_type(self.old)
        if is_promotion(self.new, self.old, before.format_version) and is_read_back(self.new, self.old):
            # Only an undo or a reconcile narrows a type.
            return Reversal(
                Reversibility.YES, f"undoing makes it `{narrow}`, as which every file can be read"
            )
        return Reversal(
            Reversibility.WHILE,
            f"no file is added: files written as `{format_type(self.new)}` cannot be read as `{narrow}`",
        )

    def describe(self) -> str:
        return f"{format_path(self.path)} {format_type(self.old)} → {format_type(self.new)}"
