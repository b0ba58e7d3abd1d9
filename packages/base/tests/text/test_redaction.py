"""Credentials of every known form, and under every name and in every place of one, are hidden; ordinary text stays."""

import json
import shlex

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from bezel_base.credentials.forms import FORMS
from bezel_base.errors import NOT_SHOWN, Problem, UserError
from bezel_base.text.redaction import PLACEHOLDER, is_secret, redact

LETTERS = "Pl4nt3dAbCdEfGhIjKlMnOpQrStUvWxYz0123456789AbCdEfGhIjKlMnOpQrStUvWxYz0123456789Ab"
HEX = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
UPPER = "PL4NT3DABCDEFGH7JKLMNOPQRSTUVWXYZ234567ABCDEFGH"
# One of each form, with the alphabets and lengths that the services document; the form is in the table by its kind.
TOKENS = {
    "1Password service account": [f"ops_eyJ{LETTERS}"],
    "1Password secret key": ["A3-ASWWYB-798JRYLJVD4-23DC2-86TVM-H43EB", "A3-ASWWYB-798JRY-LJVD4-23DC2-86TVM"],
    "Adobe": [f"p8e-{HEX[:32]}"],
    "age": [f"AGE-SECRET-KEY-1{UPPER}"],
    "Airtable": [f"pat{LETTERS[:14]}.{HEX}"],
    "Alibaba Cloud": [f"LTAI{LETTERS[:20]}"],
    "Amazon Marketplace": [f"amzn.mws.{HEX[:8]}-{HEX[:4]}-{HEX[:4]}-{HEX[:4]}-{HEX[:12]}"],
    "Bezel": [f"bezel-k7m2p9q4-{LETTERS[:43]}", f"bezel-00000000--_{HEX[:41]}", f"bezel-k7m2p9q4-{LETTERS[:16]}"],
    "Cal.com": [f"cal_live_{HEX[:32]}", f"cal_test_{HEX[:32]}"],
    "Contentful": [f"CFPAT-{LETTERS[:43]}"],
    "E2B": [f"e2b_{HEX[:40]}"],
    "Facebook": [f"EAACEdEose0cBA{LETTERS}", f"EAAG{LETTERS}"],
    "Firebase Cloud Messaging": [f"{LETTERS[:22]}:APA91b{LETTERS}{LETTERS[:50]}"],
    "Fireworks": [f"fw_{LETTERS[:24]}"],
    "Jina": [f"jina_{HEX[:32]}{LETTERS[:28]}"],
    "PostHog": [f"phx_{LETTERS[:43]}", f"phc_{LETTERS[:43]}"],
    "RunPod": [f"rpa_{UPPER[:40]}{LETTERS[:6]}"],
    "Salesforce": [f"00D{LETTERS[:12]}!AQ{LETTERS[:60]}.{LETTERS[:20]}"],
    "Tavily": [f"tvly-{LETTERS[:32]}", f"tvly-dev-{LETTERS[:32]}"],
    "Artifactory": [f"AKCp{LETTERS[:69]}", f"cmVmdGtu{LETTERS[:56]}"],
    "Atlassian": [f"ATATT3{LETTERS}=", f"ATBB{LETTERS[:32]}"],
    "AWS access key": [f"AKIA{UPPER[:16]}", f"ASIA{UPPER[:16]}", "AKIAIOSFODNN7EXAMPLE"],
    "AWS Bedrock": [f"ABSK{LETTERS}", f"bedrock-api-key-{LETTERS[:24]}"],
    "Azure client secret": [f"abc8Q~{LETTERS[:34]}"],
    "Azure storage and services": [f"{LETTERS[:76]}+ASt{LETTERS[:6]}==", f"{LETTERS[:33]}AzSe{LETTERS[:10]}"],
    "Azure DevOps": [f"{LETTERS[:76]}AZDO{LETTERS[:4]}"],
    "CircleCI": [f"CCIPAT_{LETTERS[:22]}_{HEX[:40]}"],
    "Clojars": [f"CLOJARS_{LETTERS[:60]}"],
    "Cloudflare": [f"v1.0-{HEX[:24]}-{HEX}{HEX}{HEX[:18]}"],
    "crates.io": [f"cio{LETTERS[:32]}"],
    "Databricks": [f"dapi{HEX[:32]}-3"],
    "Defined Networking": [f"dnkey-{LETTERS[:26]}-{LETTERS[:52]}"],
    "DigitalOcean": [f"{kind}_v1_{HEX}" for kind in ("dop", "doo", "dor")],
    "Docker": [f"dckr_pat_{LETTERS[:27]}", f"dckr_oat_{LETTERS[:32]}"],
    "Doppler": [f"dp.pt.{LETTERS[:43]}"],
    "Duffel": [f"duffel_live_{LETTERS[:43]}"],
    "Dynatrace": [f"dt0c01.{UPPER[:24]}.{UPPER * 2}"],
    "EasyPost": [f"EZAK{LETTERS[:54]}", f"EZTK{LETTERS[:54]}"],
    "Figma": [f"figd_{LETTERS[:40]}"],
    "Fly.io": [f"fo1_{LETTERS[:43]}", f"fm2_{LETTERS}=="],
    "Frame.io": [f"fio-u-{LETTERS[:64]}"],
    "GitHub": [f"{kind}_{LETTERS[:36]}" for kind in ("ghp", "gho", "ghu", "ghs", "ghr")] + [f"github_pat_{LETTERS}"],
    "GitLab": [
        *(f"{kind}-{LETTERS[:20]}" for kind in ("glpat", "gldt", "glrt", "glft", "glcbt", "glptt", "gloas", "glsoat")),
        f"GR1348941{LETTERS[:20]}",
        "glpat-shortkey",
    ],
    "Google API key": [f"AIza{LETTERS[:35]}", "AIzaSyShortOne"],
    "Google API key (2)": [f"AQ.Ab{LETTERS[:40]}"],
    "Google OAuth client": [f"GOCSPX-{LETTERS[:28]}", "GOCSPX-shorter1"],
    "Google access token": [f"ya29.a0{LETTERS}", f"ya29.c.{LETTERS}"],
    "Google refresh token, code": [f"1//0g{LETTERS[:40]}", f"4/0Ad{LETTERS[:40]}"],
    "Google HMAC key": [f"GOOG1E{UPPER}"],
    "Google key in base64": [f"eyJ0eXBlIjogInNlcnZpY2VfYWNjb3VudCIs{LETTERS}"],
    "Grafana": [f"glsa_{LETTERS[:32]}_{HEX[:8]}", f"glc_{LETTERS}="],
    "Groq": [f"gsk_{LETTERS[:52]}"],
    "Harness": [f"pat.{LETTERS[:22]}.{HEX[:24]}.{LETTERS[:20]}"],
    "HashiCorp Terraform": [f"{LETTERS[:14]}.atlasv1.{LETTERS[:60]}"],
    "HashiCorp Vault": [f"hvs.{LETTERS}", f"hvb.{LETTERS}"],
    "Heroku": [f"HRKU-AA{LETTERS[:58]}"],
    "Hugging Face": [f"hf_{'AbCdEfGhIjKlMnOpQrStUvWxYzAbCdEfGh'}", f"api_org_{LETTERS[:34]}", "hf_secret123"],
    "Infracost": [f"ico-{LETTERS[:32]}"],
    "JSON Web Token": [f"eyJhbGciOiJSUzI1NiJ9.eyJ{LETTERS[:20]}.{LETTERS[:20]}", f"eyJhbGciOiJSUzI1NiJ9.{LETTERS}"],
    "JSON Web Token in base64": [f"ZXlK{LETTERS}=="],
    "Kaggle": [f"KGAT_{HEX[:32]}"],
    "LangSmith": [f"lsv2_pt_{HEX[:32]}_{HEX[:10]}"],
    "Linear": [f"lin_api_{LETTERS[:40]}"],
    "Mailchimp": [f"{HEX[:32]}-us12"],
    "Mailgun": [f"key-{HEX[:32]}"],
    "Netlify": [f"nfp_{LETTERS[:36]}"],
    "New Relic": [f"NRAK-{UPPER[:27]}", f"{HEX[:36]}NRAL"],
    "Notion": [f"ntn_{LETTERS[:46]}"],
    "npm": [f"npm_{LETTERS[:36]}"],
    "NuGet": [f"oy2{'abcdefghijklmnopqrstuvwxyz0123456789abcdefg'}"],
    "NVIDIA": [f"nvapi-{LETTERS[:64]}"],
    "OpenAI, Anthropic and others": [
        f"sk-{LETTERS[:48]}",
        f"sk-proj-{LETTERS[:20]}T3BlbkFJ{LETTERS[:20]}",
        f"sk-ant-api03-{LETTERS}AA",
        f"sk-or-v1-{HEX}",
    ],
    "OpenShift": [f"sha256~{LETTERS[:43]}"],
    "Perplexity": [f"pplx-{LETTERS[:48]}"],
    "Pinecone": [f"pcsk_{LETTERS[:5]}_{LETTERS[:60]}"],
    "PlanetScale": [f"pscale_tkn_{LETTERS[:43]}", f"pscale_pw_{LETTERS[:43]}"],
    "Postman": [f"PMAK-{HEX[:24]}-{HEX[:34]}"],
    "Prefect": [f"pnu_{LETTERS[:36]}"],
    "Pulumi": [f"pul-{HEX[:40]}"],
    "PyPI": [f"pypi-AgEIcHlwaS5vcmc{LETTERS}"],
    "Replicate": [f"r8_{LETTERS[:37]}"],
    "RubyGems": [f"rubygems_{HEX[:48]}"],
    "SendGrid": [f"SG.{LETTERS[:22]}.{LETTERS[:43]}"],
    "Sendinblue": [f"xkeysib-{HEX}-{LETTERS[:16]}"],
    "Sentry": [f"sntrys_{LETTERS}", f"sntryu_{HEX}"],
    "Shippo": [f"shippo_live_{HEX[:40]}"],
    "Shopify": [f"{kind}_{HEX[:32]}" for kind in ("shpat", "shpca", "shppa", "shpss")],
    "Slack": [f"xoxb-123456789012-1234567890123-{LETTERS[:24]}", f"xapp-1-A0{UPPER[:9]}-1234567890123-{HEX}"],
    "Slack and other webhooks": [
        f"hooks.slack.com/services/T0{UPPER[:8]}/B0{UPPER[:8]}/{LETTERS[:24]}",
        f"discord.com/api/webhooks/123456789012345678/{LETTERS[:68]}",
    ],
    "Sourcegraph": [f"sgp_{HEX[:16]}_{HEX[:40]}"],
    "Square": [f"sq0atp-{LETTERS[:22]}", f"EAAA{LETTERS[:60]}"],
    "Stripe": [f"sk_live_{LETTERS[:24]}", f"rk_test_{LETTERS[:24]}", f"whsec_{LETTERS[:32]}"],
    "Supabase": [f"sbp_{HEX[:40]}", f"sb_secret_{LETTERS[:31]}"],
    "Tailscale": [f"tskey-auth-k{LETTERS[:11]}-{LETTERS[:32]}"],
    "Telegram": [f"123456789:AA{LETTERS[:33]}"],
    "Together": [f"tgp_v1_{LETTERS[:43]}"],
    "Twilio": [f"SK{HEX[:32]}"],
    "Typeform": [f"tfp_{LETTERS[:59]}"],
    "Vercel": [f"vcp_{LETTERS[:56]}"],
    "Weights and Biases": [f"wandb_v1_{LETTERS}"],
    "xAI": [f"xai-{LETTERS[:80]}"],
    "Yandex": [f"AQVN{LETTERS[:36]}"],
    "private key in base64": [f"LS0tLS1CRUdJTiBQUklWQVRF{LETTERS}", f"LS0tLS1CRUdJTiBSU0Eg{LETTERS}"],
}  # fmt: skip
EACH = [(kind, token) for kind, tokens in TOKENS.items() for token in tokens]
PLACES = (
    "{}", "before {} after", '"{}"', "'{}',", "key={}", "x: {}", "[{}]", "({})", "a,{},b", "https://x.example/a?b={}&c=1",
    "line\n{}\nline", "text\\n{}\\ntext", '{{"a": "\\"{}\\""}}', "X%3D{}", "`{}`", "<a>{}</a>",
)  # fmt: skip


