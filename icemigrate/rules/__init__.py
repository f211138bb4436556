"""Rules of ``check``: warnings about migrations that are valid but risky.

Each rule is one file, see :mod:`icemigrate.rules.rule`; this package lists them in the order of their ids.
"""

from __future__ import annotations

from icemigrate.rules import (
    im101_destructive,
    im102_rename,
    im103_retype,
    im104_drop,
    im105_required,
    im106_irreversible,
    im107_rows_and_schema,
    im108_name_reused,
    im109_name_taken_over,
    im110_made_optional,
    im111_breaks_sql,
    im112_may_break_sql,
    im113_retyped_in_sql,
    im114_sql_not_read,
    im201_rows_kept_too_short,
    im202_snapshots_kept_too_short,
    im203_rows_go_earlier,
    im204_orphans_too_young,
    im301_too_many_partitions,
    im302_high_cardinality,
    im303_several_times,
    im304_rewrite_ends_return,
    im401_naming,
    im402_missing_description,
    im403_timestamp_without_zone,
    im404_float_for_money,
    im405_unfilled_column,
    im501_unknown_property,
    im502_property_value,
    im901_ignore_without_reason,
    im902_ignores_nothing,
    im903_ignore_not_understood,
)
from icemigrate.rules.rule import Rule

RULES: tuple[Rule, ...] = (
    im101_destructive.RULE,
    im102_rename.RULE,
    im103_retype.RULE,
    im104_drop.RULE,
    im105_required.RULE,
    im106_irreversible.RULE,
    im107_rows_and_schema.RULE,
    im108_name_reused.RULE,
    im109_name_taken_over.RULE,
    im110_made_optional.RULE,
    im111_breaks_sql.RULE,
    im112_may_break_sql.RULE,
    im113_retyped_in_sql.RULE,
    im114_sql_not_read.RULE,
    im201_rows_kept_too_short.RULE,
    im202_snapshots_kept_too_short.RULE,
    im203_rows_go_earlier.RULE,
    im204_orphans_too_young.RULE,
    im301_too_many_partitions.RULE,
    im302_high_cardinality.RULE,
    im303_several_times.RULE,
    im304_rewrite_ends_return.RULE,
    im401_naming.RULE,
    im402_missing_description.RULE,
    im403_timestamp_without_zone.RULE,
    im404_float_for_money.RULE,
    im405_unfilled_column.RULE,
    im501_unknown_property.RULE,
    im502_property_value.RULE,
    im901_ignore_without_reason.RULE,
    im902_ignores_nothing.RULE,
    im903_ignore_not_understood.RULE,
)
"""All rules."""

RULES_BY_NAME: dict[str, Rule] = {word: rule for rule in RULES for word in (rule.id, rule.name)}
"""Rules by id and by name."""


def find_rule(word: str) -> Rule | None:
    """The rule with an id (in any case) or a name; ``None`` if there is none."""
    return RULES_BY_NAME.get(word) or RULES_BY_NAME.get(word.upper()) or RULES_BY_NAME.get(word.lower())
