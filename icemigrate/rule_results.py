"""What ``rules`` returns; beside :mod:`icemigrate.results`, for the same readers."""

from __future__ import annotations

from icemigrate.frozen import Frozen


class RuleStatus(Frozen):
    """A rule of ``check``.

    :param level: ``off``, ``note``, ``warning`` or ``error``, as the project has it.
    :param default: the level where the project file says nothing.
    :param finds: what it finds, in one sentence.
    :param options: what it goes by, as the project has it; an age is written as in the project file.
    """

    id: str
    name: str
    level: str
    default: str
    finds: str
    options: tuple[RuleOption, ...] = ()


class RuleOption(Frozen):
    """What a rule goes by beside its level; ``None`` where nobody said it and it finds nothing without."""

    key: str
    value: str | int | None
    says: str


class RulesResult(Frozen):
    """All rules, in the order of their ids."""

    project: str
    rules: tuple[RuleStatus, ...]