def test_every_form_of_the_table_is_tried() -> None:
    assert set(TOKENS) == {form.kind for form in FORMS}
    assert len({form.kind for form in FORMS}) == len(FORMS)


@pytest.mark.parametrize(("kind", "token"), EACH)
def test_a_credential_is_hidden_wherever_it_stands(kind: str, token: str) -> None:
    for place in PLACES:
        text = place.format(token)
        assert token not in redact(text), (kind, text)
        assert token[-10:] not in redact(text), (kind, text)
    assert is_secret("NOTE", token)


@pytest.mark.parametrize("token", ["glpat-shortkey", "AKIAIOSFODNN7EXAMPLE", "GOCSPX-abcdefgh1", f"pul-{HEX[:40]}"])
def test_no_part_of_a_problem_shows_a_credential(token: str) -> None:
    problem = Problem(f"bezel:{token}", token, f"the value {token} is unknown.", f"remove `{token}`.")
    error = UserError(problem, f"failed with {token}", title=f"Stack {token} cannot be planned")
    assert token not in f"{error}{error.as_json()}{error.args}"
    assert problem.value == NOT_SHOWN


def test_a_value_under_the_name_of_a_secret_is_not_shown() -> None:
    assert Problem("bezel:db_pass", "hunter2", "it is unknown.", "remove it.").value == NOT_SHOWN
    assert Problem("bezel:options", ["--api-key", "hunter2"], "it is unknown.", "remove it.").value == NOT_SHOWN
    assert Problem("bezel:stack", "hunter2", "it is unknown.", "remove it.").value == "hunter2"
    assert Problem("HF_TOKEN", "(not set)", "it is unknown.", "set it.").value == "(not set)"


