"""Lines of a log as operations show them: cleaned, with time, severity and origin."""

from collections.abc import Iterable, Iterator

from pydantic import BaseModel, ConfigDict, Field

from bezel.operations.log_reading.entries import LogEntry, Source
from bezel.operations.redaction import LineCleaner


class LogLine(BaseModel):
    """A line of a log."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    time: str | None = Field(description="RFC 3339; null where the source has none")
    severity: str | None = Field(description="of the platform, or the level that vLLM wrote into the line")
    source: Source
    resource: str | None = Field(description="revision or machine")
    instance: str | None = Field(description="id of the instance")
    region: str | None = Field(None, description="region of the revision; null for machines")
    container: str | None = Field(None, description="container that printed it; null if not named")
    text: str = Field(description="data from outside: credentials hidden, control characters removed")


def line_text(
    line: LogLine, *, with_resource: bool = False, with_region: bool = False, with_container: bool = False
) -> str:
    """A line for a terminal; with its revision or machine, region and container where lines of several are together."""
    stamp = (line.time or "").partition(".")[0].removesuffix("Z")
    severity = line.severity if line.severity != "DEFAULT" else ""
    resource = f"{line.resource or '(no revision)'}:" if with_resource else ""
    region = line.region if with_region else None
    source = f"{line.source} {line.container}" if with_container and line.container else line.source
    return " ".join(filter(None, (stamp, f"[{source}]", region, resource, severity, line.text)))


def lines_of(entries: Iterable[LogEntry]) -> Iterator[LogLine]:
    """Each entry as its cleaned lines; a private key over several entries is hidden as a whole."""
    clean = LineCleaner()
    for entry in entries:
        for text in clean.lines(entry.text):
            yield LogLine(
                time=entry.time or None,
                severity=entry.severity or None,
                source=entry.source,
                resource=entry.resource or None,
                instance=entry.instance or None,
                region=entry.region or None,
                container=entry.container or None,
                text=text,
            )
