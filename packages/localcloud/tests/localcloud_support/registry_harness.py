"""A localcloud in this process with one repository, and the steps of a client of the registry protocol."""

import base64
import json

import httpx

from bezel_localcloud.core.files.blobs import digest_of
from localcloud_support.in_process import PARENT, SCOPE, Project, run

HOST = "us-east4-docker.pkg.dev"
REPOSITORY = f"{PARENT}/locations/us-east4/repositories/tools"
REPOSITORIES = f"/artifactregistry/v1/{PARENT}/locations/us-east4/repositories"
CONTENTS = f"{REPOSITORIES}/tools"
APP = f"/v2/{HOST}/bezel-local/tools/app"
OCI = "application/vnd.oci.image."
MANIFEST, INDEX, CONFIG, LAYER = (
    f"{OCI}{kind}" for kind in ("manifest.v1+json", "index.v1+json", "config.v1+json", "layer.v1.tar")
)


class Registry(Project):
    """A project with the repository `tools` in us-east4."""

    def __init__(self, directory, **repository):
        super().__init__(directory)
        for api in ("artifactregistry", "iam"):
            self.cloud.store.put("api", f"{api}.googleapis.com", {"state": "ENABLED"})
        self.repository("tools", **repository)

    def repository(self, name, **body):
        self.ok("POST", REPOSITORIES, {"format": "DOCKER"} | body, repositoryId=name)

    def send(self, verb, path, content=b"", *, token=None, **headers):
        """The answer to a request of the protocol; `token` "" sends none, headers are named with underscores."""

        async def request():
            token_sent = self.token if token is None else token
            sent = {name.replace("_", "-"): value for name, value in headers.items()}
            sent |= {"Authorization": f"Bearer {token_sent}"} if token_sent and "authorization" not in sent else {}
            transport = httpx.ASGITransport(self.application)
            async with httpx.AsyncClient(transport=transport, base_url=self.cloud.base, headers=sent) as client:
                return await client.request(verb, path, content=content)

        return run(request())

    def blob(self, content, path=APP):
        """Push a blob and return its digest."""
        answer = self.send("POST", f"{path}/blobs/uploads/?digest={digest_of(content)}", content)
        assert answer.status_code == 201, answer.text
        return digest_of(content)

    def image(self, tag="1", layer=b"layer", path=APP, config=None, **more):
        """Push an image and return its digest."""
        config = config or {"architecture": "amd64", "created": "2026-01-02T03:04:05Z", "config": {}}
        body = manifest(path, self, json.dumps(config).encode(), layer) | more
        content = json.dumps(body).encode()
        answer = self.send("PUT", f"{path}/manifests/{tag or digest_of(content)}", content, content_type=MANIFEST)
        assert answer.status_code == 201, answer.text
        return answer.headers["docker-content-digest"]

    def index(self, *digests, tag="all", path=APP):
        """Push an index of pushed images and return its digest."""
        answer = self.send("PUT", f"{path}/manifests/{tag}", index(*digests), content_type=INDEX)
        assert answer.status_code == 201, answer.text
        return answer.headers["docker-content-digest"]

    def account(self, name, *roles):
        """The access token of a new account with roles on the repository."""
        parent = f"/iam/v1/{PARENT}/serviceAccounts"
        email = self.ok("POST", parent, {"accountId": name})["email"]
        bindings = [{"role": f"roles/{role}", "members": [f"serviceAccount:{email}"]} for role in roles]
        self.cloud.store.put_policy(REPOSITORY, {"version": 1, "etag": "ACAB", "bindings": bindings})
        return self.cloud.tokens.access_token(email, SCOPE)[0]

    def files(self):
        """Names of all files of the registry."""
        root = self.cloud.layout.root / "registry"
        return sorted(path.name for path in root.rglob("*") if path.is_file())


def manifest(path, registry, config, layer):
    """The manifest of a config and a layer, both pushed."""
    return {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": {"mediaType": CONFIG, "digest": registry.blob(config, path), "size": len(config)},
        "layers": [{"mediaType": LAYER, "digest": registry.blob(layer, path), "size": len(layer)}],
    }


def index(*digests):
    """The bytes of an index."""
    parts = [
        {"mediaType": MANIFEST, "digest": digest, "size": 9, "platform": {"os": "linux", "architecture": name}}
        for digest, name in zip(digests, ("amd64", "arm64"), strict=False)
    ]
    return json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": parts}).encode()


def push_index(http, path, tag):
    """Push an index without any image in it, whose annotation is its tag, by an HTTP client; return its digest."""
    body = json.loads(index()) | {"annotations": {"tag": tag}}
    answer = http.put(f"{path}/manifests/{tag}", content=json.dumps(body), headers={"content-type": INDEX})
    assert answer.status_code == 201, answer.text
    return answer.headers["docker-content-digest"]


def basic(user, password):
    """The value of an Authorization header."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def code(answer):
    """(status, code) of a refusal in the spec's JSON."""
    (error,) = answer.json()["errors"]
    assert error["message"]
    return answer.status_code, error["code"]
