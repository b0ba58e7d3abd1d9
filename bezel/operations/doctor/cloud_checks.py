"""Checks in the cloud: the project, its APIs, quotas, hardware in zones, weights in buckets. Reads only.

What several stacks share is asked once. Leaves the amounts to bezel.planner.assemble.quota, and what a folder needs to
be a model to bezel.weights.layout.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, TypeVar
from urllib.parse import quote

from bezel.leases.inventory import back_end_of
from bezel.operations.context import Context
from bezel.operations.doctor.check import Check, Job, check
from bezel.operations.quota.known import needs_of_service
from bezel.operations.weights.stack_buckets import stack_buckets
from bezel.planner import AnyPlan, LeasePlan, Plan
from bezel.planner.assemble.quota import QUOTA_API, USE_API, Need, is_short, lease_needs, request
from bezel.planner.base.deployment import WeightsPlan
from bezel.planner.base.money import Priced, text
from bezel.planner.cost.weights_transfer import BucketPlace, Transfer
from bezel.rest import ApiError, GoogleClient
from bezel.rest.buckets import bucket_of
from bezel.rest.cloud_quotas import Limit, quota_of
from bezel.weights.adapter import ADAPTER_CONFIG, adapter_problems, missing_adapter_parts
from bezel.weights.layout import missing_parts
from bezel_base.text.shell import shell_word
from bezel_catalog import accelerator


@dataclass(frozen=True)
class _Folder:
    """Folder of a model in a bucket: whether it holds a draft model, and whether the first deploy makes the bucket.

    `adapter_rank` is the largest rank that the server takes of an adapter; None for a model.
    """

    bucket: str
    path: str
    is_draft: bool
    is_made: bool
    adapter_rank: int | None = None

    @property
    def address(self) -> str:
        return f"gs://{self.bucket}/{self.path}"


Plans = Mapping[str, tuple[AnyPlan, str | None]]
_K = TypeVar("_K")
_Choice = Literal["each", "any place", "optional"]
"""Which of the quotas have to suffice: each of a service's, one of a lease's, none of an optional region's."""
_PAGE = 200


def cloud_jobs(context: Context, client: GoogleClient, plans: Plans) -> list[Job]:
    """Checks of every project, quota, zone and folder that the plans name."""
    named = {stack: (plan, project) for stack, (plan, project) in plans.items() if project is not None}
    projects = list(dict.fromkeys(project for _, project in named.values()))
    apis: defaultdict[str, set[str]] = defaultdict(set)
    for plan, project in named.values():
        apis[project] |= {*plan.apis}
    quotas = _stacks_by_key(named, _quota_keys)
    folders = _stacks_by_key(named, _folders)
    jobs = []
    for project in projects:
        jobs.append(Job("project", project, partial(_project, context, client, project)))
        jobs.append(Job("APIs", project, partial(_apis, context, client, project, sorted(apis[project]))))
    for (project, needs, choice), stacks in quotas.items():
        names = ", ".join(stacks)
        jobs.append(Job("quotas", names, partial(_quotas, client, project, needs, names, choice=choice)))
    for stack, (plan, project) in named.items():
        jobs.append(Job("regions", stack, partial(_regions, client, stack, plan, project)))
    for folder, stacks in folders.items():
        jobs.append(Job("weights", folder.address, partial(_weights, context, client, folder, stacks[0])))
    buckets = _stacks_by_key(named, lambda plan, _: stack_buckets(plan))
    for bucket, stacks in buckets.items():
        readers = {stack: named[stack][0] for stack in stacks}
        jobs.append(Job("weights", f"location of gs://{bucket}", partial(_places, context, client, bucket, readers)))
    return jobs


def _stacks_by_key(
    named: Mapping[str, tuple[AnyPlan, str]], keys: Callable[[AnyPlan, str], Iterable[_K]]
) -> dict[_K, list[str]]:
    """The stacks of each key."""
    stacks_by_key: defaultdict[_K, list[str]] = defaultdict(list)
    for stack, (plan, project) in named.items():
        for key in keys(plan, project):
            stacks_by_key[key].append(stack)
    return dict(stacks_by_key)


def _quota_keys(plan: AnyPlan, project: str) -> Iterator[tuple[str, tuple[Need, ...], _Choice]]:
    """What a stack needs, together or in each region, and what a shortage there means."""
    if isinstance(plan, LeasePlan):
        yield project, lease_needs(plan.terms), "any place"
        if plan.fallback is not None:
            yield project, needs_of_service(plan.fallback.plan, plan.fallback.service), "each"
        return
    for region, service in zip(plan.regions, plan.services, strict=True):
        yield project, needs_of_service(plan, service), "optional" if region.optional else "each"


def _folders(plan: AnyPlan, project: str) -> list[_Folder]:
    weights, folders = plan.weights, list[_Folder]()
    if weights.bucket is not None:
        folders += [folder for bucket in stack_buckets(plan) for folder in _folders_of(bucket, weights)]
    if isinstance(plan, LeasePlan) and plan.fallback is not None:
        folders += [each for each in _folders(plan.fallback.plan, project) if each not in folders]
    return folders


