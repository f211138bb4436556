"""Orphan files are removed at an age at which a write may still need them.

## Why

A write creates its files first and commits them last. Until the commit, no snapshot refers to them, and a
cleanup takes them for orphans; the commit then refers to missing files, and the table cannot be read.
Therefore an orphan file must be older than the longest write: three days by default, as in Iceberg's own
`remove_orphan_files`. Amoro removes orphan files according to table properties, by default after two days. A
value above three days also applies to `icemigrate maintain --orphans`.

```yaml
rules:
  IM204: {at_least: 7d}
```

## Bad

```yaml
tables:
  - name: db.orders
    columns: [{name: id, type: long}]
    properties: {clean-orphan-file.enabled: true, clean-orphan-file.min-existing-time-minutes: 60}
```

## Good

```yaml
tables:
  - name: db.orders
    columns: [{name: id, type: long}]
    properties: {clean-orphan-file.enabled: true, clean-orphan-file.min-existing-time-minutes: 10080}
```

## Instead

Take the duration of the longest job that writes to the table, including restarts, and add a day.
"""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.iceberg.retention import LEAST_ORPHAN_AGE, format_duration
from icemigrate.rules.rule import ChangedTable, Rule, RuleFinding, RuleLevel, RuleOptions, RuleOptionSpec

# https://amoro.apache.org/docs/latest/configurations/, "Data-cleaning configurations"; older versions have
# `enable` instead of `enabled`.
_SWITCHES = ("clean-orphan-file.enabled", "clean-orphan-file.enable")
_AGE = "clean-orphan-file.min-existing-time-minutes"
_DEFAULT_AGE_MINUTES = "2880"
_MINUTE_MS = 60_000


def find_young_orphan_removal(changed: ChangedTable, options: RuleOptions) -> Iterator[RuleFinding]:
    """A cleanup that is newly enabled, or gets a new age, below the minimum."""
    new, least = changed.new_properties, options.get("at_least")
    if changed.after is None or not isinstance(least, int):
        return
    properties = changed.after.properties
    on = next((key for key in _SWITCHES if properties.get(key, "").lower() == "true"), None)
    written = properties.get(_AGE, _DEFAULT_AGE_MINUTES)
    if on is None or not {on, _AGE} & new.keys() or not written.isdecimal():
        return
    age = int(written) * _MINUTE_MS
    if age < least:
        yield changed.finding(
            ("properties", _AGE if _AGE in new else on),
            f"orphan files of `{changed.name}` are removed after {format_duration(age)}; "
            f"a write may take {format_duration(least)}",
            f"set `{_AGE}` to {-(-least // _MINUTE_MS)} or more",
        )


RULE = Rule(
    "IM204",
    "orphans-too-young",
    RuleLevel.WARNING,
    __doc__,
    find_young_orphan_removal,
    (RuleOptionSpec("at_least", LEAST_ORPHAN_AGE, "how long a write may take; the default is `3d`"),),
    inspects=frozenset({"properties"}),
)