SECRET = "hunter2-Correct"
NAMES = (
    "DB_PASS", "db_pass", "dbPass", "DB_PASSWORD", "PGPASSWORD", "mysql_pwd", "HF_TOKEN", "hfToken", "API_KEY",
    "apikey", "x-api-key", "OPENAI_API_KEY", "OPENAI_KEY",
    "client_secret", "clientSecret", "SECRET_KEY", "SECRET", "passphrase",
    "AWS_SECRET_ACCESS_KEY", "private_key", "SIGNING_KEY", "AccountKey", "STRIPE_SECRET", "SMTP_PASS", "ACCESS_TOKEN",
    "access_token", "refresh_token", "auth_key", "MASTER_KEY", "ENCRYPTION_KEY", "service_key", "GITHUB_TOKEN_2",
    "SLACK_CREDENTIALS", "DB_PASSWD", "admin_pw", "PULUMI_CONFIG_PASSPHRASE", "SESSION_SECRET_PROD", "JWT_SECRET",
    "GITHUB_PAT", "GH_PAT", "PAT", "AZURE_DEVOPS_EXT_PAT", "NPM_AUTH", "DOCKER_AUTH", "REDIS_AUTH",
    "SSHPASS", "TLS_KEY", "SSL_KEY", "LANGSMITH_KEY", "ELEVENLABS_KEY", "ELEVEN_LABS_KEY", "CLOUDFLARE_KEY", "FAL_KEY",
    "githubPat", "AI21_KEY", "RUNPOD_KEY", "JINA_KEY", "LANGFUSE_KEY", "VOYAGE_KEY",
)  # fmt: skip


