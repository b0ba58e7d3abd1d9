"""One call of each method of Google's APIs that is served, with the errors that every method has, tried before it."""

from collections import Counter, defaultdict

import httpx

from localcloud_support.discovery_check import document, method_of

# Methods that ask for no permission, as Google's do not: they tell the caller what it may do, or of its own operation.
OPEN = (
    *("testIamPermissions", "operations.get", "serviceusage.operations.list"),
    "artifactregistry.projects.locations.operations.cancel",
    # Of Google, and not of the project.
    "aiplatform.publishers.models.get",
    # A list of what the caller may see, and the public price list.
    *("cloudbilling.billingAccounts.list", "cloudbilling.services.list", "cloudbilling.services.skus.list"),
)


class ApiHarness:
    """Calls, and what was tried: counts by method of requests and answers held against the discovery documents.

    Attributes:
        owner: The client that may do everything.
        problems: What was not as it should be.
        requests: Requests that were taken, by method.
        answers: Answers, refusals among them, by method.
        errors: Statuses of the refusals, by method.
    """

    def __init__(self, owner, stranger, anonymous):
        self.owner, self._stranger, self._anonymous = owner, stranger, anonymous
        self._tried: set[tuple[str, str, str]] = set()
        self.problems: list[str] = []
        self.requests: Counter[str] = Counter()
        self.answers: Counter[str] = Counter()
        self.errors: defaultdict[str, set[int]] = defaultdict(set)

    def __call__(self, verb, path, body=None, *, missing="", **query):
        """Try the errors of a method, then call it. Returns its answer's JSON.

        Args:
            verb: GET, POST, ...
            path: Of the call.
            body: JSON, or bytes.
            missing: The same path to something that does not exist.
            query: Parameters of the call.
        """
        self._refusals(verb, path, body, query)
        if missing:
            self.refuse(404, verb, missing, body, **query)
        answer = self._send(self.owner, verb, path, body, query)
        if not answer.is_success:
            self.problems.append(f"{verb} {path}: {answer.status_code} {answer.text}")
        return answer.json() if answer.content else {}

    def alone(self, verb, path, body):
        """Call a method that asks for no token, and so has none of the errors that others have."""
        answer = self._send(self.owner, verb, path, body, {})
        if not answer.is_success:
            self.problems.append(f"{verb} {path}: {answer.status_code} {answer.text}")

    def refuse(self, status, verb, path, body=None, *, says="", by=None, **query):
        """Make a call that must be refused with a status and a word in its message."""
        answer = self._send(by or self.owner, verb, path, body, query)
        if answer.status_code != status or says not in answer.text:
            self.problems.append(f"{verb} {path} {query} {body}: wanted {status} {says!r}: {answer.text[:300]}")

    def _refusals(self, verb, path, body, query):
        call = method_of(verb, path)
        self.refuse(401, verb, path, body, by=self._anonymous, **query)
        if not call.id.endswith(OPEN):
            self.refuse(403, verb, path, body, by=self._stranger, says="Permission '", **query)
        if "projects/bezel-local" in path:
            self.refuse(403, verb, path.replace("projects/bezel-local", "projects/another"), body, **query)
        if call.source.api != "storage":  # which ignores what it does not know (storage/test_uploads.py)
            self.refuse(400, verb, path, body, says='Unknown name \\"noSuchThing\\"', **(query | {"noSuchThing": "1"}))
        for name, spec in call.method.get("parameters", {}).items():
            if name in {"pageSize", "maxResults"}:
                self.refuse(400, verb, path, body, **(query | {name: "many"}))
            if name == "pageToken":
                self.refuse(400, verb, path, body, says="page token", **(query | {name: "bm8K"}))
            if spec["type"] == "boolean" and name in query:
                self.refuse(400, verb, path, body, says="TYPE_BOOL", **(query | {name: "maybe"}))
        if "request" in call.method and not isinstance(body, bytes):
            self._wrong_bodies(call, verb, path, query)

    def _wrong_bodies(self, call, verb, path, query):
        self.refuse(400, verb, path, {"noSuchThing": 1}, says='Unknown name \\"noSuchThing\\"', **query)
        self.refuse(400, verb, path, b"{", says="Invalid JSON payload", **query)
        self.refuse(400, verb, path, b"[]", says="must be a message", **query)
        fields = document(call.source.document)["schemas"][call.method["request"]["$ref"]].get("properties", {})
        for name, spec in sorted(fields.items()):
            if (call.source.api, call.method["request"]["$ref"], name) in self._tried:
                continue
            self._tried.add((call.source.api, call.method["request"]["$ref"], name))
            is_text = spec.get("type") in {"boolean", "integer", "number"} or "64" in spec.get("format", "")
            # An enum value may be a number of its own in APIs with protobuf's JSON.
            wrong = "no such value" if is_text else 5.5
            self.refuse(400, verb, path, {name: wrong}, says="Invalid value at", **query)

    def _send(self, client, verb, path, body, query):
        content = {"content": body} if isinstance(body, bytes) else {} if body is None else {"json": body}
        before = len(client.seen)
        try:
            answer = client.http.request(verb, path, params=query, **content)
        except AssertionError as error:
            self.problems.append(str(error))
            return httpx.Response(599, json={"error": str(error)})
        for method, status in client.seen[before:]:
            self.answers[method] += 1
            self.requests[method] += status < 300
            if status >= 400:
                self.errors[method].add(status)
        return answer
