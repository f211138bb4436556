"""Secrets: masked in every output, saved plan, lock file, history and exception, whatever quotes them."""

from __future__ import annotations

import json
import logging
from datetime import datetime, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icemigrate import redaction
from icemigrate.catalog import open_catalog
from icemigrate.catalog.catalog_port import CatalogSettings
from icemigrate.cli import main
from icemigrate.commands.saved_plans import load_saved_plan
from icemigrate.errors import EngineError, ExitCode, IcemigrateError, Mistakes
from icemigrate.frozen import replace
from icemigrate.history.history_record import HistoryRecord, RunOutcome
from icemigrate.iceberg.names import TableName
from icemigrate.planning.plan_staleness import require_not_stale
from icemigrate.project import Secret, choose_environment, open_project
from icemigrate.redaction import (
    hide_environment,
    hide_parameters,
    redact_document,
    redact_secrets,
    register_secret,
)
from icemigrate.render.formats import OUTPUT_FORMATS
from icemigrate.spark.java_errors import to_engine_error
from tests.support.embedded_project import Embedded, applied

SENTINEL = "zq7Kx-sent/inel+9w"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://me:S@host/db", "postgresql://me:***@host/db"),
        ("jdbc:postgresql://h/db?user=me&password=S&x=1", "jdbc:postgresql://h/db?user=me&password=***&x=1"),
        ("https://x/y?sv=1&sig=S&se=2", "https://x/y?sv=1&sig=***&se=2"),
        ("https://x/y?X-Amz-Signature=S&X-Amz-Date=1", "https://x/y?X-Amz-Signature=***&X-Amz-Date=1"),
        ("https://x?access_token=S", "https://x?access_token=***"),
        ("https://x?key=S", "https://x?key=***"),
        ("https://x?sas=S#top", "https://x?sas=***#top"),
        ("https://S1234567@host/x", "https://***@host/x"),
        ("Endpoint=sb://a;SharedAccessKey=S;x=1", "Endpoint=sb://a;SharedAccessKey=***;x=1"),
        ("AccountName=a;AccountKey=S==", "AccountName=a;AccountKey=***"),
        ('{"client_secret": "S T", "scope": "a"}', '{"client_secret": "***", "scope": "a"}'),
        ('"{\\"token\\": \\"S\\"}"', '"{\\"token\\": \\"***\\"}"'),
        ("{'password': 'S'}", "{'password': '***'}"),
        ("grant_type=x&client_secret=S&scope=c", "grant_type=x&client_secret=***&scope=c"),
        ("SET TBLPROPERTIES ('a.token' = 'S')", "SET TBLPROPERTIES ('a.token' = '***')"),
        ("Authorization: Bearer S1234567890123", "Authorization: Bearer ***"),
        ("failed with s3.secret-access-key=S", "failed with s3.secret-access-key=***"),
        ("the credential: check it", "the credential: check it"),
        ("abfss://container@account.dfs/x", "abfss://container@account.dfs/x"),
        ("'write.x.column.token' = 'true'", "'write.x.column.token' = 'true'"),
        ("token int → long, password string", "token int → long, password string"),
        ("Basic authentication is needed", "Basic authentication is needed"),
    ],
)
def test_credentials_are_masked_by_their_form(text: str, shown: str) -> None:
    assert redact_secrets(text) == shown
    assert redact_secrets(shown) == shown
    assert str(IcemigrateError(text, text).hint) == shown
    assert str(to_engine_error(RuntimeError(text))) == shown


@given(st.text(min_size=8).filter(lambda text: len(text.strip()) >= 8), st.text(), st.text())
def test_a_known_value_is_masked_wherever_it_stands(secret: str, before: str, after: str) -> None:
    redaction.forget_secrets()
    register_secret(secret)
    assert secret not in redact_secrets(f"{before}{secret}{after}") or secret in f"{before}***{after}"
    quoted = json.dumps(secret)[1:-1]
    assert quoted not in redact_secrets(f"“{quoted}”")
    redaction.forget_secrets()


def test_halves_of_a_credential_and_other_ways_to_write_it_are_masked() -> None:
    Secret("client-id:p@ss/word one")
    text = "client-id and p@ss/word one, p%40ss%2Fword%20one, p%40ss%2Fword+one"
    assert redact_secrets(text) == "*** and ***, ***, ***"


def test_a_short_value_is_masked_as_a_word_and_the_shortest_not_at_all() -> None:
    register_secret("abcd")
    register_secret("abc")
    assert redact_secrets("abcd abcde abc") == "*** abcde abc"


def test_a_variable_is_masked_unless_it_is_a_path(tmp_path: Path) -> None:
    hide_environment(
        [
            ("AWS_SECRET_ACCESS_KEY", "/wJalrXUtn/K7MDENG+bPx"),
            ("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere/key.json"),
            ("MY_SECRET", str(tmp_path)),
        ]
    )
    assert (
        redact_secrets(f"/wJalrXUtn/K7MDENG+bPx /nowhere/key.json {tmp_path}")
        == f"*** /nowhere/key.json {tmp_path}"
    )


