"""A secret in plain text is known by its name or its shape, in a stack file and on a resource alike."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bezel.planner.rules.env_checks import check_name
from bezel_base.credentials.names import names_secret
from bezel_base.text.redaction import is_secret
from tests.support.policies.harness import SERVICE, service, violations

SECRETS = [
    ("HF_TOKEN", "open sesame"),
    ("HFTOKEN", "abc"),
    ("HF_TOKEN_1", "abc"),
    ("HF_TOKEN_PROD", "abc"),
    ("hfToken2", "abc"),
    ("PGPASSWORD", "abc"),
    ("PGPASSWORD", "1234"),
    ("DB_PASSWORD", "/abc"),
    ("DB_PASSWORD", "/a/path.like/this"),
    ("REDIS_PASSWORD_RO", "abc"),
    ("PASSWORD_OF_DB", "abc"),
    ("MYSQL_PWD", "abc"),
    ("HF_TOKEN", "/abc"),
    ("AWS_SECRET_ACCESS_KEY", "abc"),
    ("OPENAI_API_KEY", "abc"),
    ("OPENAI_APIKEY", "abc"),
    ("SIGNING_KEY", "abc"),
    ("CLIENT_SECRET", "abc"),
    ("GOOGLE_APPLICATION_CREDENTIALS", '{"type": "service_account"}'),
    ("AUTH_CREDENTIALS", "user:abc"),
    ("NOTE", "hf_" + "x" * 24),
    ("NOTE", "bezel-k7m2p9q4-" + "x" * 43),
    ("GITHUB_PAT", "abc"),
    ("AZURE_DEVOPS_EXT_PAT", "abc"),
    ("NPM_AUTH", "abc"),
    ("SSHPASS", "abc"),
    ("TLS_KEY", "abc"),
    ("ELEVENLABS_KEY", "abc"),
    ("FAL_AI_KEY", "abc"),
]
HARMLESS = [
    ("MAX_TOKENS", "4096"),
    ("MAX_TOKEN", "4096"),
    ("PAD_TOKEN", "<pad>"),
    ("TOKENIZERS_PARALLELISM", "false"),
    ("TOKENIZER", "gemma"),
    ("GOOGLE_APPLICATION_CREDENTIALS", "/secrets/key.json"),
    ("AWS_SHARED_CREDENTIALS_FILE", "/etc/aws/credentials"),
    ("HF_TOKEN_PATH", "/run/secrets/hf"),
    ("DB_PASSWORD_FILE", "/run/secrets/db"),
    ("SECRET_NAME", "hf-token"),
    ("HF_TOKEN_SECRET", "projects/p/secrets/hf-token/versions/1"),
    ("USE_PASSWORD", "false"),
    ("PASSWORD_MIN_LENGTH", "12"),
    ("DB_PASSWORD", "$(OTHER)"),
    ("HF_TOKEN", ""),
    ("PWD", "/home"),
    ("PUBLIC_KEY", "ssh-ed25519 AAAA"),
    ("PARTITION_KEY", "abc"),
    ("BROKEN", "abc"),
    ("PATH", "abc"),
    ("COMPAT", "abc"),
    ("OPEN_AUTH", "abc"),
    ("BASIC_AUTH", "true"),
    ("TLS_KEY", "/etc/tls/tls.key"),
    ("SSL_KEY_FILE", "/etc/tls/tls.key"),
    ("CREDENTIALS_ERROR", "abc"),
    ("KEYBOARD", "abc"),
    ("NOTE", "risk-assessment-of-the-disk-configuration"),
]


# Names within a value: connection strings of ODBC, ADO, Azure, libpq, JDBC, MongoDB, Redis and Kafka, and options.
ENTRIES = (
    "Server=db;Database=a;User Id=u;Password=Abc1",
    "Driver={PostgreSQL};Server=db;Uid=u;Pwd=abc;",
    "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=abc",
    "Endpoint=sb://a/;SharedAccessKeyName=a;SharedAccessKey=Zm9v",
    "host=db user=a password=zz9",
    "jdbc:postgresql://db/a?user=u&password=abc",
    "https://db/?token=abc",
    "redis:6379,password=abc,ssl=True",
    'org.apache.kafka.PlainLoginModule required username="a" password="b1";',
    "--api-key abc12",
    '{"password": "abc"}',
)
NO_SECRET_IN_IT = (
    "Server=db;Database=a;User Id=u",
    "AccountName=a;Timeout=5",
    "host=db user=a sslmode=require",
    "jdbc:postgresql://db/a?user=u",
    "max-tokens=5;top_k=1",
    "tokenizer=auto;key_size=5",
    "password=$DB_PASS",
    "--api-key-file /run/secrets/key",
    '{"tokens": 5}',
)


@pytest.mark.parametrize("value", ENTRIES)
def test_a_secret_under_a_name_within_a_value_is_refused(value: str) -> None:
    assert refused_by_plan("CONNECTION", value)
    assert refused_by_policy("CONNECTION", value)


@pytest.mark.parametrize("value", NO_SECRET_IN_IT)
def test_a_value_of_entries_without_a_secret_passes(value: str) -> None:
    assert not refused_by_plan("CONNECTION", value)
    assert not refused_by_policy("CONNECTION", value)


def refused_by_plan(name: str, value: str) -> bool:
    """Whether the plan refuses the variable."""
    problem = check_name(name, value, {}, {})
    return problem is not None and "Secret Manager" in problem.repair


def refused_by_policy(name: str, value: str) -> bool:
    """Whether the security pack refuses the variable on a service."""
    variables = {"template.containers.0.envs": [{"name": name, "value": value}]}
    return bool(violations("no-plain-secret", SERVICE, service(variables)))


@pytest.mark.parametrize(("name", "value"), SECRETS)
def test_a_secret_is_refused_by_plan_and_policy(name: str, value: str) -> None:
    assert refused_by_plan(name, value)
    assert refused_by_policy(name, value)


@pytest.mark.parametrize(("name", "value"), HARMLESS)
def test_what_only_sounds_like_a_secret_passes_both(name: str, value: str) -> None:
    assert not refused_by_plan(name, value)
    assert not refused_by_policy(name, value)


@pytest.mark.slow
@given(
    prefix=st.sampled_from(["", "PG", "HF_", "MY_DB_", "x."]),
    word=st.sampled_from(["TOKEN", "PASSWORD", "SECRET", "API_KEY", "PASSPHRASE", "CREDENTIALS"]),
    spelt=st.sampled_from([str.upper, str.lower]),
    which=st.sampled_from(["", "_1", "2", "_PROD", "_VALUE_3"]),
    value=st.from_regex(r"[A-Za-z]{2}[A-Za-z0-9_:/-]{4,30}", fullmatch=True).filter(lambda text: "secrets" not in text),
)
def test_whatever_stands_under_a_name_of_a_secret_is_one(prefix, word, spelt, which, value) -> None:
    name = spelt(f"{prefix}{word}{which}")
    assert names_secret(name)
    assert is_secret(name, value)
