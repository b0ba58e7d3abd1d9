"""Register of the instances of all revisions: which run, in which state, and how long each revision's ran in all."""

from collections import Counter

from bezel_localcloud.routing.context import RevisionUse
from bezel_localcloud.services.cloud_run.runtime.instance import Instance


class InstanceRegister:
    """Instances from their start to their end, and the running time of those that ended."""

    def __init__(self) -> None:
        self._running: list[tuple[str, Instance]] = []
        self._ended_seconds: dict[str, float] = {}

    def add(self, revision: str, instance: Instance) -> None:
        """Keep an instance of a revision until it ends."""
        self._forget(None)
        self._running.append((revision, instance))

    def remove(self, instance: Instance) -> None:
        """Forget an instance that did not start, and all ended ones."""
        self._forget(instance)

    def find(self, instance: str) -> tuple[str, Instance] | None:
        """The revision and the instance with that id."""
        return next(((revision, running) for revision, running in self._running if running.id == instance), None)

    def instance_counts(self, service: str) -> Counter[str]:
        """Number of instances of each revision of a service at this moment."""
        return Counter(revision for revision, _ in self._of(service))

    def use(self, service: str) -> dict[str, RevisionUse]:
        """What each revision of a service that had an instance since the daemon's start uses, and used."""
        self._forget(None)
        active, idle, seconds = Counter[str](), Counter[str](), dict[str, float]()
        for revision, ended in self._ended_seconds.items():
            if revision.startswith(f"{service}/"):
                seconds[revision] = ended
        for revision, instance in self._of(service):
            (idle if instance.is_idle else active)[revision] += 1
            seconds[revision] = seconds.get(revision, 0.0) + instance.lived_seconds
        return {revision: RevisionUse(active[revision], idle[revision], seconds[revision]) for revision in seconds}

    def _of(self, service: str) -> list[tuple[str, Instance]]:
        return [
            (revision, instance)
            for revision, instance in self._running
            if revision.startswith(f"{service}/") and not instance.exited.is_set()
        ]

    def _forget(self, ended: Instance | None) -> None:
        kept = []
        for revision, instance in self._running:
            if instance is not ended and not instance.exited.is_set():
                kept.append((revision, instance))
            else:
                self._ended_seconds[revision] = self._ended_seconds.get(revision, 0.0) + instance.lived_seconds
        self._running = kept