def ways(name: str, value: str) -> dict[str, str]:
    """Texts in which a value stands under a name, as programs write them."""
    pair = {name: value}
    once = json.dumps(pair)
    return {
        "assignment": f"{name}={value}",
        "export": f"export {name}={value} OTHER=1",
        "quoted": f'{name}="{value}"',
        "spaced": f"{name} = {value}",
        "arrow": f"{name} => {value}",
        "yaml": yaml.safe_dump(pair),
        "nested yaml": yaml.safe_dump({"a": {"b": [pair]}}),
        "env list": yaml.safe_dump([{"name": name, "value": value}]),
        "json": once,
        "indented json": json.dumps({"a": [pair]}, indent=2),
        "json in json": json.dumps({"a": once}),
        "json in json in json": json.dumps({"a": json.dumps({"b": once})}),
        "json in a Python literal": repr(once),
        "Python literal": repr(pair),
        "Python call": f"connect(user='me', {name.replace('-', '_')}={value!r})",
        "env list in json": json.dumps([{"name": name, "value": value}]),
        "env list in json in json": json.dumps({"x": json.dumps([{"name": name, "value": value}])}),
        "option": f"run --{name} {value} --verbose",
        "option with =": f"run --{name}={value} --verbose",
        "arguments": repr(["run", f"--{name}", value, "--verbose"]),
        "arguments as json": json.dumps(["run", f"--{name}", value, "--verbose"]),
        "arguments as json in json": json.dumps({"a": json.dumps([f"--{name}", value])}),
        "joined": shlex.join(["run", f"--{name}", value]),
        "tuple": repr([(name, value)]),
        "list of them": f"{name}: ['{value}', '{value}']",
        "query": f"https://x.example/a?b=1&{name}={value}&c=2",
        "escaped query": f"next=https%3A%2F%2Fx.example%3Fa%3D1%26{name}%3D{value}",
        "xml": f"<{name}>{value}</{name}>",
        "lines in json": json.dumps({"env": f"A=1\n{name}={value}\nB=2"}),
    }


@pytest.mark.parametrize("name", NAMES)
def test_a_value_under_the_name_of_a_secret_is_hidden_in_every_way(name: str) -> None:
    for way, text in ways(name, SECRET).items():
        assert "hunter2" not in redact(text), (way, text)
        assert "Correct" not in redact(text), (way, text)


HARMLESS_NAMES = (
    "MAX_TOKENS", "max_token", "tokenizer", "TOKENIZERS_PARALLELISM", "PARTITION_KEY", "BYPASS", "compass", "KEYBOARD",
    "HF_TOKEN_PATH", "DB_PASSWORD_FILE", "secret_name", "api_key_id", "public_key", "cache_key", "eos_token", "monkey",
    "compat", "PATH", "OAUTH", "open_auth", "google-auth", "requires_auth", "SSL_KEY_FILE", "tls_key_path", "ROW_KEY",
)  # fmt: skip


