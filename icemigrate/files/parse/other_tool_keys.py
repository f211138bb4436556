"""Keys of SQL, Flyway, Liquibase, Alembic, dbt and Terraform, and the keys to write instead.

A key of another tool is a better clue than its spelling: ``add_columns`` is spelt like ``drop_columns``, and
means the opposite.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from string import Template

from icemigrate.files.parse.json_schemas import SchemaRule
from icemigrate.files.parse.suggestions import format_example, format_moved_value
from icemigrate.files.parse.yaml_nodes import YamlMapping, YamlNode, YamlScalar
from icemigrate.files.write.yaml_text import to_flow_yaml

DESTROYING = frozenset({"drop", "drop_columns", "purge"})
"""Keys that are guessed only where one slip of the finger leads to them."""

_NULLS = "write `required: true` to refuse nulls; a column without it may be null"
_STATEMENTS = "a file declares tables, not statements; use `backfill` and `retype` of a table to write rows"
_PINS = (
    ("snapshot", "snapshot_id version version_as_of as_of_version at_snapshot"),
    ("as_of", "timestamp time at timestamp_as_of as_of_timestamp"),
    ("branch", "ref from head of"),
)
_FIELD_IDS = "remove it: Iceberg assigns field ids"

KEYS_OF_OTHER_TOOLS: dict[str, tuple[tuple[str, str], ...]] = {
    "migration file": (
        (
            "tables",
            "table models model changes change change_set changesets changeset databasechangelog up "
            "upgrade do "
            "steps operations resources migrate entities schema",
        ),
        ("namespaces", "namespace schemas databases database create_namespaces create_schema"),
        ("description", "name title message comment summary doc docs label remarks"),
        ("because", "reason why justification"),
        ("allow", "allow_destructive allows consent consents force permit approve"),
        (
            "a migration's version is the number that its file's name begins with: `0003_rename_volume.yaml`",
            "version id revision migration number",
        ),
        (
            "remove it: `icemigrate rollback` computes the undo from what was applied",
            "down downgrade rollback undo reverse revert rollbacks",
        ),
        (
            "files are applied in the order of their versions, one after another",
            "down_revision depends_on dependencies requires after previous parent",
        ),
        ("the history records who applied a migration, and when", "author authors owner created_by date"),
        (_STATEMENTS, "sql statements query queries script execute run"),
    ),
    "table": (
        (
            "columns",
            "add add_columns add_column new_columns alter alter_columns alter_column alter_table modify "
            "modify_columns modify_column change change_columns change_column update_columns create_columns "
            "column cols fields field add_fields attributes structure",
        ),
        (
            "renames",
            "rename rename_columns rename_column renamed rename_fields renamed_columns column_renames "
            "rename_to",
        ),
        (
            "drop_columns",
            "remove_columns remove_column delete_columns delete_column removed_columns dropped_columns "
            "drop_fields drop_column unset_columns",
        ),
        (
            "`drop_columns: [qualifiers]` drops columns, `drop: true` beside the name the whole table",
            "remove delete deleted removed destroy drop_table dropped absent truncate",
        ),
        ("restore_columns", "undrop undrop_columns undelete undelete_columns restore recover"),
        (
            "identifier",
            "primary_key primary_keys pk pks key keys unique unique_key unique_keys identifier_fields "
            "identifiers id_columns merge_key merge_keys natural_key",
        ),
        (
            "partition_by",
            "partitioned_by partition partitions partitioning partition_spec partition_fields "
            "partition_columns "
            "partition_keys partition_key bucket_by buckets",
        ),
        (
            "sort_by",
            "order_by sorted_by ordered_by sort order ordering sort_order sort_key sort_keys sort_columns "
            "cluster_by clustered_by clustering write_order write_ordered_by sorted",
        ),
        ("write_distribution", "distribution distribution_mode distribute_by distributed_by dist dist_key"),
        (
            "properties",
            "tblproperties tbl_properties table_properties props options option settings config "
            "set_properties "
            "set parameters extra_properties with",
        ),
        (
            "retention",
            "ttl expire expires expiry expiration expire_after expire_snapshots lifecycle retain keep "
            "history "
            "snapshots snapshot rows max_age max_snapshot_age partition_expiration_days",
        ),
        ("format_version", "version format table_format_version iceberg_version table_version spec_version"),
        ("name", "table table_name tablename identifier_name fqn relation model"),
        ("match", "pattern tables glob regex like names"),
        ("location", "path uri base_location location_root storage_location directory"),
        ("description", "comment doc docs remarks label table_comment documentation"),
        (
            "adopt",
            "import existing exists if_exists if_not_exists create_if_not_exists external on_exists create",
        ),
        ("retype", "change_type change_types alter_type alter_types cast casts convert types retypes"),
        ("backfill", "update updates data fill fills set_values populate backfills sql dml transform"),
        ("checks", "check tests test data_tests assert asserts assertions expectations constraints validate"),
        ("rewrite", "compact compaction optimize rewrite_data_files rewrite_partitions"),
        ("branches", "branch refs references"),
        ("tags", "tag snapshots_named labels"),
        ("for_each", "foreach for with_items loop each matrix"),
        (
            "write the new name as `name`, and the old one as `renamed_from: market_data.ticks`",
            "old_name previous_name renamed_to new_name rename_table was formerly aka moved from to",
        ),
        (
            "write a table with its namespace, `name: market_data.trades`, and its columns under `columns`",
            "namespace schema database db catalog dataset",
        ),
        (_NULLS, "nullable not_null notnull required_columns"),
    ),
    "column": (
        ("type", "data_type datatype dtype kind column_type"),
        ("description", "comment doc docs remarks label documentation column_comment"),
        ("default", "default_value defaults initial_default write_default server_default"),
        (_NULLS, "nullable not_null notnull null optional is_nullable nulls mandatory allow_null"),
        (
            "use the table's `identifier: [$name]`",
            "primary_key pk unique is_primary_key identifier primarykey index unique_key",
        ),
        (
            "rename a column with the table's `renames: {$value: $name}`",
            "renamed_from rename_from old_name old previous_name was formerly from aka moved_from",
        ),
        (
            "rename a column with the table's `renames: {$name: $value}`",
            "rename rename_to renamed_to new_name renames to new",
        ),
        (
            "drop a column with the table's `drop_columns: [$name]`",
            "drop dropped delete deleted remove removed absent drop_columns",
        ),
        (
            "use `after: other` to put the column after another one, or `first: true`",
            "before position order ordinal index_of place ordinal_position",
        ),
        ("fields", "columns members properties struct children"),
        ("element", "elements items item element_type list array"),
        ("use the table's `checks` to check rows", "checks tests test data_tests constraints check"),
        (
            "the table's `retype: {$name: {to: string, using: cast($name as string)}}` changes a type "
            "by an expression",
            "using cast retype expression change_type",
        ),
        (
            "the table's `backfill: [{set: {$name: …}}]` fills a column",
            "backfill set sql update fill generated computed as",
        ),
        (
            "the table's `partition_by: [$name]` partitions by a column",
            "partition partition_by partitioned_by is_partition partition_key",
        ),
        (_FIELD_IDS, "id field_id column_id"),
    ),
    "part of a type": (
        ("type", "data_type datatype dtype kind"),
        (_NULLS, "nullable not_null notnull null optional"),
        ("fields", "columns members properties struct"),
        ("element", "elements items item"),
        (_FIELD_IDS, "id field_id element_id key_id value_id"),
    ),
    "dropped column": (("name", "column field path"),),
    "restored column": (("name", "column field path"), ("refill", "backfill fill restore values data")),
    "retyped column": (
        ("to", "type new_type target as data_type into"),
        ("using", "expression expr cast sql with via value convert"),
        ("remove it: the old type is known", "from old_type"),
    ),
    "backfill step": (
        ("set", "update columns values column sql assign fill value"),
        ("where", "condition filter when if predicate only"),
    ),
    "check": (
        (
            "`before: …` runs a query before any change, `after: …` after the rows are written",
            "query sql select assert test expression condition when at",
        ),
        ("gives", "expect expects expected equals result returns is value should_be"),
        ("name", "description title message label"),
    ),
    "rewrite": (("partitions", "partition files data strategy old what"),),
    "retention": (
        (
            "snapshots",
            "max_age ttl keep keep_at_least age history max_snapshot_age expire_snapshots snapshot "
            "older_than "
            "min_snapshots retain_last",
        ),
        ("rows", "row data records column delete_after"),
    ),
    "snapshot retention": (
        (
            "max_age",
            "ttl age older_than max_snapshot_age expire_after max_snapshot_age_ms days retain keep_for",
        ),
        (
            "keep_at_least",
            "min_snapshots min_snapshots_to_keep retain_last keep count minimum at_least keep_last",
        ),
    ),
    "row retention": (
        ("column", "field by name on timestamp_column"),
        ("max_age", "ttl age older_than days expire_after keep retain keep_for"),
    ),
    "branch": (("retention", "max_age ttl retain keep max_ref_age snapshots"), *_PINS),
    "tag": (("retention", "max_age ttl retain keep max_ref_age"), *_PINS),
    "branch retention": (
        ("max_age", "ttl age days retain keep max_ref_age max_ref_age_ms"),
        ("snapshots", "min_snapshots keep_at_least min_snapshots_to_keep max_snapshot_age"),
    ),
    "tag retention": (("max_age", "ttl age days retain keep max_ref_age max_ref_age_ms"),),
    "project file": (
        ("project", "name project_name id"),
        (
            "migrations",
            "locations location script_location migrations_path migration_path migrations_dir folder "
            "dir path "
            "model_paths directory",
        ),
        ("environments", "envs env targets outputs workspaces profiles profile environment_configs"),
        ("default_environment", "target default environment workspace default_env default_target"),
        ("lists", "vars variables locals values for_each"),
        ("rules", "lint linting rule checks"),
        ("history", "history_table table version_table schema_history state backend"),
        (
            "declare a catalog in an environment: `environments: {prod: {catalog: {type: rest, uri: …}}}`",
            "catalog catalogs url provider providers database connection",
        ),
    ),
    "environment": (
        ("catalog", "catalogs database connection url uri provider"),
        ("storage", "s3 object_store file_io bucket"),
        ("spark", "engine session cluster"),
        ("namespaces", "namespace schema schemas mapping"),
        ("overrides", "override vars variables"),
    ),
    "catalog": (
        ("uri", "url endpoint host jdbc_url address"),
        ("warehouse", "location path bucket base_location warehouse_dir"),
        ("type", "kind impl catalog_type catalog_impl provider"),
        ("user", "username login"),
        ("password", "pass pwd secret"),
        ("properties", "options props conf config settings"),
    ),
    "storage": (
        ("endpoint", "url uri host"),
        ("path_style", "path_style_access force_path_style"),
        ("access_key", "access_key_id aws_access_key_id key user"),
        ("secret_key", "secret_access_key aws_secret_access_key secret password"),
        ("session_token", "token aws_session_token"),
        ("properties", "options props conf config settings"),
    ),
    "spark": (
        ("conf", "config properties options settings configuration"),
        ("remote", "connect url"),
        ("jars", "packages classpath jar"),
    ),
    "override": (("tables", "table match name pattern"),),
}
"""Title of a mapping → a key of icemigrate or a sentence, and the keys that other tools use for it.

