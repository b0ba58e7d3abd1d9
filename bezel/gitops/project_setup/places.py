"""Places of a set-up's state: this machine until the state bucket exists, then the bucket; and the moves between.

A move is a copy that is complete in one write, and then the deletion of the original. Killed between the two, it leaves
both, which are equal, and the direction says which one counts: the bucket's, unless a destroy was begun.
"""

from dataclasses import dataclass

from bezel.foundation.settings import NAMESPACE
from bezel.foundation.stacks_in_bucket import stacks_in
from bezel.gitops.project_setup.engine import SetupEngine, State, outputs_of
from bezel.gitops.project_setup.folder import SetupFolder
from bezel.rest import ApiError, GoogleClient, endpoint
from bezel_base.errors import NOT_SET, Problem, UserError
from bezel_base.terminal.screen import show_text


@dataclass(frozen=True)
class Places:
    """The two backends of one project's set-up."""

    here: SetupEngine
    bucket: SetupEngine
    name: str
    """Name of the state bucket."""

    @classmethod
    def of(cls, folder: SetupFolder, bucket: str, lock_descriptor: int) -> "Places":
        """The backends: a folder of this machine, and the bucket."""
        here = SetupEngine(folder, f"file://{folder.state.absolute()}", lock_descriptor)
        return cls(here, SetupEngine(folder, f"gs://{bucket}", lock_descriptor), bucket)

    def in_bucket(self) -> State | None:
        """The state in the bucket; None where there is none, or only that of a move that was cut off."""
        with GoogleClient() as client:
            if f"{NAMESPACE}/{self.here.folder.stack}" not in stacks_in(client, self.name):
                return None
        state = self.bucket.export_state()
        return state if state and _resources(state) else None

    def check_bucket_is_free(self) -> None:
        """Refuse a first run where the bucket's name is taken.

        Raises:
            UserError: It is.
        """
        try:
            with GoogleClient() as client:
                client.get(f"{endpoint('STORAGE')}b/{self.name}", params={"fields": "name"})
        except ApiError as error:
            if error.status == 404:
                return
            if error.status != 403:
                raise
            consequence = "bucket names are global, and another project has this one, or you may not see it."
            raise UserError(
                Problem("--state-bucket", self.name, consequence, "choose another name with --state-bucket.")
            ) from None
        consequence = (
            "it exists, and holds no state of this project's set-up: another `bezel init` is running, or was killed on "
            "another machine, or the bucket has another purpose."
        )
        repair = (
            "complete the set-up on the machine where it began; for a bucket of another purpose choose another name "
            "with --state-bucket; after the loss of that machine delete what it created and start again."
        )
        raise UserError(Problem(f"gs://{self.name}", None, consequence, repair))

    def to_bucket(self) -> None:
        """Move the state into the bucket."""
        state = self.here.export_state()
        if state is None:
            raise AssertionError("the state of this machine has just been written")
        show_text(f"moving the state into {self.bucket.backend}")
        self.bucket.ensure_stack()
        self.bucket.import_state(state)
        self._check_copy(state, self.bucket)
        self.here.folder.drop_state()

    def to_here(self, state: State) -> None:
        """Copy the state out of the bucket, which is about to be destroyed, and mark the destroy as begun."""
        show_text(f"copying the state to {self.here.folder.state}")
        self.here.folder.drop_state()
        self.here.folder.state.mkdir(mode=0o700)
        self.here.ensure_stack()
        self.here.import_state(state)
        if _secrets_of(state).get("type") == "cloud":
            # The key is destroyed too, and a state that it encrypts could not be read after a kill.
            self.here.output_of("stack", "change-secrets-provider", "passphrase")
        self._check_copy(state, self.here)
        self.here.folder.note_destroy()

    @staticmethod
    def _check_copy(state: State, copy: SetupEngine) -> None:
        copied_state = copy.export_state() or {"deployment": {}}
        if [item["urn"] for item in _resources(copied_state)] != [item["urn"] for item in _resources(state)]:
            consequence = "the copy of the state differs from the original, which stays where it is."
            raise UserError(Problem(copy.backend, None, consequence, "run the same command again."))

    def secure(self, environ: "dict[str, str]", state: State) -> bool:
        """Encrypt the state's secrets with the key of Cloud KMS; return whether they are.

        Where Cloud KMS has another address, the engine has no setting for it: then the passphrase stays.
        """
        if environ.get("GOOGLE_KMS_CUSTOM_ENDPOINT"):
            return False
        secrets, provider = _secrets_of(state), outputs_of(state).get("secrets_provider", "")
        if secrets.get("type") == "cloud" and (secrets.get("state") or {}).get("url") == provider:
            return True
        if not provider:
            consequence = "the set-up has no key: its last run did not end."
            raise UserError(Problem("secrets_provider", NOT_SET, consequence, "run the same command again."))
        show_text(f"encrypting secrets with {provider}")
        self.bucket.output_of("stack", "change-secrets-provider", provider)
        return True


def _resources(state: State) -> list[State]:
    return state.get("deployment", {}).get("resources") or []


def _secrets_of(state: State) -> State:
    """How a state's secrets are encrypted."""
    providers: State = state.get("deployment", {}).get("secrets_providers") or {}
    return providers