@pytest.mark.parametrize("name", HARMLESS_NAMES)
def test_a_value_under_another_name_stays_in_every_way(name: str) -> None:
    for way, text in ways(name, "gemma-3-27b").items():
        assert redact(text) == text, way


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("postgres://user:hunter2@db.example:5432/x", "hunter2"),
        ("https://u:p%40w@h/x", "p%40w"),
        ("https:\\/\\/u:hunter2@h\\/x", "hunter2"),
        ("redis://:hunter2@h:6379/0", "hunter2"),
        ("user:hunter2@tcp(127.0.0.1:3306)/db", "hunter2"),
        ("https://0123456789abcdef0123456789abcdef@o1.ingest.example/2", "0123456789abcdef0123"),
        ("curl -u bob:hunter2 https://x.example", "hunter2"),
        ("curl --user 'bob:hunter2' https://x.example", "hunter2"),
        ("Authorization: Bearer abc", "abc"),
        ("authorization: bearer  hunter2", "hunter2"),
        ("Bearer hunter2", "hunter2"),
        ("[(b'authorization', b'Bearer hunter2')]", "hunter2"),
        ("{'Authorization': 'Basic dTpo'}", "dTpo"),
        ("sent Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
        ('Authorization: Digest username="u"', 'u"'),
        ("Authorization: AWS4-HMAC-SHA256 Credential=AKIDX/2026, Signature=hunter2", "hunter2"),
        ("Proxy-Authorization: Token hunter2", "hunter2"),
        ("X-Serverless-Authorization: hunter2", "hunter2"),
        ("Cookie: sid=hunter2; a=b", "hunter2"),
        ("set-cookie: sid=hunter2; Secure", "hunter2"),
        ("x-goog-iap-jwt-assertion: hunter2", "hunter2"),
        ("https://s.example/o?X-Goog-Signature=0a1b2c&x=1", "0a1b2c"),
        ("https://s.example/o?X-Amz-Signature=0a1b2c&x=1", "0a1b2c"),
        ("https://s.example/o?X-Amz-Security-Token=0a1b2c&x=1", "0a1b2c"),
        ("https://s.example/o?sv=2026&sig=a%2Fb%3D&se=1", "a%2Fb%3D"),
        ("https://s.example/o?Expires=1&Signature=0a1b2c~&Key-Pair-Id=1", "0a1b2c"),
        ("https://s.example/o?key=hunter2&alt=json", "hunter2"),
        ("?a=1\\u0026Signature=0a1b2c", "0a1b2c"),
        ("DefaultEndpointsProtocol=https;AccountName=x;AccountKey=abcd+/ef==;EndpointSuffix=y", "abcd+/ef"),
        ("//registry.npmjs.org/:_auth=hunter2", "hunter2"),
        ("Server=x;User Id=sa;Password=hunter2;", "hunter2"),
        ('{"type": "service_account", "private_key_id": "1", "private_key": "x9"}', "x9"),
    ],
)  # fmt: skip
def test_a_password_in_a_url_or_a_header_is_hidden(text: str, secret: str) -> None:
    assert secret not in redact(text)


