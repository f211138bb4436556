"""Uses in the code that dbt compiled of a model, at their places in the file of the model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from icemigrate.frozen import replace
from icemigrate.sql_impact.affected import AffectedObject
from icemigrate.sql_impact.jinja_templates import Template
from icemigrate.sql_impact.query_uses import QueryReader, SqlUse

Key = tuple[int, AffectedObject]


def find_compiled_uses(
    template: Template, uses: Mapping[Key, SqlUse], compiled: Sequence[QueryReader]
) -> Iterator[tuple[Key, SqlUse]]:
    """The uses that only the compiled code shows for certain.

    What the file itself shows is never taken back: it has all branches of its conditions.

    :param uses: those in the file.
    :param compiled: the readers of the compiled code.
    """
    shown = [use for reader in compiled for use in reader.uses.values() if not use.by_position]
    sure = Counter(use.affected for use in shown if use.is_sure)
    in_config = {at for one in template.literals if one.function == "config" for at in one.text.indexes}
    for affected in dict.fromkeys(use.affected for use in shown):
        mine = [(key, use) for key, use in uses.items() if key[1] == affected and not use.by_position]
        if sum(use.is_sure for _, use in mine) >= max(sure[affected], 1):
            continue
        possible = [(key, use) for key, use in mine if not use.is_sure and key[0] not in in_config]
        if not possible and not any(use.is_sure for _, use in mine):
            best = max((use for use in shown if use.affected == affected), key=lambda use: use.is_sure)
            yield (template.first_macro, affected), best
        for key, use in possible if sure[affected] else ():
            yield key, replace(use, is_sure=True)
