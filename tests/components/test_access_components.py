"""The account, its secrets, the bucket and the APIs: least rights, in the right order, judged in a preview."""

import pulumi
import pytest
from pydantic import ValidationError

from bezel_components import runtime_identity
from bezel_components.base.argument_errors import ArgumentsError
from bezel_components.base.explained_errors import REFUSED, explaining
from bezel_components.enabled_apis import EnabledApis, EnabledApisArgs
from bezel_components.runtime_identity import RuntimeIdentity, RuntimeIdentityArgs, service_account_email
from bezel_components.weights_bucket import WeightsBucket, WeightsBucketArgs
from tests.support.components.fake_engine import Declarations, declare, has_unknown

EMAIL = "vllm-chat@acme-llm.iam.gserviceaccount.com"


def identity(*secrets: str) -> RuntimeIdentity:
    return RuntimeIdentity("runtime", RuntimeIdentityArgs(project="acme-llm", account_id="vllm-chat", secrets=secrets))


def weights(*, create: bool, **more: object) -> WeightsBucket:
    args = WeightsBucketArgs(
        project="acme-llm", bucket="acme-llm-models", location="us-east4", create=create, readers=(EMAIL,), **more
    )
    return WeightsBucket("weights", args)


def test_the_account_may_read_the_named_secrets_and_nothing_else() -> None:
    """The account may read the named secrets and has no right on the project."""
    declared = declare(lambda: identity("hf-token", "api-key", "hf-token"))
    grants = declared.of("SecretIamMember")
    assert [grant.inputs["secretId"] for grant in grants] == ["api-key", "hf-token"]
    assert {grant.inputs["role"] for grant in grants} == {"roles/secretmanager.secretAccessor"}
    assert {grant.inputs["member"] for grant in grants} == {f"serviceAccount:{EMAIL}"}
    assert not [resource for resource in declared.all if "gcp:projects/" in resource.type]


def test_without_secrets_nothing_is_granted() -> None:
    assert not declare(identity).of("IamMember")


@pytest.mark.parametrize(
    ("error", "explained"),
    [
        ("googleapi: Error 404: Secret [projects/1/secrets/hf-token] not found.", True),
        ("googleapi: Error 403: Permission denied.", False),
    ],
)
def test_an_absent_secret_is_explained_with_the_command_that_makes_it(
    caplog: pytest.LogCaptureFixture, error: str, explained: bool
) -> None:
    """A secret that nobody made is explained with the command that makes it."""

    def program() -> bool:
        problem = runtime_identity._missing_secret("hf-token", "acme-llm")
        (hook,) = explaining("runtime-missing-hf-token", ("not found",), problem).on_error
        return hook(pulumi.ErrorHookArgs(urn="u", id="", name="n", type="t", errors=[error]))

    assert declare(program).result is False
    assert ("gcloud secrets create hf-token --project=acme-llm --data-file=FILE" in caplog.text) is explained
    assert declare(lambda: identity("hf-token")).one("SecretIamMember").hooks


@pytest.mark.parametrize("setting", ["alerts", "metrics"])
@pytest.mark.parametrize(
    ("error", "explained"),
    [
        ("googleapi: Error 403: Policy update access denied., forbidden", True),
        ("googleapi: Error 409: There were concurrent policy changes.", False),
    ],
)
def test_a_refused_grant_on_the_project_is_explained(
    caplog: pytest.LogCaptureFixture, error: str, explained: bool, setting: str
) -> None:
    """A refused grant on the project is explained with what the deploying account needs."""

    def program() -> bool:
        account = {"project": "acme-llm", "account_id": "vllm-chat"}
        args = RuntimeIdentityArgs(**account, writes_logs=setting == "alerts", writes_metrics=setting == "metrics")
        *_, problem = runtime_identity._roles_on_project(args).values()
        (hook,) = explaining("runtime-refused-grant", REFUSED, problem).on_error
        return hook(pulumi.ErrorHookArgs(urn="u", id="", name="n", type="t", errors=[error]))

    assert declare(program).result is False
    assert ("resourcemanager.projects.setIamPolicy" in caplog.text) is explained
    assert (f"bezel:observability.{setting}" in caplog.text) is explained


def test_a_grant_waits_for_the_account_whose_name_it_computed() -> None:
    declared = declare(lambda: identity("hf-token"))
    assert declared.waits_for(declared.one("SecretIamMember"), declared.one("Account"))
    assert not declared.waits_for(declared.one("Account"), declared.one("SecretIamMember"))