def _folders_of(bucket: str, weights: WeightsPlan) -> list[_Folder]:
    model_folder = _Folder(bucket, weights.path, is_draft=False, is_made=weights.create)
    drafts = (_Folder(bucket, path, is_draft=True, is_made=weights.create) for path in weights.drafts)
    adapters = (
        _Folder(bucket, path, is_draft=False, is_made=weights.create, adapter_rank=rank)
        for path, rank in weights.adapters.items()
    )
    return [model_folder, *drafts, *adapters]


def _project(context: Context, client: GoogleClient, project: str) -> Iterable[Check]:
    try:
        record = client.get(f"{context.address('RESOURCE_MANAGER')}projects/{project}")
    except ApiError as error:
        if error.status not in {403, 404}:
            raise
        # Google does not say whether a project exists to those who may not see it.
        repair = "check the id (`gcloud projects list`), and that this identity has a role in it."
        return [check("project", project, "problem", f"it does not exist, or may not be read: {error.message}", repair)]
    state = str(record.get("lifecycleState") or "unknown")
    if state != "ACTIVE":
        repair = f"restore it: `gcloud projects undelete {shell_word(project)}`, or choose another one."
        return [check("project", project, "problem", f"its state is {state}", repair)]
    return [check("project", project, "ok", "active")]


def _apis(context: Context, client: GoogleClient, project: str, needed: Sequence[str]) -> Iterable[Check]:
    url = f"{context.address('SERVICE_USAGE')}projects/{project}/services"
    rows = client.pages(url, "services", params={"filter": "state:ENABLED", "pageSize": _PAGE})
    enabled = {str(row.get("name") or "").rpartition("/")[2] for row in rows}
    missing = [api for api in needed if api not in enabled]
    reads = [api for api in (QUOTA_API, USE_API) if api not in enabled]
    unread = "quotas, their use, instances and costs so far stay unknown"
    if missing:
        detail = f"not enabled: {', '.join(missing)}; a deploy enables them, if it may"
        detail += f"; until then {unread}" if {*missing} & {*reads} else ""
        yield check("APIs", project, "warning", detail, _enabling(missing, project))
    else:
        yield check("APIs", project, "ok", f"the {len(needed)} that its stacks need are enabled")
    if others := [api for api in reads if api not in missing]:
        detail = f"not enabled: {', '.join(others)}; {unread}"
        yield check("APIs", project, "warning", detail, _enabling(others, project))


def _enabling(apis: Sequence[str], project: str) -> str:
    return f"`gcloud services enable {' '.join(map(shell_word, apis))} --project={shell_word(project)}`."


def _quotas(
    client: GoogleClient, project: str, needs: Sequence[Need], subject: str, *, choice: _Choice
) -> Iterable[Check]:
    """Each quota of a service has to suffice; of a lease, that of one place; an optional region is left out."""
    short: list[Check] = []
    enough: list[Check] = []
    unknown: list[Check] = []
    for need in needs:
        allowed = quota_of(client, project, Limit(need.quota.service, need.quota.id, need.place, need.quota.dimensions))
        needed = f"{need.quota.things(need.amount)} in {need.place} ({need.quota.id})"
        if allowed is None:
            repair = f"look at the quotas of {need.quota.service} in the console, IAM & Admin > Quotas."
            unknown.append(check("quotas", subject, "unknown", f"needs {needed}; Google states no value", repair))
        elif is_short(need, allowed.value):
            detail = f"needs {needed}; {project} has {need.quota.things(allowed.value)}"
            repair = f"`{request(need, project, need.amount)}`."
            if choice == "optional":
                detail += f": a deploy leaves out {need.place}, which is optional"
            short.append(check("quotas", subject, "warning" if choice == "optional" else "problem", detail, repair))
        else:
            enough.append(check("quotas", subject, "ok", f"needs {needed}, and the quota allows it"))
    if choice == "any place" and enough:
        return enough
    return [*short, *unknown, *enough]


def _regions(client: GoogleClient, stack: str, plan: AnyPlan, project: str) -> Iterable[Check]:
    if not isinstance(plan, LeasePlan):
        return [_region(stack, plan, each.region) for each in plan.regions]
    fallback = plan.fallback
    of_fallback = [] if fallback is None else [_region(stack, fallback.plan, fallback.service.region)]
    return [_zones(client, stack, plan, project), *of_fallback]


def _zones(client: GoogleClient, stack: str, plan: LeasePlan, project: str) -> Check:
    """Whether the zones of a lease have its hardware."""
    terms = plan.terms
    kind = terms.hardware.id if terms.back_end == "queued_resource" else terms.hardware.machine_type
    api = back_end_of(terms.back_end, client, project)
    zones = [zone.zone for zone in terms.zones]
    lacking = [zone for zone in zones if not api.has_hardware(zone, kind)]
    if not lacking:
        return check("regions", stack, "ok", f"{kind} exists in {', '.join(zones)}; no API states free capacity")
    repair = f"correct `lease.zones` of {stack}: `bezel zones {shell_word(stack)}` shows the others."
    text = f"{kind} does not exist in {', '.join(lacking)}, of {', '.join(zones)}"
    return check("regions", stack, "problem" if len(lacking) == len(zones) else "warning", text, repair)


