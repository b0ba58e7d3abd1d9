"""Changes as they were before the packages, and as they are now: the same stacks, the same judge.

What was before was read from the rules of that time, with the closures and plans of the tree of that time.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from bezel.gitops.changed.command import plans
from bezel.gitops.changed.import_closure import KINDS, _imported_names, closures, modules_of
from bezel.gitops.changed.rules import FileChange, Program, find_concerned
from bezel.gitops.judge.paths import is_judge
from tests.support.gitops.working_copy import tracked_files

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
CATALOGUE, COMPONENTS, BENCH = (
    "packages/catalog/bezel_catalog",
    "components/bezel_components",
    "packages/bench/bezel_bench",
)
LOCALCLOUD, POLICIES = "packages/localcloud/bezel_localcloud", "policies/bezel_policies"
OFFLINE = "packages/pulumi-offline/bezel_pulumi_offline"
# Path before, path now, the stacks concerned, whether it judges.
REPLAYED = [
    ("bezel/catalog/data/prices.csv", f"{CATALOGUE}/data/prices.csv", "planned otherwise", True),
    ("bezel/catalog/data/models.toml", f"{CATALOGUE}/data/models.toml", "planned otherwise", True),
    ("bezel/catalog/data/vllm/risks.toml", f"{CATALOGUE}/data/vllm/risks.toml", "planned otherwise", True),
    ("bezel/catalog/prices.py", f"{CATALOGUE}/prices.py", "every", True),
    ("bezel/planner/sizing/kv_cache.py", f"{CATALOGUE}/sizing/kv_cache.py", "every", True),
    ("bezel/errors.py", "packages/base/bezel_base/errors.py", "every", True),
    ("bezel/text/redaction.py", "packages/base/bezel_base/text/redaction.py", "every", True),
    ("bezel/bench/client/stream.py", f"{BENCH}/client/stream.py", "every", True),
    ("bezel/bench/report/page.py", f"{BENCH}/report/page.py", "none", True),
    ("bezel/localcloud/cloud.py", f"{LOCALCLOUD}/cloud.py", "none", True),
    ("bezel/localcloud/data/faults.toml", f"{LOCALCLOUD}/data/faults.toml", "none", True),
    ("bezel/simulated_vllm/serving.py", "packages/simulated-vllm/bezel_simulated_vllm/serving.py", "none", True),
    ("bezel/standin_providers/gcp.py", f"{OFFLINE}/gcp.py", "none", True),
    ("bezel/planner/__init__.py", "bezel/planner/__init__.py", "every", True),
    ("bezel/gitops/judge/paths.py", "bezel/gitops/judge/paths.py", "none", True),
    ("bezel/pulumi_engine/engine.py", "bezel/engine/run/engine.py", "none", True),
    ("bezel/cli/main.py", "bezel/cli/main.py", "none", True),
    # A lease's fallback is such a service.
    ("components/cloud_run_gpu_service.py", f"{COMPONENTS}/cloud_run_gpu_service.py", "every", False),
    ("components/tpu_lease.py", f"{COMPONENTS}/tpu_lease.py", "leases", False),
    ("components/node/startup.sh", f"{COMPONENTS}/node/startup.sh", "every", False),
    ("components/providers/model_files.py", f"{COMPONENTS}/providers/model_files.py", "every", False),
    ("components/providers/tpu_node.py", f"{COMPONENTS}/providers/tpu_node.py", "leases", False),
    ("components/new_component.py", f"{COMPONENTS}/new_component.py", "none", False),
    ("stacks/cloud_run.py", "services/bezel_services/cloud_run.py", "services", False),
    ("stacks/lease.py", "services/bezel_services/lease.py", "leases", False),
    ("stacks/dispatch.py", "stacks/bezel_stacks/dispatch.py", "every", False),
    ("smoke/health.py", "smoke/bezel_smoke/health.py", "every", False),
    ("smoke/benchmark.py", "smoke/bezel_smoke/benchmark.py", "every", False),
    ("plugin/bezel_plugin/table.py", "plugin/bezel_plugin/table.py", "every", True),
    ("policies/security/pack.py", f"{POLICIES}/security/pack.py", "every", True),
    ("policies/security/__main__.py", "policies/security/__main__.py", "every", True),
    ("policies/security/PulumiPolicy.yaml", "policies/security/PulumiPolicy.yaml", "every", True),
    ("policies/hardware_cost.prod.json", "policies/hardware_cost.prod.json", "every", True),
    ("bootstrap/access.py", "bootstrap/bezel_bootstrap/access.py", "none", True),
    ("bootstrap/Pulumi.yaml", "bootstrap/bezel_bootstrap/Pulumi.yaml", "none", True),
    ("__main__.py", "__main__.py", "every", False),
    ("Pulumi.yaml", "Pulumi.yaml", "every", True),
    ("Pulumi.v6e4-moe.yaml", "Pulumi.v6e4-moe.yaml", "v6e4-moe", False),
    ("uv.lock", "uv.lock", "every", True),
    ("pyproject.toml", "pyproject.toml", "every", True),
    ("pyproject.toml", "components/pyproject.toml", "every", True),
    ("pyproject.toml", "packages/localcloud/pyproject.toml", "every", True),
    ("tests/localcloud/test_patterns.py", "packages/localcloud/tests/test_patterns.py", "none", False),
    ("tests/components/test_x.py", "components/tests/test_x.py", "none", False),
    ("docs/localcloud.md", "packages/localcloud/docs/localcloud.md", "none", False),
    ("docs/components.md", "components/README.md", "none", False),
    ("LICENSE", "packages/localcloud/LICENSE", "none", False),
    ("tools/docs/localcloud.py", "tools/docs/localcloud.py", "none", False),
    ("tools/toolchain/environment.py", "tools/toolchain/environment.py", "every", True),
    ("tools/pulumi/go.sum", "tools/toolchain/pulumi/go.sum", "every", True),
    ("tools/pulumi/host/runtime.py", f"{OFFLINE}/language_host/runtime.py", "every", True),
    ("tools/pulumi/bin/pulumi-language-python", f"{OFFLINE}/plugins/pulumi-language-python", "every", True),
    (".github/workflows/deploy.yml", ".github/workflows/deploy.yml", "every", True),
    # A file that is first on the path was one at the top; the members' folders are on the path now as well.
    ("sitecustomize.py", "components/sitecustomize.py", "every", True),
    ("yaml.py", "policies/yaml.py", "every", True),
    ("bezel.pth", "stacks/bezel.pth", "every", True),
    ("evil.dist-info/entry_points.txt", "smoke/evil.dist-info/entry_points.txt", "every", True),
    ("catalog.py", "packages/base/bezel_catalog/__init__.py", "every", True),
    ("catalog.py", "bezel_catalog/__init__.py", "every", True),
    ("catalog.py", "components/bezel_catalog.py", "every", True),
]
# A member that was not there before, with the stacks that its program and its list of fields concern.
ADDED = (
    ("packages/door/bezel_door/http1/server.py", "every"),
    ("packages/door/bezel_door/key_file.py", "every"),
    ("packages/bench/compiled/setup.py", "every"),
)
# A module of a member that a state of before names is loaded with its providers, whatever the stack.
EARLIER = ("components/providers/model_files.py", "smoke/base.py", "smoke/benchmark.py", "smoke/health.py")


@dataclass(frozen=True)
class Tree:
    """The program of this tree, and the stacks by the word for them."""

    program: Program
    stacks: dict[str, frozenset[str]]

    def concerned_stacks(self, path: str) -> frozenset[str]:
        """Stacks that a change of a file concerns."""
        return frozenset(find_concerned([FileChange("M", path)], self.program).reasons)


@pytest.fixture(scope="module")
def tree() -> Tree:
    """This tree, in which a price has changed for one stack."""
    kind_of_stack = {name: parts["kind"] for name, parts in plans(ROOT).items()}
    kinds = {name: (kind,) if kind else tuple(KINDS) for name, kind in kind_of_stack.items()}
    groups = {"every": frozenset(kinds), "none": frozenset[str](), "planned otherwise": frozenset({"l4-qat"})}
    groups |= {f"{kind}s": frozenset(name for name, of in kinds.items() if kind in of) for kind in KINDS}
    assert 0 < len(groups["leases"]) < len(kinds) > len(groups["services"]) > 0
    return Tree(Program(kinds, closures(ROOT), {"l4-qat": "cost"}), groups)


@pytest.mark.parametrize(("before", "now", "stacks", "judges"), REPLAYED, ids=[now for _, now, _, _ in REPLAYED])
def test_a_change_concerns_the_stacks_of_before(tree: Tree, before: str, now: str, stacks: str, judges: bool) -> None:
    assert before
    assert tree.concerned_stacks(now) == tree.stacks.get(stacks, frozenset({stacks}))
    assert is_judge(now) is judges


@pytest.mark.parametrize(("path", "stacks"), ADDED)
def test_a_change_of_a_new_member_concerns_what_it_is_part_of(tree: Tree, path: str, stacks: str) -> None:
    assert tree.concerned_stacks(path) == tree.stacks[stacks]


@pytest.mark.parametrize("path", EARLIER)
def test_a_module_that_states_name_concerns_every_stack(tree: Tree, path: str) -> None:
    assert tree.concerned_stacks(path) == tree.stacks["every"]
    assert not is_judge(path)


def test_every_module_of_the_language_host_concerns_every_stack(tree: Tree) -> None:
    modules = modules_of(ROOT)
    waiting, seen = [name for name in modules if name.startswith("bezel_pulumi_offline.language_host")], set[str]()
    while waiting:
        if (name := waiting.pop()) not in seen:
            seen.add(name)
            waiting += _imported_names(ROOT / modules[name], name, modules)
    assert {"bezel_base.loopback.grpc_guard", "bezel_pulumi_offline.language_host.runtime"} <= seen
    assert {name for name in seen if tree.concerned_stacks(modules[name]) != tree.stacks["every"]} == set()


def test_the_table_has_files_of_this_tree_and_of_every_member() -> None:
    tracked = set(tracked_files())
    present = [now for now in (*(now for _, now, _, _ in REPLAYED), *(path for path, _ in ADDED)) if now in tracked]
    assert len(present) >= 30
    members = {path.rpartition("/pyproject.toml")[0] for path in tracked if path.endswith("/pyproject.toml")}
    members = {member for member in members if not member.startswith("templates/")}
    assert {member for member in members if not any(now.startswith(f"{member}/") for now in present)} == set()
