"""A small stack for changes in two steps: a checkout, a cloud, and a context with what it showed."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from bezel.operations.changes.plan import Outcome, Plan
from bezel.operations.context import Context
from bezel.operations.deploy.deploy import DeployArguments, apply_deploy, plan_deploy
from tests.support.gitops.pipeline import STACK, Pipeline


@dataclass
class TwoSteps:
    """A pipeline's small program, deployed by operations instead of a pipeline."""

    pipeline: Pipeline
    shown_lines: list[str] = field(default_factory=list)

    @classmethod
    def on_a_folder(cls, folder: Path) -> Self:
        """Its states are in a folder, where only the engine locks."""
        made = Pipeline.small(folder)
        states = folder / "states"
        states.mkdir()
        made.environment["PULUMI_BACKEND_URL"] = f"file://{states}"
        return cls(made)

    def context(self, **environment: str) -> Context:
        """A new context, as a face makes one for each call."""
        return Context(self.pipeline.folder, self.pipeline.warm_environment | environment, show=self.shown_lines.append)

    def plan(self) -> Plan:
        """The plan of a deploy."""
        return plan_deploy(self.context(), DeployArguments(stack=STACK, wait="0s"))

    def deploy(self) -> Outcome:
        """Deploy."""
        return apply_deploy(self.context(), self.plan())

    def buckets(self) -> list[dict[str, Any]]:
        """The program's buckets in the cloud."""
        items = self.pipeline.cloud.get("/storage/v1/b", project="bezel-local").json()["items"]
        return [item for item in items if item["name"].startswith("data-")]
