"""Permissions of the pipeline's two accounts: what the stacks of this repository call, and nothing else. Pure.

Custom roles, because each predefined one gives more: `roles/run.admin` runs jobs, `roles/iam.serviceAccountAdmin`
changes who may act as an account, `roles/storage.admin` reads every bucket. Owns the lists, by what needs them. A test
runs stacks with them on localcloud, and takes each grant away in turn. Leaves out who gets which role (`deploy.py`).

The deploy account may act as every service account of the project, because Google has no condition on their names: in
a project of its own there is no other account with more rights than its own.
"""

from dataclasses import dataclass

PREVIEW_ACCOUNT, DEPLOY_ACCOUNT = "pipeline-preview", "pipeline-deploy"
"""Ids of the two accounts."""
SMOKE_ACCOUNT = "bezel-smoke"
"""Id of the account that calls services in checks of deploys by hand."""


@dataclass(frozen=True)
class CustomRole:
    """A role of the project.

    Attributes:
        id: Its id: letters, digits, dots and underscores.
        title: What it is for.
        permissions: Its permissions, sorted.
    """

    id: str
    title: str
    permissions: tuple[str, ...]

    @classmethod
    def of(cls, id_: str, title: str, *permissions: str) -> "CustomRole":
        """A role with the permissions of some lists, each of them blank-separated."""
        return cls(id_, title, tuple(sorted({name for part in permissions for name in part.split()})))