In a sentence, ``$name`` is the name of the entry, and ``$value`` the value that was written for the key.
"""


def other_tool_key_hint(
    key: YamlScalar,
    value: YamlNode,
    holder: YamlMapping,
    rule: SchemaRule,
    fits: Callable[[YamlNode, SchemaRule], bool],
) -> tuple[str | None, str | None]:
    """A hint about a key of another tool, and the key that takes the same value; ``None`` where none does.

    :param holder: the mapping with the key; the name of its entry makes the hint ready to copy.
    :param fits: whether a value matches a rule.
    """
    here = _words(rule.title).get(_plain(key.text))
    if here is None:
        return None, None
    inner = rule.properties.get(here)
    if inner is not None:
        said = format_moved_value(here, inner, value) if fits(value, inner) else None
        hint = f"write {said or format_example(here, inner) or f'`{here}`'}"
        return hint, None if said is None else here
    name, other = _shown(holder.get("name"), "name"), _shown(value, "other")
    return Template(here).safe_substitute(name=name, value=other), None


@cache
def _words(title: str) -> dict[str, str]:
    return {word: here for here, words in KEYS_OF_OTHER_TOOLS.get(title, ()) for word in words.split()}


def _plain(word: str) -> str:
    return word.lower().replace("-", "_").replace(" ", "_")


def _shown(node: YamlNode | None, otherwise: str) -> str:
    return (
        to_flow_yaml(node.text) if isinstance(node, YamlScalar) and isinstance(node.value, str) else otherwise
    )