ORDINARY = (
    "machine vm: metadata.ssh-keys: cloud (15 characters), program not set (changes who has access)",
    "secret hf: roles/secretmanager.secretAccessor: cloud user:mallory@example.com, program not set",
    "account a: roles/iam.serviceAccountKeyAdmin: user:mallory@example.com; iam.serviceAccountKeys.list: denied",
    "roles/secretmanager.secretVersionManager = user:x@y.example, roles/serviceusage.apiKeysAdmin: user:x@y.example",
    "GPU KV cache size: 1,151,744 tokens, Maximum concurrency for 8,192 tokens per request: 140.59x",
    "non-default args: {'model_tag': '/mnt/models/x', 'max_num_batched_tokens': 4096, 'hf_overrides': {}}",
    "time per output token: 30.5 ms, first token: 0.25 s, 242,944 tokens = 393,266 B per token = bf16.",
    "image us-docker.pkg.dev/p/r/vllm@sha256:" + HEX,
    "commit 0f0f162f9d3f2a4be8f5a7c9e1d3b5a7c9e1d3b5 by me, " + HEX,
    "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "changes sha256:" + HEX,
    "account bezel-pipeline-artifact-registry-reader@acme.iam.gserviceaccount.com, bucket acme-bezel-previews-of-pulls",
    "operation 8d7f0c1e-4e39-4f7e-a3f6-1c9b8f4e2d11 of revision llm-l4-qat-00012-xyz",
    "revision llm-00001-abc: google/gemma-3-27b-it, Qwen/Qwen3-32B-FP8, meta-llama/Llama-3.3-70B-Instruct",
    "hf_transfer hf_overrides hf_hub_download_anything sk-learn risk-assessment-of-the-disk-configuration",
    "Permission denied on secret: projects/1/secrets/hf/versions/latest for Revision service account a@b.example",
    "POST /v1/projects/demo-project/secrets/hf-token:addVersion",
    "urn:pulumi:d0::rec::gcp:secretmanager/secret:Secret::hf",
    '{"secretKeyRef":{"secret":"hf-token","version":"latest"}}',
    '{"token":"gcp:storage/bucket:Bucket","name":"models"}',
    "https://llm-abc-uk.a.run.app:443/v1/models?limit=3 user@host.example git@github.com:x/y.git",
    "ssh://git@github.com/x/y docker run -u 1000:1000 x",
    "the bearer token is missing; basic usage of it; Basic authentication is not supported",
    "HF_TOKEN: the secret has no version. api_key: it is refused. --token needs a value.",
    "export HF_TOKEN=$(gcloud auth print-access-token) DB_PASS=${DB_PASS} X=$TOKEN",
    'curl -H "Authorization: Bearer $(.venv/bin/bezel local token URL)" https://x',
    "  --hf-token [HF_TOKEN]  --api-key API_KEY [API_KEY ...]",
    "PyJWT==2.15.1 tiktoken==0.14.0",
    "eos_token='<eos>' bos_token_id=2 pad_token: <pad> max_token=17",
    "GOOGLE_APPLICATION_CREDENTIALS=/secrets/key.json",
    "docker login --username oauth2accesstoken --password-stdin https://registry.example",
    "exit code=1, key=value, signature of the function, sig 9",
    "password: true, token: null, secret=None, api_key=''",
    "name them, e.g. `secrets: {HF_TOKEN: hf-token}`, or `bezel:secrets: {HF_TOKEN: NAME, API_KEY: api-key-1}`",
    '{"secrets": {"HF_TOKEN": "hf-token"}} {\\"secrets\\": {\\"API_KEY\\": \\"api-key\\"}}',
    "  bezel:secrets:\n    HF_TOKEN: hf-token\n    API_KEY: api-key\n",
    "add `permissions: {id-token: write}`; id-token: none; id-token: read",
    "The proxy obtained no identity token: HTTP 404. The proxy obtained no identity token: TimeoutError",
    "credential_source.file=/x cannot be read as a token: FileNotFoundError",
    "set HF_TOKEN (or name a secret: bezel:secrets.HF_TOKEN)",
    "a PRIVATE KEY differs from an SSH PRIVATE KEY of PuTTY-User-Key-File",
    "a passphrase encrypts secrets: make the content of it a variable",
    "description: |\n  a text\nnote:\n- a\n- b\nvalue: x\n  name: y",
    "password:\n  description: the password of the database\n  required: true\ntoken:\n  see the manual for it",
    "secrets:\n  - hf-token\n  - db-password",
    '{"Value": "gemma", "Name": "MODEL"} {"max_tokens": {"value": 12}} {"token": {"value": ""}}',
    "- name: MODEL\n  value: gemma\n- name: DB_PASSWORD\n  value: ''",
    "docker run -p 8080:80 x; docker login registry.example; docker login --username x --password-stdin",
    "mysql -u root -p database; mysql -P 3306 -p; mkdir -p a/b; ssh -p 22 host; redis-cli -p 6379; cp -a a b",
    "machine vm login failed; the machine is ready; ENV MODEL gemma; ENV HF_TOKEN is read; wandb login is needed",
    "pulumi config set gcp:project demo; git config user.name me; ['mysql', '-p', 'database']",
    "I/O error at 0x7ffd1234abcd, 100% | 3/3 [00:01<00:00]",
)  # fmt: skip


@pytest.mark.parametrize("line", ORDINARY)
def test_an_ordinary_line_stays(line: str) -> None:
    assert redact(line) == line


# Of the 17,576 endings, those that alone may make a name that of a secret.
@pytest.mark.parametrize("letters", ["pwd", "psw", "jwt", "pat", "key", "sid", "sig"])
def test_no_letters_that_cloud_run_draws_make_a_revision_a_secret(letters: str) -> None:
    name = f"chat-api-00012-{letters}"
    ordinary = (f"{name}: 0 of 1 failed", f"revision={name}", f"--to-revisions {name}=100", f"{name}=the newest")
    assert [line for line in ordinary if redact(line) != line] == []
    secret = (f"chat-api-0012-{letters}=hunter2", f"db-password-00012-{letters}=hunter2")
    assert [line for line in secret if "hunter2" in redact(line)] == [], "no revision; a secret without its letters"


