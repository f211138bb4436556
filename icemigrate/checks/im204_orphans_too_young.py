"""Files that no snapshot knows are cleaned up at an age at which a write may still need them.

## Why

A write makes its files first and commits them last. Until then nothing knows them, and whoever cleans up
takes them for orphans; the commit then names files that are gone, and the table cannot be read. So an orphan
must be older than any write goes on: three days unless the project says another age, as in Iceberg's own
`remove_orphan_files`. Amoro cleans by properties of the table, after two days by itself. What the project
says here holds for `icemigrate maintain --orphans` too, where it is more than three days.

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

Take the longest job that writes to the table, restarts included, and give it a day more.
"""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.checks.base import Finding, Level, Option, Options, Rule, Touched
from icemigrate.model.retention import LEAST_ORPHAN_AGE, format_duration

# https://amoro.apache.org/docs/latest/configurations/, "Data-cleaning configurations"; the first was called
# `enable` once.
_SWITCHES = ("clean-orphan-file.enabled", "clean-orphan-file.enable")
_AGE = "clean-orphan-file.min-existing-time-minutes"
_AGE_BY_ITSELF = "2880"
_MINUTE_MS = 60_000


def find(touched: Touched, options: Options) -> Iterator[Finding]:
    """A cleaning that is switched on anew, or gets another age, below the age of a write."""
    new, least = touched.new_properties, options.get("at_least")
    if touched.after is None or not isinstance(least, int):
        return
    properties = touched.after.properties
    on = next((key for key in _SWITCHES if properties.get(key, "").lower() == "true"), None)
    written = properties.get(_AGE, _AGE_BY_ITSELF)
    if on is None or not {on, _AGE} & new.keys() or not written.isdecimal():
        return
    age = int(written) * _MINUTE_MS
    if age < least:
        yield touched.finding(
            ("properties", _AGE if _AGE in new else on),
            f"files of `{touched.name}` that no snapshot knows are removed after {format_duration(age)}; "
            f"a write may go on for {format_duration(least)}",
            f"set `{_AGE}` to {-(-least // _MINUTE_MS)} or more",
        )


RULE = Rule(
    "IM204",
    "orphans-too-young",
    Level.WARNING,
    __doc__,
    find,
    (Option("at_least", LEAST_ORPHAN_AGE, "how long a write may go on, `3d` by itself"),),
)
