"""Rules that both kinds of stacks share, each with its input, with all problems at once.

Leaves the rules to bezel.planner.rules and bezel.planner.vllm, services to bezel.planner.assemble.validate, leased
machines to bezel.planner.assemble.lease_validate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from bezel.planner.address.address_checks import check_address
from bezel.planner.address.region_checks import check_regions, stack_regions, with_first_region
from bezel.planner.base.deployment import SmokePlan
from bezel.planner.base.hardware import leased_hardware
from bezel.planner.base.names import is_project_id, stack_labels
from bezel.planner.base.parse import read_settings
from bezel.planner.base.problems import PlanError, one_of, setting
from bezel.planner.cost.price_rows import check_own_prices
from bezel.planner.rules import platform_checks as platform
from bezel.planner.rules.image_checks import check_image, is_own, recording_of, unrecorded_image
from bezel.planner.rules.network_checks import check_ingress
from bezel.planner.rules.observability_checks import check_objectives
from bezel.planner.rules.process_limits import check_process
from bezel.planner.rules.smoke_checks import check_smoke
from bezel.planner.rules.storage_checks import check_own_copy, check_regional_buckets, check_weights
from bezel.planner.team.door_checks import check_keys
from bezel.planner.vllm.adapter_modules import MODULES, check_modules
from bezel.planner.vllm.argument_conflicts import check_conflicts, check_served
from bezel.planner.vllm.arguments import chosen_arguments, merge, typed_values
from bezel.planner.vllm.device.device_checks import check_device
from bezel.planner.vllm.engine_args import EngineArgs, read_engine, served_names
from bezel.planner.vllm.loading import HUB
from bezel.planner.vllm.model.model_relations import check_model_relations
from bezel.planner.vllm.model.model_support import check_support
from bezel.planner.vllm.model.multimodal_checks import check_longest_item
from bezel.planner.vllm.model.named_adapters import AdapterPlace, adapter_options, check_adapters, check_class
from bezel.planner.vllm.model.pooling import planned_pooling
from bezel.planner.vllm.option_checks import check_fields, check_left_out, check_options, check_spellings
from bezel.planner.vllm.risk_checks import check_risks
from bezel.planner.vllm.serving_checks import check_serving
from bezel_base.errors import NOT_SET, Problem
from bezel_base.text.shell import shell_word
from bezel_catalog import (
    NotInCatalogueError,
    accelerator,
    closest_record,
    ids_by_hub_id,
    model,
    unservable_form,
    vllm_options,
)
from bezel_catalog.project_models import FILE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from datetime import date

    from bezel.planner.base.settings import Settings
    from bezel.planner.rules.startup import StartEstimate
    from bezel.planner.vllm.arguments import Argument
    from bezel_catalog import Accelerator, Model, VllmOptions

Record = TypeVar("Record")
SMOKE_CONCURRENCY = 64  # a short benchmark, not a load test


class Validation:
    """The rules that hold for every stack, and the problems found so far.

    Attributes:
        settings: settings, with defaults in place of invalid values, and with `region` as the first of several.
        project: id of the Google Cloud project, None where it is not set.
        stack: name of the stack.
        problems: every problem so far.
        unread: keys whose values could not be read.
        model: the checkpoint, None for an unknown one.
        options: the recorded options of the image's vLLM, None where there are none.
        arguments: of the server, by option name; empty without recorded options.
        offline: whether the server loads its model from a bucket.
        adapter_place: where the adapters of the setting come from.
    """

    def __init__(self, config: Mapping[str, object], *, project: str | None, stack: str, today: date | None) -> None:
        settings, self.problems = read_settings(config)
        self.unread = frozenset(problem.key for problem in self.problems)
        leased = settings.accelerator in leased_hardware()
        self.problems += check_regions(settings, self.unread, leased=leased)
        self.settings = with_first_region(settings)
        self.project, self.stack = project, stack
        self.problems += check_own_prices(self.settings.cost.prices, today=today)
        self.problems += check_project(project)
        self.problems += check_image(self.settings)
        unknown = (
            unservable_form(self.settings.model)
            or "without its architecture, neither its memory nor its speed can be planned."
        )
        self.model = self.look_up("model", self.settings.model, model, unknown)
        self.options = self._look_up_options()
        self.chosen = chosen_arguments(self.settings.vllm, self.options) if self.options else {}
        self.arguments: dict[str, Argument] = {}
        self.offline = self.settings.weights.loading != HUB.id
        self.adapter_place = AdapterPlace("mounted")

    def look_up(self, key: str, name: str, find: Callable[[str], Record], consequence: str) -> Record | None:
        """A record of the catalogue; None, with a problem, for an unknown name."""
        try:
            return find(name) if name else None
        except NotInCatalogueError as error:
            known_names = sorted((*error.known, *leased_hardware())) if key == "accelerator" else error.known
            near = closest_record(name, known_names, ids_by_hub_id() if key == "model" else None)
            consequence = f"it is not in the catalogue: {consequence}"
            repair = one_of(known_names, near)
            if key == "model" and "/" in name:
                command = f"`bezel catalog add-model {shell_word(name)}`"
                repair = f"{command} reads the model's own files and writes its row into {FILE}; or {repair}"
            self.problems.append(Problem(setting(key), name, consequence, repair))
            return None

    def _look_up_options(self) -> VllmOptions | None:
        key, recorded = recording_of(self.settings)
        try:
            return vllm_options(recorded)
        except NotInCatalogueError as error:
            self.problems.append(unrecorded_image(key, error.name, error.known, error.closest))
            return None

    def check_platform(self, planned: Mapping[str, str]) -> None:
        """Check what every stack asks of Google Cloud; `planned` are the variables that the plan sets itself."""
        settings = self.settings
        self.problems += platform.check_access(settings.access)
        self.problems += check_address(settings, self.unread, project=self.project)
        self.problems += check_keys(settings, self.stack, self.project)
        self.problems += check_ingress(settings.access, settings.smoke)
        self.problems += platform.check_secrets(settings.secrets, planned)
        self.problems += platform.check_labels(settings.labels)
        self.problems += check_weights(settings.weights, self.project or "", in_bucket=self.offline)
        self.problems += check_regional_buckets(settings.weights, self.project or "", stack_regions(settings))
        if self.model:
            self.problems += check_own_copy(settings.weights, self.model) if self.offline else []
            self.problems += platform.check_label_count(settings.labels, stack_labels(settings, self.model, self.stack))

    def check_options(self, defaults: Mapping[str, object], *, adapters: AdapterPlace, leased: bool = False) -> None:
        """Merge the stack file's options into the defaults, and check each by itself; `adapters` come from a place."""
        self.adapter_place = adapters
        if self.options is None:
            return
        defaults = {**defaults, **adapter_options(self.settings.adapters, adapters, self.chosen, self.options)}
        settings, options = self.settings, self.options
        self.arguments = merge(defaults, self.chosen, options)
        self.problems += check_spellings(settings.vllm, options)
        self.problems += check_options(self.arguments, options)
        self.problems += check_left_out(self.chosen, defaults, options)
        self.problems += check_risks(settings, self.arguments, options)
        pools = self._pooled_at() is not None
        self.problems += check_serving(self.values, settings, leased=leased, pools=pools)
        self.problems += check_objectives(settings, pools=pools)
        self.problems += check_process(self.arguments, settings.variables, leased=leased)

    @property
    def values(self) -> dict[str, Any]:
        """Values of the arguments as vLLM reads them, by option name; None for one that its parser refuses."""
        return typed_values(self.arguments)

    def check_engine(
        self,
        accelerator: str | None,
        refused_as: str,
        environment: Mapping[str, str],
        copies_at: str,
        devices: int = 1,
        *,
        mount: str | None = None,
    ) -> EngineArgs | None:
        """Check combinations of arguments, and read the engine's figures from them.

        Args:
            accelerator: its name in the stack file; None where it is unknown.
            refused_as: its name in the catalogue's refusals.
            environment: variables of the container, without secrets.
            copies_at: prefix of the bucket's folders for vLLM, "" where it takes hub ids.
            devices: GPUs or chips of one machine, which share the model.
            mount: where the bucket is mounted, "" where it is not, None for leased machines.
        """
        if self.options is None or self.model is None:
            return None
        gpu = _gpu_of(refused_as) if accelerator else None
        unserved = list(check_support(self.model, self.options.version, gpu, tpu=refused_as == "tpu"))
        self.problems += unserved
        if unserved:
            return None  # what follows is computed from its layers
        own_image = is_own(self.settings.image)
        self.problems += check_conflicts(
            self.arguments,
            self.model,
            accelerator,
            devices=devices,
            environment=environment,
            options=self.options,
            copies_at=copies_at,
            own_image=own_image,
        )
        served = served_names(self.values.get("served-model-name"), self.model)
        folder = (self.settings.weights.path or self.model.folder or "").strip("/")
        self.problems += check_adapters(
            self.settings.adapters, self.adapter_place, self.chosen, served=served, model_folder=folder
        )
        self.problems += check_class(
            self.settings.adapters,
            self.model,
            self.options.version,
            enabled=self.values.get("enable-lora") is True,
        )
        modules = self.arguments.get(MODULES)
        self.problems += check_modules(
            # Those of the setting are checked by its own keys.
            self.values if modules is None or modules.from_stack else self.values | {MODULES: None},
            served,
            mount=mount,
            offline=environment.get("HF_HUB_OFFLINE") == "1",
            own_image=own_image,
        )
        self.problems += check_longest_item(self.values, self.model, tpu=refused_as == "tpu")
        self.problems += check_model_relations(
            self.values, self.model, environment, self.options, tpu=refused_as == "tpu"
        )
        if accelerator:
            self.problems += check_device(self.values, self.model, _gpu_of(refused_as), environment)
        self.problems += check_fields(self.arguments, self.options)
        self.problems += check_served(self.model, accelerator, refused_as) if accelerator else []
        engine, unread = read_engine(self.arguments, self.model, release=self.options.version, environment=environment)
        self.problems += unread
        return engine

    def plan_smoke(self, engine: EngineArgs, *, instances: int, concurrency: int, raised_by: str) -> SmokePlan:
        """Plan the smoke check and the short benchmark.

        Args:
            engine: figures of the arguments.
            instances: maximum of servers.
            concurrency: maximum of concurrent requests to all servers.
            raised_by: the setting that raises this maximum.
        """
        chosen = self.settings.smoke
        sent = chosen.concurrency or min(concurrency, instances * engine.max_num_seqs, SMOKE_CONCURRENCY)
        smoke = SmokePlan(
            deadline_seconds=chosen.deadline_seconds,
            speculative=engine.speculative,
            min_draft_acceptance=chosen.min_draft_acceptance,
            random_weights=chosen.random_weights,
            # Fewer than three rounds reach no steady state.
            requests=chosen.requests or 3 * sent,
            concurrency=sent,
            prompt_tokens=chosen.prompt_tokens,
            output_tokens=chosen.output_tokens,
            impersonate=chosen.impersonate,
            pooled_at=self._pooled_at(),
        )
        self.problems += check_smoke(smoke, engine, max_concurrency=concurrency, raised_by=raised_by)
        return smoke

    def _pooled_at(self) -> str | None:
        """The endpoint that shows that a model which pools works."""
        if self.model is None or self.options is None:
            return None
        pooling = planned_pooling(self.model, self.values, self.options.version)
        return None if pooling is None else pooling.checked_endpoint or ""

    def refusal(self) -> PlanError:
        """The first problem of each value: later problems of the same value follow from it."""
        first: dict[tuple[str, str | None], Problem] = {}
        for problem in self.problems:
            first.setdefault((problem.key, problem.value), problem)
        return PlanError.of(first.values(), self.stack)


def check_project(project: str | None) -> Iterator[Problem]:
    """Check that the project is set and its id valid: all names depend on it."""
    if not project:
        yield Problem(
            "gcp:project",
            NOT_SET,
            "buckets, accounts and addresses are named by the project: nothing can be planned without it.",
            "`pulumi config set gcp:project PROJECT_ID`, or set GOOGLE_CLOUD_PROJECT.",
        )
    elif not is_project_id(project):
        yield Problem(
            "gcp:project",
            project,
            "a project cannot have this ID: buckets, accounts and addresses with it could not be created.",
            "write the project's ID (`gcloud projects list`), not its name or number: 6 to 30 lower case letters, "
            "digits and hyphens, a letter first.",
        )


def _gpu_of(refused_as: str) -> Accelerator | None:
    """The record of a GPU; None for a TPU."""
    return None if refused_as == "tpu" else accelerator(refused_as)


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidatedStack:
    """Settings that pass every rule, with the results of the rules that hold for both kinds of stacks."""

    settings: Settings
    stack: str
    project: str
    model: Model
    options: VllmOptions
    arguments: Mapping[str, Argument]
    environment: Mapping[str, str]
    engine: EngineArgs
    start: StartEstimate
    smoke: SmokePlan
