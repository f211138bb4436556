"""Renames of tables and columns: given as hints, or asked about; never assumed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from icemigrate.desired_state.desired_table import DesiredTable
from icemigrate.desired_state.match_fields import FieldRenames, may_be_renamed, rename_option
from icemigrate.desired_state.match_tables import TableMatch
from icemigrate.diagnostics import Diagnostic, FilePosition, did_you_mean
from icemigrate.errors import UsageError
from icemigrate.frozen import Frozen, field
from icemigrate.iceberg.names import BadName, FieldPath, TableName, format_path
from icemigrate.iceberg.option_names import parse_rename
from icemigrate.iceberg.schema import schema_index
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.types import same_type

_FORMS = (
    "write `--rename namespace.table.old=new` for a column, "
    "`--rename namespace.old=namespace.new` for a table"
)


class Renames(Frozen):
    """The known renames.

    :param tables: declared names and the new ones.
    :param fields: by the declared name of the table.
    """

    tables: Mapping[TableName, TableName] = field(default_factory=dict)
    fields: Mapping[TableName, FieldRenames] = field(default_factory=dict)

    def with_field(self, table: TableName, path: FieldPath, name: str) -> Renames:
        """These and one of a field."""
        return Renames(self.tables, {**self.fields, table: {**self.fields.get(table, {}), path: name}})

    def with_table(self, old: TableName, new: TableName) -> Renames:
        """These and one of a table."""
        return Renames({**self.tables, old: new}, self.fields)


class RenameQuestion(Frozen):
    """Something new that may be something else renamed.

    :param table: its declared name before; of a table, that of the first candidate.
    :param new: the path of a new field; ``None`` for a table.
    :param new_name: the name to give.
    :param candidates: declared paths of fields, or names of tables.
    """

    table: TableName
    new: FieldPath | None
    new_name: str
    candidates: tuple[FieldPath, ...] | tuple[TableName, ...]
    place: FilePosition | None = None

    @property
    def subject(self) -> str:
        """What is new."""
        return self.new_name if self.new is None else f"{format_path(self.new)} of {self.table}"

    @property
    def candidate_texts(self) -> tuple[str, ...]:
        """The candidates as text."""
        return tuple(str(c) if isinstance(c, TableName) else format_path(c) for c in self.candidates)

    def options(self) -> Iterator[str]:
        """The options that say that it is renamed, one for each candidate."""
        for one in self.candidates:
            if isinstance(one, TableName):
                yield f"--rename {one}={self.new_name}"
            else:
                assert self.new is not None
                yield rename_option(self.table, one, self.new[-1])

    def renames(self, known: Renames, index: int) -> Renames:
        """The renames with the answer that a candidate is meant."""
        chosen = self.candidates[index]
        if isinstance(chosen, TableName):
            return known.with_table(chosen, TableName.parse(self.new_name))
        assert self.new is not None
        return known.with_field(self.table, chosen, self.new[-1])

    def diagnostic(self) -> Diagnostic:
        """The report of a rename that no hint decides."""
        shown = [f"`{option}`" for option in self.options()][:_MOST_OPTIONS]
        lost = " or ".join(f"`{text}`" for text in self.candidate_texts[:_MOST_OPTIONS])
        what = "table" if self.new is None else "column"
        message = f"`{self.subject}` is new and {lost} is missing: the {what} may be renamed"
        hint = f"{' or '.join(shown)} renames it and keeps its values; `--no-renames` adds a new {what}"
        return Diagnostic("ambiguous-rename", message, self.place, hint)


_MOST_OPTIONS = 4
"""How many candidates one message names."""


def parse_renames(
    hints: Iterable[str], declared: Mapping[TableName, Table], compared: Sequence[TableName]
) -> Renames:
    """Read ``old=new``.

    :param declared: the tables before the migration.
    :param compared: names of the desired tables; with only one, a column needs no table before it.
    :raises UsageError: a hint has another form, or names no declared table or column.
    """
    found = Renames()
    for hint in hints:
        old, new = _sides(hint)
        if len(new) > 1:
            found = _with_table(found, hint, old, new, declared)
            continue
        table, path = _declared_field(hint, old, declared, compared)
        found = found.with_field(table, path, new[0])
    return found


def _sides(hint: str) -> tuple[FieldPath, FieldPath]:
    try:
        old, new = parse_rename(hint)
    except BadName as error:
        raise UsageError(f"`--rename {hint}`: {error}", _FORMS) from error
    if new is None:
        raise UsageError(f"`--rename {hint}` is no rename", _FORMS)
    return old, new


def _with_table(
    found: Renames, hint: str, old: FieldPath, new: FieldPath, declared: Mapping[TableName, Table]
) -> Renames:
    name = TableName(old[:-1], old[-1])
    if name not in declared:
        near = did_you_mean(str(name), map(str, declared)) or _FORMS
        raise UsageError(f"`--rename {hint}`: there is no declared table `{name}`", near)
    return found.with_table(name, TableName(new[:-1], new[-1]))


def _declared_field(
    hint: str, old: FieldPath, declared: Mapping[TableName, Table], compared: Sequence[TableName]
) -> tuple[TableName, FieldPath]:
    for length in range(len(old) - 1, 1, -1):
        name = TableName(old[: length - 1], old[length - 1])
        if name in declared:
            return name, _known_path(hint, declared[name], old[length:])
    if len(compared) == 1 and compared[0] in declared:
        return compared[0], _known_path(hint, declared[compared[0]], old)
    raise UsageError(f"`--rename {hint}`: `{format_path(old)}` begins with no declared table", _FORMS)


def _known_path(hint: str, table: Table, path: FieldPath) -> FieldPath:
    if table.schema.find(path) is None:
        known = [format_path(entry.path) for entry in schema_index(table.schema).values()]
        near = did_you_mean(format_path(path), known)
        raise UsageError(
            f"`--rename {hint}`: `{table.name}` has no column `{format_path(path)}`",
            near or f"`icemigrate show {table.name}` prints its columns",
        )
    return path


def require_used(renames: Renames, matches: Iterable[TableMatch], desired: Collection[TableName]) -> None:
    """Refuse a hint whose new name no source has.

    :raises UsageError: such a hint.
    """
    for old, new in renames.tables.items():
        if new not in desired:
            raise UsageError(
                f"`--rename {old}={new}`: the desired state has no table `{new}`",
                did_you_mean(str(new), map(str, desired)),
            )
    after = {m.before.name: m.after for m in matches if m.before is not None}
    for table, fields in renames.fields.items():
        if table not in after:
            raise UsageError(f"`--rename`: `{table}` is not compared", "remove the hint, or add the table")
        names = {f.id: f.name for _, f in after[table].schema.walk()}
        before = next(m.before for m in matches if m.before is not None and m.before.name == table)
        for path, name in fields.items():
            was = before.schema.find(path)
            if was is None or names.get(was.id) != name:
                raise UsageError(
                    f"`{rename_option(table, path, name)}`: the desired table has no column "
                    f"`{format_path((*path[:-1], name))}`",
                    "the new name must be in the desired state",
                )


def open_questions(
    matches: Iterable[TableMatch], gone: Sequence[Table], is_declined: Collection[str] = ()
) -> Iterator[RenameQuestion]:
    """Renames that no hint decides.

    :param gone: declared tables that the desired state does not have.
    :param is_declined: subjects of the questions that were answered with no.
    """
    for match in matches:
        if match.before is None:
            question = _of_table(match.desired, gone)
            if question is not None and question.subject not in is_declined:
                yield question
            continue
        for new in match.added:
            found = tuple(
                old.path
                for old in match.vanished
                if may_be_renamed(old, new, match.desired, match.after.format_version)
            )
            if not found:
                continue
            place = match.desired.place_of(new.field.id)
            asked = RenameQuestion(match.before.name, new.path, new.path[-1], found, place)
            if asked.subject not in is_declined:
                yield asked


def _of_table(desired: DesiredTable, gone: Sequence[Table]) -> RenameQuestion | None:
    found = tuple(table.name for table in gone if _are_alike(table, desired.table))
    if not found:
        return None
    return RenameQuestion(found[0], None, str(desired.name), found, desired.place)


def _are_alike(old: Table, new: Table) -> bool:
    """Whether at least half of the columns of each table are in the other, by name and type."""
    types = {f.name: f.type for f in old.schema.fields}
    common = sum(f.name in types and same_type(types[f.name], f.type) for f in new.schema.fields)
    return 2 * common >= max(len(types), len(new.schema.fields))
