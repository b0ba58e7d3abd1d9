"""Reading of what a stack has in Google Cloud, and its comparison with what its program declares.

A few requests at a time, all of them within a deadline. What may not be read, or is not answered in time, is not
judged. What does not exist is no change of a setting, and an API that is not enabled has none.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import quote

from bezel.outside_changes import grant_rules, machine_rules, other_rules, service_rules
from bezel.outside_changes.change import Findings, NotJudged, OutsideChange
from bezel.outside_changes.declared import Declared, Grant, Machine
from bezel.rest import ApiError, GoogleClient, endpoint
from bezel_base.errors import UserError, one_line
from bezel_base.text.shell import shell_word

_AT_A_TIME = 8
_VERSION = "3"  # of a policy: older ones hide conditions
_DISABLED = re.compile(r"has not been used in project|is disabled|SERVICE_DISABLED", re.IGNORECASE)
_DENIED = frozenset({401, 403})
_MOST_PAGES = 20

Grants = Mapping[str, Iterable[Grant]]


class _Question(NamedTuple):
    """Settings, the permission that reads them, and the request."""

    what: str
    permission: str
    ask: Callable[[], Iterable[OutsideChange]]


@dataclass(frozen=True)
class Cloud:
    """Google's APIs for a comparison.

    Attributes:
        client: Client for the requests, with a deadline of its own for each.
        environ: The environment that names the addresses; None for the process's own.
        seconds: Deadline of the whole comparison.
    """

    client: GoogleClient
    environ: Mapping[str, str] | None = None
    seconds: float = 20.0

    def get(self, api: str, path: str, **params: str | int) -> dict[str, Any]:
        """GET a resource."""
        return self.client.get(f"{endpoint(api, self.environ)}{path}", params=params or None)

    def policy(self, api: str, path: str) -> dict[str, Any]:
        """GET a policy of an API with `options.requestedPolicyVersion`."""
        return self.get(api, path, **{"options.requestedPolicyVersion": _VERSION})

    def policy_by_post(self, api: str, path: str) -> dict[str, Any]:
        """POST for a policy."""
        body = {"options": {"requestedPolicyVersion": int(_VERSION)}}
        return self.client.post(f"{endpoint(api, self.environ)}{path}", body, idempotent=True)

    def rows(self, api: str, path: str, items: str) -> Iterator[dict[str, Any]]:
        """Rows of a list, of a bounded number of pages."""
        pages = self.client.pages(f"{endpoint(api, self.environ)}{path}", items, params={"pageSize": 500})
        for number, row in enumerate(pages):
            if number >= _MOST_PAGES * 500:
                return
            yield row


def outside_changes(
    declared: Declared,
    cloud: Cloud,
    *,
    services: Mapping[str, Mapping[str, Any]] | None = None,
    elsewhere: Callable[[], Grants] | None = None,
) -> Findings:
    """The changes made outside of the program, of everything that a stack has.

    Args:
        declared: What the program declares.
        cloud: Google's APIs.
        services: Services that were read already, by name.
        elsewhere: Reads what other programs declare of what they share: secrets, and buckets that none of them made.
            None where that is not known: of these only a grant to everyone is judged then.
    """
    questions = list(_questions(declared, cloud, services or {}))
    shared = list(_shared_questions(declared, cloud, elsewhere))
    pool = ThreadPoolExecutor(_AT_A_TIME)
    try:
        asked = [*questions, *shared]
        futures = [pool.submit(_answer, question) for question in asked]
        done, _ = wait(futures, timeout=cloud.seconds)
        changes: list[OutsideChange] = []
        not_judged: list[NotJudged] = []
        for question, future in zip(asked, futures, strict=True):
            if future not in done:
                why = f"no answer within {cloud.seconds:g} s"
                not_judged.append(NotJudged(question.what, question.permission, why))
                continue
            answer = future.result()
            if isinstance(answer, NotJudged):
                not_judged.append(answer)
            else:
                changes += answer
        return Findings(tuple(dict.fromkeys(changes)), tuple(dict.fromkeys(not_judged)))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _answer(question: _Question) -> list[OutsideChange] | NotJudged:
    try:
        return list(question.ask())
    except ApiError as error:
        if error.status == 404 or (error.status == 403 and _DISABLED.search(f"{error.reason} {error.message}")):
            return []
        return NotJudged(question.what, question.permission, error.message, denied=error.status in _DENIED)
    except UserError as error:
        return NotJudged(question.what, question.permission, one_line(error))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        # An answer of another form than documented.
        return NotJudged(question.what, question.permission, f"{type(error).__name__}: {error}")


def _questions(declared: Declared, cloud: Cloud, services: Mapping[str, Mapping[str, Any]]) -> Iterator[_Question]:
    for name in declared.services:
        yield _Question(
            f"settings of service {_short(name)}", "run.services.get",
            partial(_service, declared, cloud, name, services.get(name)),
        )  # fmt: skip
        yield _policy(declared, name, f"service {_short(name)}", "run.services", _service_command(name),
                      partial(cloud.policy, "CLOUD_RUN_V2", f"{name}:getIamPolicy"))  # fmt: skip
    for name, email in declared.accounts.items():
        project = name.split("/")[1]
        command = (
            f"gcloud iam service-accounts remove-iam-policy-binding {shell_word(email)} --project={shell_word(project)}"
        )
        yield _policy(declared, name, f"service account {email}", "iam.serviceAccounts", command,
                      partial(cloud.policy_by_post, "IAM_BETA", f"{name}:getIamPolicy"))  # fmt: skip
        yield _Question(
            f"keys of service account {email}", "iam.serviceAccountKeys.list", partial(_keys, cloud, name, email)
        )
    for project in sorted({name.split("/")[1] for name in declared.accounts}):
        yield _Question(
            f"grants of the stack's accounts in project {project}", "resourcemanager.projects.getIamPolicy",
            partial(_project, declared, cloud, project),
        )  # fmt: skip
    for name, inputs in declared.buckets.items():
        if inputs is not None:
            short = name.removeprefix("b/")
            yield _Question(
                f"settings of bucket {short}", "storage.buckets.get", partial(_bucket, cloud, short, inputs)
            )
            yield _bucket_policy(declared, cloud, short)
    for name, inputs in declared.repositories.items():
        _, project, _, location, _, short = name.split("/")
        yield _Question(
            f"settings of repository {short}", "artifactregistry.repositories.get",
            partial(_repository, cloud, name, inputs),
        )  # fmt: skip
        command = (
            f"gcloud artifacts repositories remove-iam-policy-binding {shell_word(short)} "
            f"--location={shell_word(location)}"
        )
        yield _policy(declared, name, f"repository {short}", "artifactregistry.repositories",
                      f"{command} --project={shell_word(project)}",
                      partial(cloud.policy, "ARTIFACT_REGISTRY", f"{name}:getIamPolicy"))  # fmt: skip
    yield from _of_leases(declared, cloud)
    if declared.accounts:
        for location in sorted({"/".join(name.split("/")[:4]) for name in declared.services}):
            yield _Question(
                f"jobs of Cloud Scheduler in {_short(location)}", "cloudscheduler.jobs.list",
                partial(_jobs, declared, cloud, location),
            )  # fmt: skip


def _of_leases(declared: Declared, cloud: Cloud) -> Iterator[_Question]:
    for name in declared.networks:
        short = _short(name)
        yield _Question(
            f"firewall of network {short}", "compute.networks.getEffectiveFirewalls",
            partial(_firewalls, declared, cloud, name),
        )  # fmt: skip
        yield _Question(f"peerings of network {short}", "compute.networks.get", partial(_network, cloud, name))
    for name, inputs in declared.subnetworks.items():
        _, project, _, region, _, short = name.split("/")
        yield _Question(
            f"settings of subnetwork {short}", "compute.subnetworks.get", partial(_subnetwork, cloud, name, inputs)
        )
        command = (
            f"gcloud compute networks subnets remove-iam-policy-binding {shell_word(short)} "
            f"--region={shell_word(region)}"
        )
        command += f" --project={shell_word(project)}"
        yield _policy(declared, name, f"subnetwork {short}", "compute.subnetworks", command,
                      partial(cloud.get, "COMPUTE", f"{name}/getIamPolicy",
                              optionsRequestedPolicyVersion=_VERSION))  # fmt: skip
    for region in sorted({"/".join(name.split("/")[:4]) for name in declared.subnetworks}):
        yield _Question(
            f"routers in {_short(region)}", "compute.routers.list", partial(_routers, declared, cloud, region)
        )
    for project in sorted({machine.project for machine in declared.machines}):
        yield _Question(
            f"metadata of the machines of project {project}", "compute.projects.get",
            partial(_common_metadata, cloud, project),
        )  # fmt: skip
    for machine in declared.machines:
        if machine.back_end == "queued_resource":
            permission, ask = "tpu.nodes.get", _node
        else:
            permission, ask = "compute.instances.get", _instance
        yield _Question(f"settings of machine {machine.name}", permission, partial(ask, cloud, machine))
        if machine.back_end != "queued_resource":
            yield _Question(
                f"IAM policy of machine {machine.name}", "compute.instances.getIamPolicy",
                partial(_instance_policy, cloud, machine),
            )  # fmt: skip


def _shared_questions(declared: Declared, cloud: Cloud, elsewhere: Callable[[], Grants] | None) -> Iterator[_Question]:
    """What several programs use, and none of them made."""
    for name in declared.secrets:
        _, project, _, short = name.split("/")
        command = f"gcloud secrets remove-iam-policy-binding {shell_word(short)} --project={shell_word(project)}"
        read = partial(cloud.policy, "SECRET_MANAGER", f"{name}:getIamPolicy")
        what = f"secret {short}"
        yield _Question(
            f"IAM policy of {what}", "secretmanager.secrets.getIamPolicy",
            partial(_shared_grants, declared, name, what, command, read, elsewhere),
        )  # fmt: skip
    for name, inputs in declared.buckets.items():
        if inputs is None:
            short = name.removeprefix("b/")
            yield _Question(
                f"IAM policy of bucket {short}", "storage.buckets.getIamPolicy",
                partial(_shared_grants, declared, name, f"bucket {short}", _bucket_command(short),
                        partial(_read_bucket_policy, cloud, short), elsewhere),
            )  # fmt: skip


def _shared_grants(
    declared: Declared,
    name: str,
    what: str,
    command: str,
    read: Callable[[], dict[str, Any]],
    elsewhere: Callable[[], Grants] | None,
) -> Iterator[OutsideChange]:
    grants = grant_rules.undeclared_grants(read(), declared.grants.get(name, ()))
    if elsewhere is None:
        grants = [grant for grant in grants if grant.member in grant_rules.EVERYONE]
    elif any(grant.member not in grant_rules.EVERYONE for grant in grants):
        others = set(elsewhere().get(name, ()))
        grants = [grant for grant in grants if grant not in others]
    return (grant_rules.grant_change(what, command, grant) for grant in grants)


def _policy(
    declared: Declared, name: str, what: str, permissions: str, command: str, read: Callable[[], dict[str, Any]]
) -> _Question:
    def ask() -> Iterator[OutsideChange]:
        grants = grant_rules.undeclared_grants(read(), declared.grants.get(name, ()))
        return (grant_rules.grant_change(what, command, grant) for grant in grants)

    return _Question(f"IAM policy of {what}", f"{permissions}.getIamPolicy", ask)


def _service(declared: Declared, cloud: Cloud, name: str, described: Mapping[str, Any] | None) -> list[OutsideChange]:
    live = described if described is not None else cloud.get("CLOUD_RUN_V2", name)
    minima, switched = declared.minima.get(name, frozenset()), declared.switched.get(name)
    return service_rules.service_changes(
        name, declared.services[name], live, minima=minima, switched=switched, ended=declared.ended.get(name, "")
    )


def _service_command(name: str) -> str:
    _, project, _, region, _, short = name.split("/")
    command = f"gcloud run services remove-iam-policy-binding {shell_word(short)} --region={shell_word(region)}"
    return f"{command} --project={shell_word(project)}"


def _keys(cloud: Cloud, name: str, email: str) -> Iterator[OutsideChange]:
    answer = cloud.get("IAM_BETA", f"{name}/keys", keyTypes="USER_MANAGED")
    return other_rules.key_changes(email, name.split("/")[1], answer.get("keys") or ())


def _project(declared: Declared, cloud: Cloud, project: str) -> Iterator[OutsideChange]:
    policy = cloud.policy_by_post("RESOURCE_MANAGER", f"projects/{project}:getIamPolicy")
    members = [f"serviceAccount:{email}" for email in declared.accounts.values()]
    grants = grant_rules.undeclared_of_members(policy, declared.grants.get(f"projects/{project}", ()), members)
    command = f"gcloud projects remove-iam-policy-binding {shell_word(project)}"
    return (grant_rules.grant_change(f"project {project}", command, grant) for grant in grants)


def _bucket(cloud: Cloud, name: str, inputs: Mapping[str, Any]) -> Iterator[OutsideChange]:
    return other_rules.bucket_changes(name, inputs, cloud.get("STORAGE", f"b/{quote(name, safe='')}"))


def _bucket_policy(declared: Declared, cloud: Cloud, name: str) -> _Question:
    read = partial(_read_bucket_policy, cloud, name)
    return _policy(declared, f"b/{name}", f"bucket {name}", "storage.buckets", _bucket_command(name), read)


def _bucket_command(name: str) -> str:
    return f"gcloud storage buckets remove-iam-policy-binding gs://{shell_word(name)}"


def _read_bucket_policy(cloud: Cloud, name: str) -> dict[str, Any]:
    return cloud.get("STORAGE", f"b/{quote(name, safe='')}/iam", optionsRequestedPolicyVersion=_VERSION)


def _firewalls(declared: Declared, cloud: Cloud, name: str) -> Iterator[OutsideChange]:
    effective = cloud.get("COMPUTE", f"{name}/getEffectiveFirewalls")
    return machine_rules.firewall_changes(name, effective, declared.firewalls)


def _network(cloud: Cloud, name: str) -> Iterator[OutsideChange]:
    return machine_rules.network_changes(name, cloud.get("COMPUTE", name))


def _routers(declared: Declared, cloud: Cloud, region: str) -> Iterator[OutsideChange]:
    routers = cloud.get("COMPUTE", f"{region}/routers").get("items") or ()
    return machine_rules.router_changes(declared.networks, routers, declared.nats)


def _repository(cloud: Cloud, name: str, inputs: Mapping[str, Any]) -> Iterator[OutsideChange]:
    return other_rules.repository_changes(name, inputs, cloud.get("ARTIFACT_REGISTRY", name))


def _subnetwork(cloud: Cloud, name: str, inputs: Mapping[str, Any]) -> Iterator[OutsideChange]:
    return machine_rules.subnetwork_changes(_short(name), inputs, cloud.get("COMPUTE", name))


def _common_metadata(cloud: Cloud, project: str) -> Iterator[OutsideChange]:
    return machine_rules.project_changes(project, cloud.get("COMPUTE", f"projects/{project}"))


def _instance(cloud: Cloud, machine: Machine) -> list[OutsideChange]:
    return _in_its_zone(
        machine,
        lambda zone: machine_rules.instance_changes(
            machine, cloud.get("COMPUTE", f"projects/{machine.project}/zones/{zone}/instances/{machine.name}")
        ),
    )


def _instance_policy(cloud: Cloud, machine: Machine) -> list[OutsideChange]:
    def ask(zone: str) -> Iterator[OutsideChange]:
        path = f"projects/{machine.project}/zones/{zone}/instances/{machine.name}/getIamPolicy"
        policy = cloud.get("COMPUTE", path, optionsRequestedPolicyVersion=_VERSION)
        command = (
            f"gcloud compute instances remove-iam-policy-binding {shell_word(machine.name)} --zone={shell_word(zone)}"
        )
        command += f" --project={machine.project}"
        what = f"machine {machine.name}"
        return (grant_rules.grant_change(what, command, grant) for grant in grant_rules.undeclared_grants(policy, ()))

    return _in_its_zone(machine, ask)


def _node(cloud: Cloud, machine: Machine) -> list[OutsideChange]:
    return _in_its_zone(
        machine,
        lambda zone: machine_rules.node_changes(
            machine, cloud.get("TPU_V2ALPHA1", f"projects/{machine.project}/locations/{zone}/nodes/{machine.name}")
        ),
    )


def _in_its_zone(machine: Machine, ask: Callable[[str], Iterable[OutsideChange]]) -> list[OutsideChange]:
    """The changes of a machine in the zone that holds it; none where no zone does."""
    for zone in machine.zones:
        try:
            return list(ask(zone))
        except ApiError as error:
            if error.status != 404:
                raise
    return []


def _jobs(declared: Declared, cloud: Cloud, location: str) -> Iterator[OutsideChange]:
    targets = [f"/services/{_short(name)}" for name in declared.services]
    targets += [
        f"/{kind}/{each.name}" for each in declared.machines for kind in ("queuedResources", "instances", "nodes")
    ]
    jobs = cloud.rows("CLOUD_SCHEDULER", f"{location}/jobs", "jobs")
    return other_rules.job_changes(jobs, declared.jobs, targets, declared.accounts.values())


def _short(name: str) -> str:
    return name.rpartition("/")[2]