def _region(stack: str, plan: Plan, region: str) -> Check:
    """Whether a region offers a service's accelerator."""
    gpu = accelerator(plan.service.accelerator)
    if region in gpu.regions_on_invitation:
        detail = next(text for text in plan.warnings if text.startswith(f"{region} offers"))
        setting = "bezel:regions" if len(plan.regions) > 1 else "bezel:region"
        repair = f"ask Google for access, or set `{setting}` of {stack} to another."
        return check("regions", stack, "warning", detail, repair)
    detail = f"the catalogue lists {gpu.id} in {region}; only a deploy shows free capacity"
    return check("regions", stack, "ok", detail)


def _places(context: Context, client: GoogleClient, bucket: str, readers: Mapping[str, AnyPlan]) -> Iterable[Check]:
    """Whether a bucket is where the servers of its stacks are: each start of one reads all weights."""
    subject = f"location of gs://{bucket}"
    try:
        place = BucketPlace.of(bucket_of(client, context.address("STORAGE"), bucket))
    except ApiError as error:
        if error.status == 404:
            return []  # the outcome of its folders says so
        detail = f"not known, so it is not judged whether starts read across regions: {error.message}"
        repair = "let this identity read it (roles/storage.bucketViewer), or look at it in the console."
        return [check("weights", subject, "unknown", detail, repair)]
    return [_place(f"{subject}, {stack}", stack, _transfer(plan, bucket, place)) for stack, plan in readers.items()]


def _transfer(plan: AnyPlan, bucket: str, place: BucketPlace) -> Transfer | None:
    """What the starts of a stack's servers read from one of its buckets."""
    transfer = plan.transfer(place)
    if transfer is None or transfer.bucket == bucket or not isinstance(plan, Plan):
        return transfer
    regions = tuple(each.region for each in plan.regions if each.bucket == bucket)
    return replace(transfer, bucket=bucket, regions=regions)


def _place(subject: str, stack: str, transfer: Transfer | None) -> Check:
    if transfer is None or transfer.far is None:
        where = transfer.place if transfer else "nowhere"
        repair = f"compare it with the region of {stack} by hand."
        return check("weights", subject, "unknown", f"expected a location of the catalogue, got {where}", repair)
    if warning := transfer.warning():
        repair = (
            f"set `bezel:weights: {{regional_buckets: true}}` in {stack}, and `bezel weights copy {shell_word(stack)}`."
            if transfer.may_copy
            else f"copy the model into a bucket in {transfer.far[0]}, and set `bezel:weights.bucket` of {stack} to it."
        )
        return check("weights", subject, "warning", warning, repair)
    amount = transfer.usd
    costs = f"{text(amount, 2)} USD" if isinstance(amount, Priced) else f"an unknown amount: {amount.reason}"
    return check(
        "weights", subject, "ok", f"{transfer.place}, near {', '.join(transfer.regions)}; a start pays {costs}"
    )


def _weights(context: Context, client: GoogleClient, folder: _Folder, stack: str) -> Iterable[Check]:
    subject, copy = folder.address, f"`bezel weights copy {shell_word(stack)}`"
    url = f"{context.address('STORAGE')}b/{quote(folder.bucket, safe='')}/o"
    params = {"prefix": f"{folder.path}/", "fields": "items(name,size),nextPageToken"}
    try:
        rows = list(client.pages(url, "items", params=params))
    except ApiError as error:
        if error.status != 404:
            raise
        if folder.is_made:
            detail = "the bucket does not exist; the first deploy creates it, and finds the model missing"
            return [check("weights", subject, "warning", detail, f"deploy, then {copy}.")]
        repair = f"create it, or correct `weights.bucket`; then {copy}."
        return [check("weights", subject, "problem", "the bucket does not exist", repair)]
    files = {str(row["name"]).removeprefix(f"{folder.path}/"): int(row.get("size") or 0) for row in rows}
    top_files = {name: size for name, size in files.items() if "/" not in name}
    if folder.adapter_rank is not None:
        problems = missing_adapter_parts(top_files)
        if not problems:
            name = quote(f"{folder.path}/{ADAPTER_CONFIG}", safe="")
            config = client.send("GET", f"{url}/{name}", params={"alt": "media"}).content
            problems = adapter_problems(config, folder.adapter_rank)
        if problems:
            repair = (
                f"copy the adapter to {subject} ({copy} for one with a source), or correct the adapters of {stack} and "
                "their ranks."
            )
            return [check("weights", subject, "problem", "; ".join(problems), repair)]
        return [check("weights", subject, "ok", f"{len(top_files)} files of an adapter")]
    if problems := missing_parts(top_files, draft=folder.is_draft):
        return [check("weights", subject, "problem", "; ".join(problems), f"{copy} copies what is missing.")]
    return [check("weights", subject, "ok", f"{len(top_files)} files")]
