"""The project file: where migrations are, and where they are applied."""

from __future__ import annotations

from icemigrate.project.clients import pyiceberg_properties, spark_conf
from icemigrate.project.environments import choose_environment
from icemigrate.project.reading import ProjectRead, load_project, read_project, safe_name
from icemigrate.project.values import (
    CatalogDescription,
    Environment,
    Override,
    Project,
    Secret,
    SparkSettings,
    StorageSettings,
)

__all__ = [
    "CatalogDescription",
    "Environment",
    "Override",
    "Project",
    "ProjectRead",
    "Secret",
    "SparkSettings",
    "StorageSettings",
    "choose_environment",
    "load_project",
    "pyiceberg_properties",
    "read_project",
    "safe_name",
    "spark_conf",
]
