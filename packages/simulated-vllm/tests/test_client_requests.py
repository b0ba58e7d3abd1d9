"""Requests as clients send them: what the real server of each release answered, the simulated one answers."""

from __future__ import annotations

import http.client
from collections import Counter

import pytest

from bezel_catalog.vllm.servers import recorded_servers
from simulated_vllm_support import client_requests
from simulated_vllm_support.client_requests import answer_shape
from simulated_vllm_support.servers import CONFIGURATIONS
from simulated_vllm_support.shapes import alike


@pytest.fixture(scope="module", params=recorded_servers())
def server(request, serve):
    """The release, and the port of a server of it."""
    arguments = CONFIGURATIONS["generated"].arguments
    with serve("/mnt/models/tiny", *arguments, release=request.param, speed=500.0) as client:
        yield request.param, client.base_url.port


def ask(port, request):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request(request.method, request.path, request.content or None, dict(request.headers))
    response = connection.getresponse()
    shape = answer_shape(response.status, response.headers.get("content-type", ""), response.read().decode())
    connection.close()
    return shape


@pytest.mark.slow
def test_requests_of_clients_are_answered_as_by_the_real_server(server):
    release, port = server
    wrong = []
    for request, real in client_requests.read(release):
        answer = ask(port, request)
        if not alike(real, answer):
            wrong.append((request, real, answer))
    assert wrong == []


@pytest.mark.parametrize("release", recorded_servers())
def test_recorded_requests_of_clients_are_of_every_kind(release):
    answers = client_requests.read(release)
    kinds = Counter(request.kind for request, _ in answers)
    assert len(kinds) >= 27
    assert min(kinds.values()) >= 3
    assert {200, 400, 404, 405, 501} <= {shape[1] for _, shape in answers}
