"""The jars of Spark's own Kafka connector, from Maven Central. They are wanted without what they depend on."""

from __future__ import annotations

from pathlib import Path

from tests.support import peers
from tests.support.cache import entry, fetch

JARS = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.1",
    "org.apache.commons:commons-pool2:2.12.1",
)


def connector_jars() -> list[Path]:
    """Raises PeerMissingError with the reason and the remedy."""
    what = "Spark's Kafka connector (Maven, about 15 MB)"

    def make(into: Path) -> None:
        maven = peers._program("mvn", "install Maven")
        dependencies = "".join(
            "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>"
            "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
            "</dependency>".format(*each.split(":"))
            for each in JARS
        )
        pom = into / "pom.xml"
        pom.write_text(
            "<project><modelVersion>4.0.0</modelVersion><groupId>peers</groupId><artifactId>connector</artifactId>"
            f"<version>1</version><dependencies>{dependencies}</dependencies></project>"
        )
        fetch(
            [maven, "-q", "-B", "-f", pom, "dependency:copy-dependencies", f"-DoutputDirectory={into / 'lib'}"],
            what=what,
            remedy="check the network and run the command again",
            env={"JAVA_HOME": str(peers.java().resolve().parent.parent)},
        )

    return sorted((entry("spark-kafka-connector", what, make) / "lib").glob("*.jar"))
