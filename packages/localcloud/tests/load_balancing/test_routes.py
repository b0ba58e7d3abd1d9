"""Routing table: which backend service, region and Cloud Run service a request's host, path and headers lead to."""

import pytest

from bezel_localcloud.core.store import Store
from bezel_localcloud.services.load_balancing.routes import listeners

GLOBAL, REGIONS = "projects/p/global", "projects/p/regions"
BE, OTHER = f"{GLOBAL}/backendServices/be", f"{GLOBAL}/backendServices/other"
GROUP = f"{REGIONS}/us-east4/networkEndpointGroups/us"
MAP = {
    "defaultService": BE,
    "hostRules": [
        {"hosts": ["llm.acme.example"], "pathMatcher": "paths"},
        {"hosts": ["*.acme.example"], "pathMatcher": "routes"},
        {"hosts": ["old.example"], "pathMatcher": "moved"},
    ],
    "pathMatchers": [
        {
            "name": "paths",
            "defaultService": BE,
            "pathRules": [{"paths": ["/v1/*"], "service": OTHER}, {"paths": ["/v1/models"], "service": BE}],
        },
        {
            "name": "routes",
            "defaultService": BE,
            "routeRules": [
                {
                    "priority": 2,
                    "matchRules": [{"prefixMatch": "/"}],
                    "routeAction": {
                        "weightedBackendServices": [
                            {"backendService": BE, "weight": 90},
                            {"backendService": OTHER, "weight": 10},
                        ]
                    },
                },
                {
                    "priority": 1,
                    "matchRules": [{"headerMatches": [{"headerName": "X-Canary", "exactMatch": "1"}]}],
                    "service": OTHER,
                },
            ],
        },
        {"name": "moved", "defaultUrlRedirect": {"hostRedirect": "llm.acme.example"}},
    ],
}


@pytest.fixture
def listener(tmp_path):
    store = Store(tmp_path / "cloud.db")
    store.put("urlMaps", f"{GLOBAL}/urlMaps/map", MAP)
    store.put("backendServices", BE, {"backends": [{"group": GROUP, "capacityScaler": 0.5}]})
    store.put("backendServices", OTHER, {})
    store.put("regionNetworkEndpointGroups", GROUP, {"cloudRun": {"service": "llm"}})
    proxy = f"{GLOBAL}/targetHttpsProxies/https"
    link = "//certificatemanager.googleapis.com/projects/p/locations/global/certificateMaps/map"
    entry = f"{link.partition('.com/')[2]}/certificateMapEntries/entry"
    store.put("certificatemanager/certificateMapEntries", entry, {"hostname": "a.example", "certificates": ["c"]})
    store.put("targetHttpsProxies", proxy, {"urlMap": f"{GLOBAL}/urlMaps/map", "certificateMap": link})
    rule = {"IPAddress": "127.250.0.2", "portRange": "443-443", "target": proxy}
    store.put("globalForwardingRules", f"{GLOBAL}/forwardingRules/rule", rule)
    (only,) = listeners(store)
    store.close()
    return only


def test_a_listener_has_its_address_certificates_and_regions(listener):
    assert (listener.address, listener.port, listener.secure) == ("127.250.0.2", 443, True)
    assert listener.certificates == (("a.example", "c"),)
    (region,) = listener.table[BE].regions
    assert (region.name, region.service, region.capacity) == ("us-east4", "llm", 0.5)


def test_a_host_and_a_path_choose_the_service(listener):
    for host, path, headers, expected in (
        ("elsewhere.example", "/", {}, {BE: 1}),
        ("llm.acme.example", "/", {}, {BE: 1}),
        ("llm.acme.example", "/v1", {}, {OTHER: 1}),
        ("llm.acme.example", "/v1/chat", {}, {OTHER: 1}),
        ("llm.acme.example", "/v1/models", {}, {BE: 1}),
        ("llm.acme.example", "/v10", {}, {BE: 1}),
        ("www.acme.example", "/", {}, {BE: 90, OTHER: 10}),
        ("www.acme.example", "/", {"x-canary": "1"}, {OTHER: 1}),
        ("www.acme.example", "/", {"x-canary": "2"}, {BE: 90, OTHER: 10}),
    ):
        route = listener.route(host, path, headers)
        assert {backend.name: weight for backend, weight in route.backends} == expected, (host, path)


def test_a_redirect_has_no_backend(listener):
    route = listener.route("old.example", "/x")
    assert (route.backends, route.redirect) == ((), {"hostRedirect": "llm.acme.example"})
