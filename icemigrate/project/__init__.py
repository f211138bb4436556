"""The project file: where migrations are, and where they are applied."""

from __future__ import annotations

from icemigrate.project.client_settings import pyiceberg_properties, spark_conf, storage_properties
from icemigrate.project.environments import choose_environment, local_state
from icemigrate.project.project_reader import (
    ProjectReadResult,
    load_project,
    open_project,
    read_project,
    require_project,
    safe_name,
)
from icemigrate.project.project_values import (
    CatalogDescription,
    Environment,
    Project,
    Secret,
    SparkConfig,
    StorageSettings,
    TableOverride,
)

__all__ = [
    "CatalogDescription",
    "Environment",
    "Project",
    "ProjectReadResult",
    "Secret",
    "SparkConfig",
    "StorageSettings",
    "TableOverride",
    "choose_environment",
    "load_project",
    "local_state",
    "open_project",
    "pyiceberg_properties",
    "read_project",
    "require_project",
    "safe_name",
    "spark_conf",
    "storage_properties",
]