def test_a_document_is_masked_by_its_keys() -> None:
    document = {"properties": {"x.password": "hunter", "x.token": "true", "y": "1"}, "list": ["?sig=S"]}
    assert redact_document(document) == {
        "properties": {"x.password": "***", "x.token": "true", "y": "1"},
        "list": ["?sig=***"],
    }


def test_what_libraries_log_is_masked(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    open_catalog(CatalogSettings("lake", "rest", "http://127.0.0.1:9")).close()
    logging.getLogger("a_library").warning("Retrying: /v1/config?sig=%s", "abcdefgh")
    assert "Retrying: /v1/config?sig=***" in capfd.readouterr().err


# Every output

PROJECT = """\
project: market
default_environment: local
environments:
  local:
    catalog:
      name: local
      type: sqlite
      properties: {plain: "${PLAIN}", header.authorization: "${AUTH}"}
    storage: {access_key: "${ACCESS}", secret_key: "${SECRET_KEY}", properties: {s3.x: "a-${MORE}"}}
    spark: {conf: {spark.x: "${CONF}"}}
  remote:
    catalog:
      type: rest
      uri: "http://me:${PASSWORD}@127.0.0.1:9/v1?sig=${SIG}"
      credential: "id:${CREDENTIAL}"
      warehouse: "s3://lake?X-Amz-Signature=${AMZ}"
    storage: {endpoint: "http://127.0.0.1:9"}
  database:
    catalog:
      type: sql
      uri: "postgresql://127.0.0.1:9/db?user=me&password=${DBPW}"
      warehouse: /tmp/nowhere
"""
VARIABLES = (
    "PLAIN",
    "AUTH",
    "ACCESS",
    "SECRET_KEY",
    "MORE",
    "CONF",
    "PASSWORD",
    "SIG",
    "CREDENTIAL",
    "AMZ",
    "DBPW",
)
MAKE = "tables: [{name: db.t, columns: [{name: id, type: long}]}]\n"
PENDING = """\
tables:
  - name: db.t
    columns: [{name: n, type: int}]
    properties: {plain: "1"}
"""


def value(name: str) -> str:
    """A unique secret, with characters that each format writes otherwise."""
    return f"{SENTINEL}-{name}"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Embedded:
    """A project whose every setting is a secret, with an applied file and a pending one."""
    for name in VARIABLES:
        monkeypatch.setenv(name, value(name))
    monkeypatch.setenv("UNUSED_API_TOKEN", value("UNUSED"))
    monkeypatch.chdir(tmp_path)
    made = applied(tmp_path, MAKE)
    made.write("0002_more.yaml", PENDING)
    (tmp_path / "icemigrate.yaml").write_text(PROJECT, encoding="utf-8")
    return made


def outputs(capfd: pytest.CaptureFixture[str], *args: str) -> str:
    """All that a command prints."""
    main(args)
    out, err = capfd.readouterr()
    return out + err


@pytest.mark.parametrize("environment", ["local", "remote", "database"])
@pytest.mark.parametrize("debug", ["0", "1"])
def test_no_output_holds_a_secret(
    shop: Embedded,
    environment: str,
    debug: str,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ICEMIGRATE_DEBUG", debug)
    theirs = "https://me:zq7Kx-sent@host/x?sig=zq7Kx-sent"
    shop.edit(
        "db.t", {"their.password": value("THEIRS"), "address": theirs, "aws.secret-access-key": SENTINEL}
    )
    shown = {}
    for command in ("check", "plan", "status", "history", "drift", "doctor"):
        formats = [f.name for f in OUTPUT_FORMATS] if command in ("check", "plan") else ["text", "json"]
        for name in formats:
            shown[f"{command} {name}"] = outputs(capfd, command, "--env", environment, "--format", name)
    shown["plan"] = outputs(capfd, "plan", "--env", environment, "--out", "plan.json")
    (shop.folder / "migrations" / "0002_more.yaml").unlink()
    shown["accept"] = outputs(capfd, "drift", "--env", environment, "--accept")
    other = TableName.parse("db.other")
    shop.engine.tables[other] = replace(shop.engine.tables[TableName.parse("db.t")], name=other, uuid="")
    shop.save()
    shown["import"] = outputs(capfd, "import", "--env", environment, "db.other")
    outputs(capfd, "check", "--fix")
    files = [path for path in shop.folder.rglob("*") if path.suffix in (".yaml", ".lock", ".json")]
    for path in files:
        if not path.name.endswith("metadata.json"):  # the catalog's own
            shown[path.name] = path.read_text(encoding="utf-8")
    assert ("plan.json" in shown) == (environment == "local")
    leaks = [(name, line) for name, text in shown.items() for line in text.splitlines() if "zq7Kx" in line]
    assert leaks == []
    if environment == "local":
        assert "'plain' = '1'" in shown["plan text"]
        assert "***" in shown["drift text"]
        assert "properties.their.password holds a credential and is left out" in shown["accept"]
        assert "`properties.their.password` holds a credential and is left out" in shown["import"]


def test_a_saved_plan_without_the_secrets_of_a_table_is_not_stale(
    shop: Embedded, capfd: pytest.CaptureFixture[str]
) -> None:
    shop.edit("db.t", {"their.password": value("THEIRS"), "a": "?sig=zq7Kx-sent"})
    assert main(["plan", "--out", "plan.json"]) == ExitCode.OK
    from icemigrate.commands.plan import plan

    saved, now = load_saved_plan(Path("plan.json")), plan(open_project(shop.folder)).plan
    require_not_stale(saved, now)
    assert saved != now
    shop.edit("db.t", {"a": "other"})
    with pytest.raises(IcemigrateError, match=r"properties\.a") as stale:
        require_not_stale(saved, plan(open_project(shop.folder)).plan)
    assert "zq7Kx-sent" not in str(stale.value)


def test_a_failure_is_recorded_without_secrets(shop: Embedded) -> None:
    choose_environment(open_project(shop.folder), "remote", {n: value(n) for n in VARIABLES})
    error = EngineError(f"PUT http://h/v1?sig=abcdefgh failed: {value('CREDENTIAL')} {value('PASSWORD')}")
    assert str(error) == "PUT http://h/v1?sig=*** failed: *** ***"
    now = datetime.now(timezone.utc)
    record = HistoryRecord(
        None,
        "",
        "",
        "market",
        "remote",
        RunOutcome.FAILED,
        now,
        now,
        "me",
        "here",
        "1",
        statements=(value("SIG"),),
    )
    row = replace(record, message=f"it failed: {value('AMZ')}").row()
    assert (row["statements"], row["message"]) == (["***"], "it failed: ***")


# Variables in names, locations and properties


def chosen(tmp_path: Path, environment: str, first: str = "", **environ: str) -> object:
    (tmp_path / "icemigrate.yaml").write_text(
        f"project: market\n{first}environments:\n  prod: {{{environment}}}\n", encoding="utf-8"
    )
    return choose_environment(open_project(tmp_path), "prod", environ)


STORED = [
    "catalog: {type: glue}, namespaces: {a: 'x_${V}'}",
    "catalog: {type: glue}, overrides: [{tables: '*', location: 's3://${V}/x'}]",
    "catalog: {type: glue}, overrides: [{tables: '*', properties: {p: '${V}'}}]",
]


@pytest.mark.parametrize("environment", STORED)
def test_a_variable_whose_value_is_stored_must_be_listed_as_public(tmp_path: Path, environment: str) -> None:
    with pytest.raises(Mistakes) as refused:
        chosen(tmp_path, environment, V="hunter2hunter2")
    (mistake,) = refused.value.diagnostics
    assert mistake.code == "private-variable"
    assert mistake.hint is not None
    assert "public_variables: [V]" in mistake.hint
    assert "hunter2" not in f"{mistake.message} {mistake.hint}"
    made = chosen(tmp_path, environment, "public_variables: [V]\n", V="hunter2hunter2")
    assert "hunter2hunter2" in repr(made)
    assert redact_secrets("hunter2hunter2") == "hunter2hunter2"


def test_a_value_that_does_not_fit_is_quoted_as_the_file_has_it(tmp_path: Path) -> None:
    for environment in ("catalog: {type: '${V}'}", "catalog: {type: glue}, record: 'x ${V}'"):
        with pytest.raises(Mistakes) as refused:
            chosen(tmp_path, environment, V="hunter2-" * 20)
        (mistake,) = refused.value.diagnostics
        assert "${V}`" in mistake.message
        assert "hunter2" not in f"{mistake.message} {mistake.hint}"


def test_an_address_is_shown_without_its_credentials(tmp_path: Path) -> None:
    catalog = "catalog: {type: rest, uri: '${URL}', warehouse: '${W_TOKEN}'}"
    chosen(tmp_path, catalog, URL="https://me:hunter2hunter2@host/x?sig=abcdefghij", W_TOKEN="s3cr3t-lake")
    assert redact_secrets("https://host/x") == "https://host/x"
    assert redact_secrets("hunter2hunter2, abcdefghij, s3cr3t-lake") == "***, ***, ***"


@pytest.mark.parametrize(
    ("value", "quoted"),
    [
        (
            "http://127.0.0.1:1/p;jsessionid=SECRET",
            "No adapters for 'http://127.0.0.1:1/p;jsessionid=SECRET'",
        ),
        ("jdbc:oracle:thin:u/SECRET@host/x", "no driver for jdbc:oracle:thin:u/SECRET@host/x"),
        (
            "http://h/x?options=-c%20x=SECRET",
            "invalid options '-c x=SECRET' in http://h/x?options=-c%20x=SECRET",
        ),
        ("http://h/x#SECRET", "http://h/x#SECRET is no catalog"),
        ("http://h/x?sslmode=require&a=SECRET", "SECRET was refused, so an address is required"),
    ],
)
def test_parameters_of_a_private_address_are_masked_wherever_they_are_quoted(value: str, quoted: str) -> None:
    hide_parameters(value)
    shown = redact_secrets(quoted)
    assert "SECRET" not in shown
    assert "require" not in quoted or shown == "*** was refused, so an address is required"