# What a plan asks about the project: enabled APIs, quotas, their use.
_PROJECT_READS = """
resourcemanager.projects.get serviceusage.services.get serviceusage.services.list
cloudquotas.quotas.get monitoring.timeSeries.list
"""
_SERVICE_READS = """
artifactregistry.repositories.get compute.subnetworks.get iam.serviceAccounts.get
run.operations.get run.revisions.get run.revisions.list run.services.get run.services.getIamPolicy run.services.list
"""
# Who has access to what a stack has, user-managed keys, and undeclared jobs: `bezel ci drift` and
# the health check of a deploy compare them with what the program declares.
_OUTSIDE_READS = """
artifactregistry.repositories.getIamPolicy cloudscheduler.jobs.list
compute.instances.getIamPolicy compute.networks.getEffectiveFirewalls compute.projects.get
compute.routers.list compute.subnetworks.getIamPolicy
iam.serviceAccountKeys.list iam.serviceAccounts.getIamPolicy
"""
# The reason of a failed start is in the logs; the smoke checks are requests to the service.
_SERVICE_WRITES = """
artifactregistry.repositories.create artifactregistry.repositories.delete artifactregistry.repositories.update
artifactregistry.repositories.downloadArtifacts
iam.serviceAccounts.actAs iam.serviceAccounts.create iam.serviceAccounts.delete iam.serviceAccounts.update
logging.logEntries.list
run.routes.invoke run.services.create run.services.delete run.services.update
"""
# Jobs of Cloud Scheduler change a service's minimum, or request and delete machines, by the hour.
_SCHEDULE_READS = "cloudscheduler.jobs.get iam.serviceAccounts.getIamPolicy"
# A new job is resumed by the provider, though it is never paused.
_SCHEDULE_WRITES = """
cloudscheduler.jobs.create cloudscheduler.jobs.delete cloudscheduler.jobs.enable cloudscheduler.jobs.update
"""
# `bezel ci expire` looks for what no stack holds any more. A list of secrets has names and labels, no values.
_LEFTOVER_READS = "artifactregistry.repositories.list secretmanager.secrets.list storage.buckets.list"
# A door's log is counted for the dashboard.
_ALERT_READS = """
logging.logMetrics.get
monitoring.alertPolicies.get monitoring.dashboards.get monitoring.notificationChannels.get
monitoring.uptimeCheckConfigs.get
"""
_ALERT_WRITES = """
logging.logMetrics.create logging.logMetrics.delete logging.logMetrics.update
monitoring.alertPolicies.create monitoring.alertPolicies.delete monitoring.alertPolicies.update
monitoring.dashboards.create monitoring.dashboards.delete monitoring.dashboards.update
monitoring.notificationChannels.create monitoring.notificationChannels.delete monitoring.notificationChannels.update
monitoring.uptimeCheckConfigs.create monitoring.uptimeCheckConfigs.delete monitoring.uptimeCheckConfigs.update
"""
_LEASE_READS = """
artifactregistry.repositories.getIamPolicy
compute.firewalls.get compute.instances.get compute.instances.list compute.networks.get compute.routers.get
compute.subnetworks.get
tpu.nodes.get tpu.nodes.list tpu.queuedResources.get tpu.queuedResources.list
"""
_LEASE_WRITES = """
compute.disks.create compute.disks.setLabels
compute.firewalls.create compute.firewalls.delete compute.firewalls.update
compute.globalOperations.get compute.regionOperations.get compute.zoneOperations.get
compute.instances.create compute.instances.delete compute.instances.getGuestAttributes
compute.instances.getSerialPortOutput compute.instances.setLabels compute.instances.setMetadata
compute.instances.setServiceAccount compute.instances.setTags
compute.networks.create compute.networks.delete compute.networks.updatePolicy compute.networks.use
compute.routers.create compute.routers.delete compute.routers.update
compute.subnetworks.create compute.subnetworks.delete compute.subnetworks.update compute.subnetworks.use
tpu.nodes.create tpu.nodes.delete tpu.nodes.getGuestAttributes
tpu.operations.get tpu.queuedResources.create tpu.queuedResources.delete
"""
_WEIGHTS_READS = "storage.buckets.get storage.buckets.getIamPolicy storage.objects.list"
_WEIGHTS_WRITES = """
storage.buckets.delete storage.buckets.setIamPolicy storage.buckets.update storage.objects.delete
"""
# What a stack makes as a secret for itself, such as its collector's configuration: a refresh compares the text too, and
# the provider enables a version that it has added.
_STACK_SECRETS_READS = "secretmanager.secrets.get secretmanager.versions.access secretmanager.versions.get"
_STACK_SECRETS_WRITES = """
secretmanager.secrets.delete secretmanager.secrets.getIamPolicy secretmanager.secrets.setIamPolicy
secretmanager.secrets.update
secretmanager.versions.destroy secretmanager.versions.enable secretmanager.versions.add
"""
# An address: a global load balancer, a certificate, records. Google asks for `use` of what a new part refers to. What
# `GlobalAddress` never changes has no permission: a certificate of Compute Engine, QUIC, a security policy.
_ADDRESS_READS = """
certificatemanager.certmapentries.get certificatemanager.certmaps.get certificatemanager.certs.get
certificatemanager.certs.list certificatemanager.dnsauthorizations.get
compute.backendServices.get compute.globalAddresses.get compute.globalForwardingRules.get
compute.regionNetworkEndpointGroups.get compute.sslPolicies.get compute.targetHttpsProxies.get compute.urlMaps.get
dns.managedZones.get dns.resourceRecordSets.list
"""
_ADDRESS_WRITES = """
certificatemanager.certmapentries.create certificatemanager.certmapentries.delete
certificatemanager.certmapentries.update
certificatemanager.certmaps.create certificatemanager.certmaps.delete certificatemanager.certmaps.update
certificatemanager.certmaps.use
certificatemanager.certs.create certificatemanager.certs.delete certificatemanager.certs.update
certificatemanager.certs.use
certificatemanager.dnsauthorizations.create certificatemanager.dnsauthorizations.delete
certificatemanager.dnsauthorizations.update certificatemanager.dnsauthorizations.use
certificatemanager.operations.get
compute.backendServices.create compute.backendServices.delete compute.backendServices.update
compute.backendServices.use
compute.globalAddresses.create compute.globalAddresses.delete compute.globalAddresses.setLabels
compute.globalAddresses.use
compute.globalForwardingRules.create compute.globalForwardingRules.delete compute.globalForwardingRules.setLabels
compute.globalForwardingRules.setTarget
compute.globalOperations.get compute.regionOperations.get
compute.regionNetworkEndpointGroups.create compute.regionNetworkEndpointGroups.delete
compute.regionNetworkEndpointGroups.use
compute.sslPolicies.create compute.sslPolicies.delete compute.sslPolicies.update compute.sslPolicies.use
compute.targetHttpsProxies.create compute.targetHttpsProxies.delete compute.targetHttpsProxies.setCertificateMap
compute.targetHttpsProxies.setSslPolicy compute.targetHttpsProxies.setUrlMap compute.targetHttpsProxies.use
compute.urlMaps.create compute.urlMaps.delete compute.urlMaps.update compute.urlMaps.use
dns.changes.create dns.changes.get
"""
_RECORD_WRITES = "dns.resourceRecordSets.create dns.resourceRecordSets.delete dns.resourceRecordSets.update"

