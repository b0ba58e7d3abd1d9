"""Whether what localcloud keeps on disk is whole: read from its files alone, while no daemon runs."""

import json
import sqlite3
from pathlib import Path


def problems(cloud: Path) -> list[str]:
    """What is wrong with the database and the object files of a directory; empty where all is well."""
    with sqlite3.connect(f"file:{cloud / 'cloud.db'}?mode=ro", uri=True) as database:
        (verdict,) = database.execute("PRAGMA integrity_check").fetchone()
        if verdict != "ok":
            return [f"integrity_check: {verdict}"]
        rows: dict[str, dict[str, dict[str, object]]] = {}
        for kind, name, body in database.execute("SELECT kind, name, body FROM resources"):
            rows.setdefault(kind, {})[name] = json.loads(body)
        names = {table: {name for (name,) in database.execute(f"SELECT name FROM {table}")} for table in _TABLES}  # noqa: S608
    return [*_orphans(rows, names), *_files(cloud, rows)]


_TABLES = ("policies", "payloads", "operations")


def _orphans(rows: dict[str, dict[str, dict[str, object]]], names: dict[str, set[str]]) -> list[str]:
    """Rows whose owner is gone."""

    def of(kind: str) -> set[str]:
        return set(rows.get(kind, {}))

    owned = {name for kind in rows.values() for name in kind}
    pairs: list[tuple[str, object]] = [
        *((f"revision {name}", name.rpartition("/revisions/")[0] in of("service")) for name in of("revision")),
        *((f"deployment {name}", name in of("service")) for name in of("deployment")),
        *(
            (f"operation of deployment {name}", body["operation"] in names["operations"])
            for name, body in rows.get("deployment", {}).items()
        ),
        *(
            (f"revision of deployment {name}", body["revision"] in of("revision"))
            for name, body in rows.get("deployment", {}).items()
        ),
        *((f"execution {name}", name.rpartition("/executions/")[0] in of("job")) for name in of("execution")),
        *((f"task {name}", name.rpartition("/tasks/")[0] in of("execution")) for name in of("task")),
        *((f"jobRun {name}", name in of("execution")) for name in of("jobRun")),
        *(
            (f"operation of jobRun {name}", set(body["operations"]) <= names["operations"])
            for name, body in rows.get("jobRun", {}).items()
        ),
        *((f"secretVersion {name}", name.rpartition("/versions/")[0] in of("secret")) for name in of("secretVersion")),
        *((f"payload {name}", name in of("secretVersion")) for name in names["payloads"]),
        *((f"object {name}", name.partition("/")[0] in of("bucket")) for name in of("object")),
        # A project's policy has two segments; a bucket and an account are kept by a shorter name than their policy.
        *(
            (f"policy {name}", name.count("/") == 1 or {name, name.rpartition("/")[2]} & owned)
            for name in names["policies"]
        ),
    ]
    for name, body in rows.get("service", {}).items():
        latest = [(key, body.get(key)) for key in ("latestCreatedRevision", "latestReadyRevision")]
        pairs += [(f"{key} of {name}", not revision or revision in of("revision")) for key, revision in latest]
    return [f"{what}: what it belongs to is gone" for what, there in pairs if not there]


def _files(cloud: Path, rows: dict[str, dict[str, dict[str, object]]]) -> list[str]:
    """Object files without a row, rows without a file, sizes that differ."""
    folder = cloud / "objects"
    files = {path.relative_to(folder).as_posix(): path.stat().st_size for path in folder.rglob("*") if path.is_file()}
    kept = {name: int(str(row["size"])) for name, row in rows.get("object", {}).items() if not name.endswith("/")}
    differing = sorted(name for name in files.keys() | kept.keys() if files.get(name) != kept.get(name))
    return [f"object {name}: {kept.get(name)} bytes in the row, {files.get(name)} in the file" for name in differing]
