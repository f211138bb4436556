"""`docs/pipeline-operation.md`: its metrics, its unit and its manifest are those of the program."""

from __future__ import annotations

import configparser
import re
import shlex
from pathlib import Path

import click
import pytest
import yaml

from icemigrate.cli.group import command_of
from icemigrate.cli.ingest import command as ingest
from icemigrate.commands.ingest import IngestRequest, report_settings
from icemigrate.pipeline.metrics_server import _Server
from icemigrate.pipeline.pipeline_metrics import METRICS, MOST_TENANTS, PipelineMetrics, sample_name
from icemigrate.pipeline.run_health import RunHealth
from icemigrate.project import read_project
from icemigrate.project.listen_address import parse_listen_address
from tests.unit.files.examples import source

PAGE = (Path(__file__).parents[3] / "docs" / "pipeline-operation.md").read_text(encoding="utf-8")


def block(name: str) -> str:
    found = re.findall(rf"^```\w+ {re.escape(name)}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert len(found) == 1
    return str(found[0])


def unit() -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string(block("icemigrate-ingest.service"))
    return parser


def container() -> dict[str, object]:
    (document,) = yaml.safe_load_all(block("icemigrate-ingest.yaml"))
    assert document["spec"]["replicas"] == 1
    (found,) = document["spec"]["template"]["spec"]["containers"]
    return dict(found)


def require_arguments(arguments: list[str]) -> IngestRequest:
    """Parse the arguments of a program that is `icemigrate ingest`."""
    assert arguments[0] == "ingest"
    with ingest.make_context("ingest", arguments[1:], obj=None) as context:
        values = context.params
    return IngestRequest(
        interval_s=values["interval_s"],
        retention_s=values["retention_s"],
        metrics_address=values["metrics_address"],
    )


def test_every_metric_is_on_the_page_with_its_meaning() -> None:
    rows = re.findall(r"^\| `(icemigrate_\w+)` \| (\w+) \| (.*?) ?\| (.*?) \|$", PAGE, re.MULTILINE)
    assert rows == [
        (sample_name(one), one.type, ", ".join(f"`{label}`" for label in one.labels), one.help)
        for one in METRICS
    ]
    assert f"first {MOST_TENANTS} tenants" in PAGE


def test_the_events_are_on_the_page() -> None:
    source = Path(__file__).parents[3] / "icemigrate"
    texts = "".join(path.read_text(encoding="utf-8") for path in source.rglob("*.py"))
    events = set(re.findall(r'LineEvent\(\s*"\w+",\s*"(\w+)"', texts))
    assert set(re.findall(r"^\| `(\w+)` \| (?:info|warning|error) \|", PAGE, re.MULTILINE)) == events


def test_the_unit_starts_the_command() -> None:
    service = unit()["Service"]
    program, *arguments = shlex.split(service["ExecStart"])
    assert Path(program).name == "icemigrate"
    request = require_arguments(arguments)
    assert (request.interval_s, request.retention_s) == (10, 7 * 86_400)
    project = read_project(source("project: x", "icemigrate.yaml"), Path("/x")).project
    assert project is not None
    address = report_settings(project, request).metrics_address
    assert address is not None
    assert address.is_loopback
    assert arguments[1].startswith(service["ReadWritePaths"])


def test_the_manifest_starts_the_command_and_checks_its_health() -> None:
    found = container()
    assert found["command"] == ["icemigrate"]
    request = require_arguments(list(found["args"]))  # type: ignore[call-overload]
    address = parse_listen_address(str(request.metrics_address))
    assert found["ports"] == [{"name": "metrics", "containerPort": address.port}]
    server = _Server(parse_listen_address("0"), PipelineMetrics(), RunHealth(60))
    try:
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            path = found[probe]["httpGet"]["path"]  # type: ignore[index]
            assert server.page(path, "")[0] in (200, 503)
            assert f"`{path}`" in PAGE
    finally:
        server.server_close()


@pytest.mark.parametrize("option", sorted(set(re.findall(r"`(--[a-z-]+)", PAGE))))
def test_every_option_on_the_page_exists(option: str) -> None:
    names = {
        name
        for param in command_of("ingest").params
        if isinstance(param, click.Option)
        for name in param.opts
    }
    assert option in names