def test_in_a_first_preview_account_and_bucket_are_known_to_policies() -> None:
    declared = declare(lambda: (identity("hf-token"), weights(create=True)), preview=True)
    assert not has_unknown([(grant.inputs, grant.name) for grant in declared.of("Member")])
    assert declared.one("RuntimeIdentity").outputs == {"email": EMAIL, "member": f"serviceAccount:{EMAIL}"}
    assert has_unknown(declared.one("WeightsBucket").outputs["url"])
    assert declared.one("WeightsBucket").outputs["bucket"] == "acme-llm-models"


@pytest.mark.parametrize(
    ("project", "expected"),
    [
        ("acme-llm", "vllm-chat@acme-llm.iam.gserviceaccount.com"),
        ("example.com:acme-llm", "vllm-chat@acme-llm.example.com.iam.gserviceaccount.com"),
    ],
)
def test_the_address_of_an_account_follows_from_its_project(project: str, expected: str) -> None:
    assert service_account_email("vllm-chat", project) == expected


def test_a_bucket_that_is_made_is_private_and_kept_unless_said_otherwise() -> None:
    bucket = declare(lambda: weights(create=True)).one("storage/bucket:Bucket").inputs
    assert bucket["uniformBucketLevelAccess"] is True
    assert bucket["publicAccessPrevention"] == "enforced"
    assert bucket["forceDestroy"] is False
    assert (
        declare(lambda: weights(create=True, force_destroy=True)).one("storage/bucket:Bucket").inputs["forceDestroy"]
        is True
    )


def test_an_existing_bucket_is_used_and_not_made() -> None:
    declared = declare(lambda: weights(create=False))
    assert not declared.of("storage/bucket:Bucket")
    assert declared.one("BucketIAMMember").inputs == {
        "bucket": "acme-llm-models",
        "member": f"serviceAccount:{EMAIL}",
        "role": "roles/storage.objectViewer",
    }


def test_the_reader_waits_for_a_bucket_that_is_made_here() -> None:
    declared = declare(lambda: weights(create=True))
    assert declared.waits_for(declared.one("BucketIAMMember"), declared.one("storage/bucket:Bucket"))


def test_made_or_used_the_bucket_registers_the_same_outputs() -> None:
    made, used = (declare(lambda c=create: weights(create=c)).one("WeightsBucket") for create in (True, False))
    assert made.outputs.keys() == used.outputs.keys() == {"bucket", "url"}


def test_a_destroy_leaves_the_apis_on() -> None:
    args = EnabledApisArgs(project="acme-llm", services=("run.googleapis.com", "storage.googleapis.com"))
    declared = declare(lambda: EnabledApis("apis", args))
    services = declared.of("projects/service:Service")
    assert [(service.name, service.inputs["disableOnDestroy"]) for service in services] == [
        ("apis-run", False),
        ("apis-storage", False),
    ]


def test_children_wait_for_what_their_component_waits_for() -> None:
    def program() -> None:
        first = EnabledApis("apis", EnabledApisArgs(project="p", services=("iam.googleapis.com",)))
        args = RuntimeIdentityArgs(project="acme-llm", account_id="vllm-chat")
        RuntimeIdentity("told", args, pulumi.ResourceOptions(depends_on=[first]))
        RuntimeIdentity("told-alone", args, pulumi.ResourceOptions(depends_on=first))
        RuntimeIdentity("free", args)

    declared = declare(program)
    api = declared.one("projects/service:Service")
    assert declared.waits_for(declared.by_name("told-account"), api)
    assert declared.waits_for(declared.by_name("told-alone-account"), api)
    assert not declared.waits_for(declared.by_name("free-account"), api)


def test_children_belong_to_their_component_and_carry_its_name() -> None:
    declared: Declarations = declare(lambda: (identity("hf-token"), weights(create=True)))
    for token, name in (("RuntimeIdentity", "runtime-"), ("WeightsBucket", "weights-")):
        component = declared.one(token)
        children = [resource for resource in declared.all if resource.parent == component.urn]
        assert children
        assert all(child.name.startswith(name) for child in children)


def test_an_argument_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ArgumentsError, match="secret"):
        RuntimeIdentityArgs(project="acme-llm", account_id="vllm-chat", secret="hf-token")


def test_arguments_cannot_be_changed_after_they_were_checked() -> None:
    args = RuntimeIdentityArgs(project="acme-llm", account_id="vllm-chat")
    with pytest.raises(ValidationError, match="frozen"):
        args.project = "other"
