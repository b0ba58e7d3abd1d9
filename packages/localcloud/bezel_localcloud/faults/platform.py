"""Faults of the platform: changed results of permission, token, quota and look-up checks, prices, and operations.

Each class replaces the one that it extends and differs from it only while its own fault is active.
"""

from collections.abc import Callable

from cryptography.hazmat.primitives.asymmetric import rsa

from bezel_localcloud.access.credentials.keys import TokenError
from bezel_localcloud.access.credentials.tokens import Tokens
from bezel_localcloud.access.permissions import Access
from bezel_localcloud.core.clock import PlatformClock
from bezel_localcloud.core.errors import ApiError
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.core.operations import Operations
from bezel_localcloud.core.paths import CONTROL_AUDIENCE, DEPLOYER, RUN_AGENT
from bezel_localcloud.core.patterns import shell_pattern_fits
from bezel_localcloud.core.store import Store
from bezel_localcloud.faults.registry import Fault, Faults

# The permissions that a fault removes from the services' accounts.
_TAKEN = {
    "bucket-permission-missing": "storage.objects.",
    "secret-permission-missing": "secretmanager.versions.access",
}
# Part of an operation's metadata type -> API of the operation.
_APIS = {".run.": "run", ".tpu.": "tpu", ".iam.": "iam", "localcloud/compute": "compute"}
_TIME_OFF = (
    "Token must be a short-lived token (60 minutes) and in a reasonable timeframe. Check your iat and exp values in "
    "the JWT claim."
)
_ALLOWED_SECONDS = 300.0  # clock skew that Google tolerates


class FaultyAccess(Access):
    """Permission test in which existing grants of the services' accounts do not count."""

    def __init__(self, store: Store, faults: Faults) -> None:
        super().__init__(store)
        self._faults = faults

    def allows(self, email: str | None, permission: str, resource: str, modified: frozenset[str] = frozenset()) -> bool:
        """Whether an account has a permission; see `Access.allows`."""
        if email not in {None, DEPLOYER, RUN_AGENT}:
            for kind, taken in _TAKEN.items():
                if permission.startswith(taken) and self._faults.find(kind):
                    return False
        return super().allows(email, permission, resource, modified)


class FaultyTokens(Tokens):
    """Token endpoint with a skewed clock; localcloud's own routes accept a token that no fault blocks."""

    def __init__(
        self, key: rsa.RSAPrivateKey, store: Store, pace: PlatformClock, issuer: Callable[[], str], faults: Faults
    ) -> None:
        super().__init__(key, store, pace, issuer)
        self._faults = faults

    def caller(self, token: str, service: str = "") -> str:
        """The account of an access token, or of a JWT that an account signed itself for localcloud's own routes.

        Raises:
            TokenError: If it is neither.
        """
        try:
            return super().caller(token, service)
        except TokenError:
            return super().verify_assertion(token, CONTROL_AUDIENCE)[0]

    def signed_for(self, token: str, service: str) -> str:
        """The account of a JWT that it signed itself for a service; see `Tokens.signed_for`.

        Raises:
            TokenError: Also where the clocks are too far apart.
        """
        result = super().signed_for(token, service)
        self._check_clock()
        return result

    def verify_assertion(self, assertion: str, token_uri: str) -> tuple[str, Json]:
        """(account, claims) of a JWT; see `Tokens.verify_assertion`.

        Raises:
            TokenError: Also where the clocks are too far apart.
        """
        result = super().verify_assertion(assertion, token_uri)
        self._check_clock()
        return result

    def account_of_subject_token(self, subject_token: str) -> str:
        """The account of a subject token; see `Tokens.account_of_subject_token`.

        Raises:
            TokenError: Also where the clocks are too far apart.
        """
        result = super().account_of_subject_token(subject_token)
        self._check_clock()
        return result

    def _check_clock(self) -> None:
        fault = self._faults.find("clock-skew")
        if fault and abs(fault.number("seconds")) > _ALLOWED_SECONDS:
            raise TokenError(_TIME_OFF)


class FaultyOperations(Operations):
    """Operations that fail or never end."""

    def __init__(self, store: Store, pace: PlatformClock, faults: Faults) -> None:
        super().__init__(store, pace)
        self._store, self._faults = store, faults

    def begin(self, parent: str, metadata: Json) -> str:
        """Open an operation; see `Operations.begin`."""
        name = super().begin(parent, metadata)
        if kind := self._faults.strike_operation(_api(parent, metadata)):
            self._store.set_setting(f"fault {name}", kind)
        return name

    def get(self, name: str) -> Json:
        """Return the current state of an operation; see `Operations.get`.

        Raises:
            ApiError: NOT_FOUND.
        """
        operation = super().get(name)
        kind = self._store.setting(f"fault {name}")
        if not kind or not operation.get("done"):
            return operation
        begun = {"name": operation["name"], "metadata": operation["metadata"]}
        if kind == "operation-fails-late":
            error = ApiError("INTERNAL", "Internal error encountered.")
            return {"done": True} | begun | {"error": error.rpc_status()}
        return begun if self._faults.find(kind) else operation


def gpu_quota(faults: Faults, quota: int) -> int:
    """GPU quota of a project in a region: `quota`, or the value of a fault."""
    fault = faults.find("quota-exceeded")
    return min(quota, int(fault.number("quota"))) if fault else quota


def hides_image(faults: Faults, reader: str | None) -> bool:
    """Whether a fault hides an image from a reader (None: unauthenticated)."""
    fault = faults.find("image-missing")
    return fault is not None and (fault.text("seen") == "look-up" or reader == RUN_AGENT)


def hides_secret(faults: Faults, name: str) -> bool:
    """Whether a fault hides a secret, `projects/P/secrets/S`, from a service."""
    fault = faults.find("secret-missing")
    return fault is not None and shell_pattern_fits(fault.text("secret"), name.rpartition("/")[2])


def hides_price(faults: Faults, sku: str, description: str) -> bool:
    """Whether a fault hides a SKU from the price list."""
    fault = faults.find("price-missing")
    return fault is not None and _names(fault, sku, description)


def price_factor(faults: Faults, sku: str, description: str) -> float:
    """The factor by which a fault changes the price of a SKU."""
    fault = faults.find("price-changed")
    return fault.number("factor") if fault and _names(fault, sku, description) else 1.0


def _names(fault: Fault, sku: str, description: str) -> bool:
    return any(shell_pattern_fits(fault.text("sku"), text) for text in (sku, description))


def _api(parent: str, metadata: Json) -> str:
    if not parent:
        return "serviceusage"
    kind = str(metadata.get("@type", ""))
    return next((api for mark, api in _APIS.items() if mark in kind), "artifactregistry")
