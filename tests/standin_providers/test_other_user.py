"""A stand-in does nothing for another user of the machine."""

import grpc
import pytest
from google.protobuf import empty_pb2
from pulumi.runtime.proto import provider_pb2 as pb
from pulumi.runtime.proto import provider_pb2_grpc

from pulumi_offline_support.client import StartedProvider, urn
from pulumi_offline_support.google import FakeGoogle
from pulumi_offline_support.programs import PROGRAMS
from tests.support.other_user import reachable_by_other_user

SECRET = "gcp:secretmanager/secret:Secret"


@pytest.mark.slow
def test_it_does_nothing_for_another_user_of_the_machine(google: FakeGoogle) -> None:
    provider = StartedProvider("gcp", google.environment())
    sent = len(google.requests_of("POST"))
    with reachable_by_other_user(provider.port) as way, grpc.insecure_channel(f"127.0.0.1:{way}") as channel:
        theirs = provider_pb2_grpc.ResourceProviderStub(channel)
        request = pb.CreateRequest(urn=urn(SECRET), properties=provider.check(SECRET, PROGRAMS[SECRET]).inputs)
        for call in (lambda: theirs.Create(request, timeout=10), lambda: theirs.Cancel(empty_pb2.Empty(), timeout=60)):
            with pytest.raises(grpc.RpcError) as refused:
                call()
            assert refused.value.code() == grpc.StatusCode.PERMISSION_DENIED
    assert len(google.requests_of("POST")) == sent
    provider.close()