PREVIEW = CustomRole.of(
    "bezelPreview",
    "Read what stacks consist of",
    _PROJECT_READS,
    _SERVICE_READS,
    _ALERT_READS,
    _LEASE_READS,
    _OUTSIDE_READS,
    _SCHEDULE_READS,
    "secretmanager.secrets.getIamPolicy resourcemanager.projects.getIamPolicy",
)
PREVIEW_WEIGHTS = CustomRole.of("bezelPreviewWeights", "List models in buckets of weights", _WEIGHTS_READS)
# Granted for the names alone that `SECRETS_OF_STACKS` begins: a secret of a user's is none of them.
PREVIEW_STACK_SECRETS = CustomRole.of(
    "bezelPreviewStackSecrets", "Read the secrets that stacks make", _STACK_SECRETS_READS
)
PREVIEW_ADDRESSES = CustomRole.of("bezelPreviewAddresses", "Read what addresses consist of", _ADDRESS_READS)
# A bucket or a secret is created in the project: no condition on its name can hold before it exists.
DEPLOY = CustomRole.of(
    "bezelDeploy",
    "Deploy services on Cloud Run",
    _PROJECT_READS,
    _SERVICE_READS,
    _SERVICE_WRITES,
    _ALERT_READS,
    _ALERT_WRITES,
    _LEFTOVER_READS,
    _OUTSIDE_READS,
    _SCHEDULE_READS,
    _SCHEDULE_WRITES,
    "secretmanager.secrets.create storage.buckets.create",
)
DEPLOY_LEASES = CustomRole.of("bezelDeployLeases", "Lease machines in a private network", _LEASE_READS, _LEASE_WRITES)
DEPLOY_WEIGHTS = CustomRole.of(
    "bezelDeployWeights", "Create and share buckets of weights", _WEIGHTS_READS, _WEIGHTS_WRITES
)
DEPLOY_SECRETS = CustomRole.of(
    "bezelDeploySecrets",
    "Give servers access to secrets",
    "secretmanager.secrets.getIamPolicy secretmanager.secrets.setIamPolicy",
)
DEPLOY_STACK_SECRETS = CustomRole.of(
    "bezelDeployStackSecrets", "Make and share secrets of stacks", _STACK_SECRETS_READS, _STACK_SECRETS_WRITES
)
DEPLOY_ADDRESSES = CustomRole.of(
    "bezelDeployAddresses", "Make load balancers and certificates", _ADDRESS_READS, _ADDRESS_WRITES
)
# Granted under a condition (`access.records_of`): who sets the records of other names can take them over.
DEPLOY_RECORDS = CustomRole.of("bezelDeployRecords", "Set the records of addresses", _RECORD_WRITES)
# Each is granted under a condition that limits it to the roles that stacks grant on that (`access.only_roles`,
# `bezel_components.base.granted_roles`): the account could else grant any role, to itself as well. Three, because a
# role may be harmless on a service and not on the project.
DEPLOY_PROJECT_GRANTS = CustomRole.of(
    "bezelDeployProjectGrants",
    "Let servers write series and log entries, and jobs lease machines",
    "resourcemanager.projects.getIamPolicy resourcemanager.projects.setIamPolicy",
)
DEPLOY_ACCOUNT_GRANTS = CustomRole.of(
    "bezelDeployAccountGrants",
    "Let jobs name accounts",
    "iam.serviceAccounts.getIamPolicy iam.serviceAccounts.setIamPolicy",
)
DEPLOY_RESOURCE_GRANTS = CustomRole.of(
    "bezelDeployGrants",
    "Share services and images",
    "run.services.getIamPolicy run.services.setIamPolicy",
    "artifactregistry.repositories.getIamPolicy artifactregistry.repositories.setIamPolicy",
)
LIMITED = (DEPLOY_PROJECT_GRANTS, DEPLOY_ACCOUNT_GRANTS, DEPLOY_RESOURCE_GRANTS)
"""Roles that are granted under a condition on the roles that may be granted by them."""
OF_DOMAINS = (PREVIEW_ADDRESSES, DEPLOY_ADDRESSES, DEPLOY_RECORDS)
"""Roles of a foundation that names domains."""
OF_STACK_SECRETS = (PREVIEW_STACK_SECRETS, DEPLOY_STACK_SECRETS)
"""Roles that are granted under a condition on the names of secrets."""
ROLES = (
    *(PREVIEW, PREVIEW_WEIGHTS, PREVIEW_STACK_SECRETS),
    *(DEPLOY, DEPLOY_LEASES, DEPLOY_WEIGHTS, DEPLOY_SECRETS, DEPLOY_STACK_SECRETS),
    *OF_DOMAINS,
    *LIMITED,
)
"""All custom roles of the foundation."""