@pytest.mark.parametrize(
    "text",
    [
        "secrets: {DB_PASSWORD: hunter2}",
        '{"secrets": {"DB_PASSWORD": "hunter2"}}',
        "secrets: {HF_TOKEN: 'hunter2, the old one!'}",
        f"secrets: {{HF_TOKEN: hf_hunter2{LETTERS[:20]}}}",
        "secrets: {HF_TOKEN: hf-token}, DB_PASSWORD: hunter2",
        "secrets: {}\nDB_PASSWORD: hunter2",
        "secrets:\nDB_PASSWORD: hunter2",
        "secrets:\n  HF_TOKEN: hf-token\nDB_PASSWORD: hunter2",
        "secret: {DB_PASSWORD: hunter2}",
        "SECRETS = {'DB_PASSWORD': 'hunter2'}",
        "id-token: hunter2",
        "id-token: write, token: hunter2",
        "no token: hunter2",
        "the identity token: hunter2",
        "secret: hunter2",
    ],
)
def test_a_secret_beside_what_stays_is_hidden(text: str) -> None:
    assert "hunter2" not in redact(text)


@pytest.mark.parametrize(
    "text",
    [
        f"password: |\n  {SECRET}\nnext: stays",
        f"a:\n  password: >-\n    {SECRET}\n\n    {SECRET}\n  next: stays",
        f'"password":\n  "{SECRET}",\n"next": "stays"',
        f"password:\n  {SECRET}\nnext: stays",
        f"password:\n  '{SECRET}'\nnext: stays",
        f"api-key:\n- {SECRET}\n- {SECRET}\nnext: stays",
        f"api-keys:\n  - {SECRET}\n  - '{SECRET}'\nnext: stays",
        f"password:\n  value: {SECRET}\nnext: stays",
        json.dumps({"password": {"value": SECRET}, "next": "stays"}),
        json.dumps({"api_key": {"type": "string", "value": SECRET}, "next": "stays"}, indent=2),
        json.dumps({"a": json.dumps({"password": {"value": SECRET}, "next": "stays"})}),
        json.dumps([{"Value": SECRET, "Name": "DB_PASSWORD"}, {"Value": "stays", "Name": "NEXT"}]),
        json.dumps({"a": json.dumps({"value": SECRET, "key": "HF_TOKEN"}), "next": "stays"}),
        f"- value: {SECRET}\n  name: DB_PASSWORD\n  next: stays",
        f"userPassword:: {SECRET}\ncn:: stays",
        f"password[0]={SECRET} next[0]=stays",
        f"token[]={SECRET}&next[]=stays",
        f"machine github.com login stays password {SECRET}",
        f"machine github.com\n  login stays\n  password {SECRET}",
        f"default login stays password {SECRET}",
        f"docker login -u stays -p {SECRET} registry.example",
        f"docker login registry.example -u stays -p{SECRET}",
        f"['podman', 'login', '-u', 'stays', '-p', '{SECRET}']",
        f"helm registry login -u stays -p '{SECRET}' x.example",
        f"mysql -u stays -p{SECRET} db",
        f"mysqldump -hstays -uroot -p{SECRET}",
        f"mongosh -u stays -p {SECRET}",
        f"sshpass -p {SECRET} ssh stays",
        f"sshpass -p'{SECRET}' ssh stays",
        f"redis-cli -h stays -a {SECRET} ping",
        f"ldapsearch -D stays -w {SECRET}",
        f"openssl rsa -in stays -passin pass:{SECRET}",
        f"Step 2/3 : ENV HF_TOKEN {SECRET}\nENV NEXT stays",
        f"set -x HF_TOKEN {SECRET}; set -x NEXT stays",
        f"wandb login {SECRET} # stays",
        f"wandb login --relogin {SECRET} # stays",
        f"pulumi config set --plaintext bezel:apiKey {SECRET} # stays",
        f"git config http.password {SECRET} # stays",
    ],
)
def test_a_value_that_a_name_does_not_stand_before_is_hidden(text: str) -> None:
    shown = redact(text)
    assert "hunter2" not in shown
    assert "Correct" not in shown
    assert "stays" in shown
    assert redact(shown) == shown


KEY = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"
BODY = [KEY] * 25 + ["Jt7mXq3vQp0="]


