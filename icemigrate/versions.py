"""Which versions work together: the one table, tried on real tables before a line is added to it.

Python packages are pinned in ``setup.cfg``; this module has what Spark needs beside them.
"""

from __future__ import annotations

from icemigrate.errors import EngineError
from icemigrate.frozen import Frozen

ICEMIGRATE = "0.1.0"
"""This program's own version; ``setup.cfg`` reads it from here."""
SQLITE_JDBC = "org.xerial:sqlite-jdbc:3.54.1.0"
POSTGRES_JDBC = "org.postgresql:postgresql:42.7.8"


class SparkRelease(Frozen):
    """A minor release of Spark and what goes with it.

    :param spark: ``major.minor`` of PySpark.
    :param scala: binary version of Scala that the release on PyPI is built for.
    :param iceberg: version of Iceberg, for the runtime and for the bundles beside it.
    :param java: major versions of Java that it runs on, the best tried one first.
    :param kafka_source: version of Spark's source for Kafka; ``None`` where none was tried.
    :param kafka_client: version of Kafka's client that this source is built for.
    :param commons_pool: version of the package that this source needs.
    """

    spark: str
    scala: str
    iceberg: str
    java: tuple[int, ...]
    kafka_source: str | None = None
    kafka_client: str = ""
    commons_pool: str = ""

    @property
    def iceberg_runtime(self) -> str:
        """Maven coordinates of Iceberg's runtime for this Spark."""
        return f"org.apache.iceberg:iceberg-spark-runtime-{self.spark}_{self.scala}:{self.iceberg}"

    @property
    def aws_bundle(self) -> str:
        """Maven coordinates of Iceberg's own S3 client and all that it needs."""
        return f"org.apache.iceberg:iceberg-aws-bundle:{self.iceberg}"

    @property
    def kafka_packages(self) -> tuple[str, ...]:
        """Maven coordinates of Spark's source for Kafka, and of what PySpark lacks of its dependencies.

        :raises EngineError: none was tried with this Spark.
        """
        if self.kafka_source is None:
            raise EngineError(
                f"no source for Kafka is known here for Spark {self.spark}",
                f"pip install 'pyspark~={CURRENT.spark}.0'",
            )
        return (
            f"org.apache.spark:spark-sql-kafka-0-10_{self.scala}:{self.kafka_source}",
            f"org.apache.spark:spark-token-provider-kafka-0-10_{self.scala}:{self.kafka_source}",
            f"org.apache.kafka:kafka-clients:{self.kafka_client}",
            f"org.apache.commons:commons-pool2:{self.commons_pool}",
        )


# Java 25 fails in Hadoop's `getSubject` on all of these; Spark 4 needs Java 17 (Spark's documentation).
SPARK_RELEASES: tuple[SparkRelease, ...] = (
    SparkRelease(
        spark="4.1",
        scala="2.13",
        iceberg="1.12.0",
        java=(17, 21),
        kafka_source="4.1.1",
        kafka_client="3.9.1",
        commons_pool="2.12.1",
    ),
    SparkRelease(spark="4.0", scala="2.13", iceberg="1.11.0", java=(17, 21)),
    SparkRelease(spark="3.5", scala="2.12", iceberg="1.10.2", java=(17, 11)),
)

CURRENT = SPARK_RELEASES[0]
"""What ``pip install '.[spark]'`` brings."""


def spark_release(version: str) -> SparkRelease:
    """The line of the table for an installed PySpark.

    :param version: PySpark's full version, e.g. ``4.1.4``.
    :raises EngineError: there is no Iceberg runtime known for it.
    """
    minor = ".".join(version.split(".")[:2])
    for release in SPARK_RELEASES:
        if release.spark == minor:
            return release
    known = ", ".join(release.spark for release in SPARK_RELEASES)
    raise EngineError(
        f"PySpark {version} is installed, for which no Iceberg runtime is known here (known: {known})",
        f"pip install 'pyspark~={CURRENT.spark}.0'",
    )
