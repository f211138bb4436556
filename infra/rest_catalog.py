"""The REST catalog: Iceberg's own REST server over its JDBC catalog, from Maven jars.

It is the server of the image ``apache/iceberg-rest-fixture``.  Iceberg publishes its classes in the tests jar
of ``iceberg-core``; `rest_catalog.xml` configures them, so that the server listens on 127.0.0.1 only.
"""

from __future__ import annotations

import json
from pathlib import Path
from urllib.request import urlopen

from icemigrate.spark.find_java import find_java
from icemigrate.versions import CURRENT, POSTGRES_JDBC
from infra.lake import CATALOG, DATABASE, DATABASE_USER, HOST, REGION, WAREHOUSE, Lake
from infra.processes import Server, run_to_end

ICEBERG = "1.11.0"
"""The newest release whose tests jar is published."""
_JETTY = "12.1.4"
FOLDER = "rest"
_SECONDS = 600.0
_IVY_SETTINGS = """\
<ivysettings>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true"/></resolvers>
</ivysettings>
"""


def server(lake: Lake) -> Server:
    """The REST server; its jars are fetched on the first call.

    :raises icemigrate.errors.EngineError: there is no Java.
    :raises InfraError: the jars cannot be fetched.
    """
    folder = lake.folder / FOLDER
    java = find_java(CURRENT.java).home / "bin" / "java"
    jars = _jars(folder, java)
    command: list[str | Path] = [
        java,
        "-Xmx512m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-cp",
        f"{jars}/*",
    ]
    command += ["org.eclipse.jetty.xml.XmlConfiguration", Path(__file__).with_suffix(".xml")]
    environment = {
        "LAKE_CATALOG": CATALOG,
        "LAKE_DATABASE": f"jdbc:postgresql://{HOST}:{lake.database_port}/{DATABASE}",
        "LAKE_DATABASE_USER": DATABASE_USER,
        "LAKE_DATABASE_PASSWORD": lake.password,
        "LAKE_WAREHOUSE": WAREHOUSE,
        "LAKE_S3": lake.s3,
        "LAKE_PORT": str(lake.catalog_port),
        "AWS_ACCESS_KEY_ID": lake.access_key,
        "AWS_SECRET_ACCESS_KEY": lake.secret_key,
        "AWS_REGION": REGION,
    }

    def answers() -> bool:
        with urlopen(f"{lake.catalog}/v1/config", timeout=5) as answer:
            return "defaults" in json.load(answer)

    return Server("rest", folder, lake.catalog_port, "CATALOG_PORT", command, answers, environment)


def _jars(folder: Path, java: Path) -> Path:
    jars = folder / "jars"
    if jars.exists():
        return jars
    import pyspark

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ivy.xml").write_text(_ivy_file(), encoding="utf-8")
    (folder / "ivysettings.xml").write_text(_IVY_SETTINGS, encoding="utf-8")
    (ivy,) = (Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar")
    command: list[str | Path] = [
        java,
        "-cp",
        ivy,
        "org.apache.ivy.Main",
        "-settings",
        folder / "ivysettings.xml",
    ]
    command += ["-ivy", folder / "ivy.xml", "-confs", "default"]
    command += ["-retrieve", f"{folder}/fetched/[artifact]-[revision](-[classifier]).[ext]"]
    run_to_end(command, folder, _SECONDS)
    (folder / "fetched").rename(jars)  # a fetch that was interrupted is begun again
    return jars


def _ivy_file() -> str:
    group, name, version = POSTGRES_JDBC.split(":")
    dependencies = [
        ("org.apache.iceberg", "iceberg-core", ICEBERG, ("", "tests")),
        ("org.apache.iceberg", "iceberg-aws", ICEBERG, ("",)),
        ("org.apache.iceberg", "iceberg-aws-bundle", ICEBERG, ("",)),
        ("org.eclipse.jetty.ee10", "jetty-ee10-servlet", _JETTY, ("",)),
        ("org.eclipse.jetty", "jetty-xml", _JETTY, ("",)),
        ("org.slf4j", "slf4j-simple", "2.0.17", ("",)),
        (group, name, version, ("",)),
    ]
    lines = "".join(map(_dependency, dependencies))
    return f"""\
<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="icemigrate" module="rest-catalog"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
{lines}  </dependencies>
</ivy-module>
"""


def _dependency(row: tuple[str, str, str, tuple[str, ...]]) -> str:
    group, name, version, classifiers = row
    artifacts = "".join(
        f'      <artifact name="{name}" type="jar" ext="jar"'
        + (f' m:classifier="{classifier}"/>\n' if classifier else "/>\n")
        for classifier in classifiers
    )
    head = f'    <dependency org="{group}" name="{name}" rev="{version}" conf="default->runtime,master(*)">'
    return f"{head}\n{artifacts}    </dependency>\n"