@pytest.mark.parametrize("kind", ["PRIVATE KEY", "RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "ENCRYPTED PRIVATE KEY"])
def test_a_private_key_is_hidden_and_the_lines_after_it_stay(kind: str) -> None:
    lines = [f"-----BEGIN {kind}-----", *BODY, f"-----END {kind}-----"]
    assert redact("\n".join(["first", *lines, "last"])) == f"first\n{PLACEHOLDER}\nlast"
    assert redact("\\n".join(lines)) == PLACEHOLDER
    assert redact(f'a "{chr(92) + "n"}{"|".join(lines)}" b'.replace("|", "\\n")).endswith(f'{PLACEHOLDER}" b')
    assert KEY not in redact("\n".join(f"2026-11-27T09:00:00Z INFO {line}" for line in lines))
    assert KEY not in redact(json.dumps({"a": json.dumps({"b": "\n".join(lines)})}))


def test_a_pgp_and_an_encrypted_key_lose_their_headers_too() -> None:
    pgp = [
        "-----BEGIN PGP PRIVATE KEY BLOCK-----",
        "Version: 1",
        "",
        KEY,
        "=aB3d",
        "-----END PGP PRIVATE KEY BLOCK-----",
    ]
    rsa = ["-----BEGIN RSA PRIVATE KEY-----", "Proc-Type: 4,ENCRYPTED", "DEK-Info: AES-128-CBC,0A1B", "", KEY]
    for lines in (pgp, rsa):
        shown = redact("\n".join([*lines, "next line of the log"]))
        assert not any(part in shown for part in (KEY, "aB3d", "0A1B")), shown
        assert shown.endswith("next line of the log")


def test_the_mark_of_a_private_key_hides_nothing_of_a_log() -> None:
    log = [f"INFO {number} request of model gemma took 12 ms {HEX}" for number in range(120)]
    for mark in ("-----BEGIN PRIVATE KEY-----", "found -----BEGIN RSA PRIVATE KEY----- in a file"):
        shown = redact("\n".join([mark, *log])).split("\n")
        assert shown[-120:] == log
        assert PLACEHOLDER in shown[0]


def test_the_lines_of_a_key_between_those_of_a_log_are_hidden() -> None:
    lines = ["-----BEGIN PRIVATE KEY-----"]
    for number, part in enumerate(BODY[:20]):
        lines += [part, f"INFO request {number} done"]
    shown = redact("\n".join(lines))
    assert KEY not in shown
    assert all(f"INFO request {number} done" in shown for number in range(20))


@pytest.mark.parametrize("secret", ["planted-value", "x" * 6])
def test_a_known_value_is_hidden(secret: str) -> None:
    assert redact(f"a {secret} b", secret) == f"a {PLACEHOLDER} b"


@pytest.mark.slow
@given(
    st.lists(st.sampled_from([*(token for _, token in EACH), *ways("DB_PASS", SECRET).values(), *ORDINARY]), max_size=4)
)
def test_a_redacted_text_is_not_changed_again(texts: list[str]) -> None:
    once = redact("\n".join(texts))
    assert redact(once) == once


PIECES = (
    "hf_", "eyJa.", "://a:", "-----BEGIN ", "password=[", "A", "token: '", "sk-", "password", "a.", "--api-key ", "<a>",
    "password:\n  x y ", "password: |\n", "password: |\n\n ", "api-key:\n- ", "docker login ", "mysql ",
    "machine a login ", "password::",
    "wandb login --a", "config set ", "value: ", 'password: {"a":', "secrets: {a: ", "cannot get a token: ",
    "\\", '"', "name: ", "password='\\", "-----BEGIN PRIVATE KEY-----", "authorization: ", "Bearer ", "basic ", "('a',",
    "x@", "-u a:", "0", "a:AA", "cookie: '", "password: {", "-----BEGIN PRIVATE KEY-----\n", "dp.pt.", "%3D", "\\u003d",
    "token='$ ", "AzSe", "Q~", "password: [\n", "cookie: \\'", "glpat-", "name:\\", "DB_PASS=x ", "\x1b]", "eyJ",
)  # fmt: skip


@pytest.mark.wide_except("hf_", "eyJa.", "A", "password", "--api-key ", "authorization: ", "Bearer ", "value: ")
@pytest.mark.slow
@pytest.mark.timeout(30)  # it takes half a second; a search that starts anew at each character, one minute
@pytest.mark.parametrize("piece", PIECES)
def test_a_line_of_300_kilobytes_is_read_in_bounded_time(piece: str) -> None:
    redact(piece * (300_000 // len(piece)))


def test_a_text_is_redacted_alike_each_time() -> None:
    plain, secret = "the service answers", "the token is hf_abcdefghijklmnopqrstuvwx"
    for _ in range(2):
        assert redact(plain) == plain
        assert redact(secret) == f"the token is {PLACEHOLDER}"
        assert redact(plain, "service") == f"the {PLACEHOLDER} answers"
