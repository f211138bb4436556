"""The settings of the one Spark of a test run, which every kind of catalog can be used in."""

from __future__ import annotations

import os
from dataclasses import replace

from icemigrate.engine import jars
from icemigrate.engine.session import SparkSettings
from icemigrate.versions import CURRENT, POSTGRES_JDBC


def with_every_driver(settings: SparkSettings) -> SparkSettings:
    """The settings, with the class path of all catalogs that tests use.

    A JVM's class path is fixed when it starts, and sessions that are opened in it later bring catalogs of
    other kinds.
    """
    located = jars.locate((POSTGRES_JDBC, CURRENT.aws_bundle))
    path = os.pathsep.join(map(str, located.files))
    conf = {**settings.conf, **({"spark.driver.extraClassPath": path} if path else {})}
    return replace(settings, conf=conf, packages=(*settings.packages, *located.packages))
