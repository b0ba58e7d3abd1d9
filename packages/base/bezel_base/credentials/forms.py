r"""Table of credentials that are recognised by their own form: one row a kind, with the texts that every one contains.

Sources: the rules of gitleaks (config/gitleaks.toml of 8.28), GitHub's list of supported secret scanning patterns, the
plugins of detect-secrets, and the services' own documentation, read 2026-11. The least lengths are shorter than the
services': a token that was cut or misspelt is hidden too. Every form is one word of printable ASCII.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple


class Form(NamedTuple):
    """Form of one kind of credential.

    Attributes:
        kind: Whose credential it is.
        parts: Texts of which each such credential contains one: a text without any is not searched.
        pattern: The form, without what may stand around it. It must be searched in linear time.
    """

    kind: str
    parts: tuple[str, ...]
    pattern: str


FORMS = (
    Form("1Password service account", ("ops_eyJ",), r"ops_eyJ[\w+/-]{16,}={0,2}"),
    Form(
        "1Password secret key",
        ("A3-",),
        r"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})-[A-Z0-9]{5}-[A-Z0-9]{5}",
    ),
    Form("Adobe", ("p8e-",), r"p8e-[A-Za-z0-9]{16,}"),
    Form("age", ("AGE-SECRET-KEY-1",), r"AGE-SECRET-KEY-1[A-Z0-9]{8,}"),
    Form("Airtable", ("pat",), r"pat[A-Za-z0-9]{14}\.[0-9a-f]{32,}"),
    Form("Alibaba Cloud", ("LTAI",), r"LTAI[A-Za-z0-9]{12,}"),
    Form("Amazon Marketplace", ("amzn.mws.",), r"amzn\.mws\.[0-9a-f-]{16,}"),
    Form("Artifactory", ("AKCp", "cmVmd"), r"(?:AKCp|cmVmdGtu)[A-Za-z0-9]{32,}"),
    Form("Atlassian", ("ATATT3", "ATCTT3", "ATBB"), r"(?:ATATT3|ATCTT3)[\w=-]{16,}|ATBB[A-Za-z0-9]{24,}"),
    Form("AWS access key", ("AKIA", "ASIA", "ABIA", "ACCA"), r"AKIA[0-9A-Z]{12,}|(?:ASIA|ABIA|ACCA)[0-9A-Z]{16,}"),
    Form(
        "AWS Bedrock",
        ("ABSK", "bedrock-api-key-"),
        r"ABSK[A-Za-z0-9+/]{32,}={0,2}|bedrock-api-key-[A-Za-z0-9+/=_-]{16,}",
    ),
    Form("Azure client secret", ("Q~",), r"[\w~.]{3}\dQ~[\w~.-]{24,}"),
    Form(
        "Azure storage and services",
        ("AzSe", "+ASt", "+ABa", "ACDb", "JQQJ99"),
        r"[A-Za-z0-9+/]{32,80}(?:AzSe|\+ASt|\+ABa|ACDb|JQQJ99)[A-Za-z0-9+/]{6,80}={0,2}",
    ),
    Form("Azure DevOps", ("AZDO",), r"[A-Za-z0-9]{72,76}AZDO[A-Za-z0-9]{4}"),
    # Names of resources begin like this too, in lowercase alone.
    Form("Bezel", ("bezel-",), r"bezel-[a-z0-9]{8}-(?:[\w-]{43}(?![\w-])|(?=[a-z0-9_-]{0,42}[A-Z])[\w-]{16,})"),
    Form("Cal.com", ("cal_",), r"cal_(?:live|test)_[A-Za-z0-9]{16,}"),
    Form("CircleCI", ("CCIPAT_", "CCIPRJ_"), r"CCIP(?:AT|RJ)_\w{16,}"),
    Form("Clojars", ("CLOJARS_",), r"CLOJARS_[A-Za-z0-9]{16,}"),
    Form("Cloudflare", ("v1.0-",), r"v1\.0-[a-f0-9]{24}-[a-f0-9]{32,}"),
    Form("Contentful", ("CFPAT-",), r"CFPAT-[\w-]{16,}"),
    Form("crates.io", ("cio",), r"cio[A-Za-z0-9]{32}"),
    Form("Databricks", ("dapi", "dose", "dkea"), r"(?:dapi|dose|dkea)[a-f0-9]{32}(?:-\d)?"),
    Form("Defined Networking", ("dnkey-",), r"dnkey-[\w=-]{16,}"),
    Form("DigitalOcean", ("_v1_",), r"do[oprt]_v1_[a-f0-9]{16,}"),
    Form("Docker", ("dckr_",), r"dckr_[a-z]{2,5}_[\w-]{16,}"),
    Form("Doppler", ("dp.",), r"dp\.(?:ct|pt|st|sa|scim|audit)\.[\w.-]{16,}"),
    Form("Duffel", ("duffel_",), r"duffel_(?:test|live)_[\w=-]{16,}"),
    Form("Dynatrace", ("dt0",), r"dt0[a-z]\d\d\.[A-Z0-9]{8,}(?:\.[A-Z0-9]{16,})?"),
    Form("EasyPost", ("EZAK", "EZTK"), r"EZ[AT]K[A-Za-z0-9]{32,}"),
    Form("E2B", ("e2b_",), r"e2b_[A-Za-z0-9]{16,}"),
    Form("Facebook", ("EAAC", "EAAG", "EAAB", "EAAJ", "EAAM", "EAAD", "EAAE", "EAAF"), r"EAA[B-JM][A-Za-z0-9]{24,}"),
    Form("Figma", ("figd_", "figo"), r"fig(?:d|o[rh]?)_[\w-]{16,}"),
    Form("Firebase Cloud Messaging", (":APA91b",), r"[\w-]{8,40}:APA91b[\w-]{24,}"),
    Form("Fireworks", ("fw_",), r"fw_(?=[A-Za-z]{0,30}\d)[A-Za-z0-9]{16,}"),
    Form("Fly.io", ("fo1_", "fm1", "fm2_"), r"(?:fo1|fm1[ar]|fm2)_[\w+/-]{24,}={0,3}"),
    Form("Frame.io", ("fio-u-",), r"fio-u-[\w=-]{16,}"),
    Form(
        "GitHub",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        r"gh[opsur]_[A-Za-z0-9]{8,}(?:[._-][A-Za-z0-9_.-]{8,})?|github_pat_\w{8,}",
    ),
    Form(
        "GitLab",
        ("gl", "GR1348941"),
        r"gl(?:pat|dt|rt|rtr|ft|cbt|ptt|agent|oas|imt|soat|ffct|wt)-[\w.-]{8,}|GR1348941[\w-]{16,}",
    ),
    Form("Google API key", ("AIza",), r"AIza[\w-]{10,}"),
    Form("Google API key (2)", ("AQ.",), r"AQ\.[\w-]{24,}"),
    Form("Google OAuth client", ("GOCSPX-",), r"GOCSPX-[\w-]{8,}"),
    Form("Google access token", ("ya29",), r"ya29[.~][\w.~+/-]+"),
    Form("Google refresh token, code", ("1//", "4/0A"), r"1//0[\w-]{12,}|4/0A[\w-]{16,}"),
    Form("Google HMAC key", ("GOOG",), r"GOOG1?[A-Z0-9]{20,}"),
    Form(
        "Google key in base64",
        ("eyJ0eXBlIjogInNlcnZpY2VfYWNjb3VudCIs", "ewogICJ0eXBlIjogInNlcnZpY2VfYWNjb3VudCIs"),
        r"[A-Za-z0-9+/]{36,}={0,2}",
    ),
    Form("Grafana", ("glsa_", "glc_"), r"gl(?:sa|c)_[\w+/=-]{16,}"),
    Form("Groq", ("gsk_",), r"gsk_[A-Za-z0-9]{16,}"),
    Form("Harness", ("pat.", "sat."), r"[ps]at\.[\w-]{22}\.[a-f0-9]{24}\.[A-Za-z0-9]{20}"),
    Form("HashiCorp Terraform", (".atlasv1.",), r"[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{16,}"),
    Form("HashiCorp Vault", ("hvs.", "hvb.", "hvr."), r"hv[sbr]\.[\w-]{16,}"),
    Form("Heroku", ("HRKU-",), r"HRKU-[\w-]{16,}"),
    Form(
        "Hugging Face", ("hf_", "api_org_"), r"(?:hf|api_org)_(?:[A-Za-z0-9]{16,}|(?=[A-Za-z]{0,14}\d)[A-Za-z0-9]{8,})"
    ),
    Form("Infracost", ("ico-",), r"ico-[A-Za-z0-9]{32,}"),
    Form("Jina", ("jina_",), r"jina_(?=[A-Za-z_]{0,40}\d)\w{16,}"),
    Form("JSON Web Token", ("eyJ",), r"eyJ[\w-]{8,}(?:\.[\w-]*){0,4}|eyJ[\w-]{4,}\.[\w-]+(?:\.[\w-]*){0,3}"),
    Form("JSON Web Token in base64", ("ZXlK",), r"ZXlK[A-Za-z0-9+/]{40,}={0,2}"),
    Form("Kaggle", ("KGAT_",), r"KGAT_[A-Za-z0-9]{16,}"),
    Form("LangSmith", ("lsv2_",), r"lsv2_(?:pt|sk)_[A-Za-z0-9_]{16,}"),
    Form("Linear", ("lin_",), r"lin_(?:api|oauth)_[A-Za-z0-9]{16,}"),
    Form("Mailchimp", ("-us",), r"[0-9a-f]{32}-us\d\d?"),
    Form("Mailgun", ("key-", "pubkey-"), r"(?<!-)(?:pub)?key-[0-9a-f]{32}"),
    Form("Netlify", ("nfp_",), r"nfp_[A-Za-z0-9]{16,}"),
    Form(
        "New Relic", ("NRAK-", "NRJS-", "NRII-", "NRIQ-", "NRAL"), r"NR(?:AK|JS|II|IQ|RA)-[\w-]{16,}|[0-9a-f]{36}NRAL"
    ),
    Form("Notion", ("ntn_",), r"ntn_[A-Za-z0-9]{24,}"),
    Form("npm", ("npm_",), r"npm_[A-Za-z0-9]{16,}"),
    Form("NuGet", ("oy2",), r"oy2[a-z0-9]{43}"),
    Form("NVIDIA", ("nvapi-",), r"nvapi-[\w-]{16,}"),
    Form(
        "OpenAI, Anthropic and others",
        ("sk-", "sess-"),
        r"(?:sk|sess)-(?:[A-Za-z0-9]{16,}|(?:proj|svcacct|admin|ant|or|lf|None)-[\w-]{8,}|(?=[\w-]{0,40}\d)[\w-]{8,})",
    ),
    Form("OpenShift", ("sha256~",), r"sha256~[\w-]{43}"),
    Form("Perplexity", ("pplx-",), r"pplx-[A-Za-z0-9]{16,}"),
    Form("Pinecone", ("pcsk_",), r"pcsk_\w{16,}"),
    Form("PlanetScale", ("pscale_",), r"pscale_(?:tkn|pw|oauth)_[\w=.-]{16,}"),
    Form("PostHog", ("phx_", "phc_"), r"ph[cx]_[A-Za-z0-9]{16,}"),
    Form("Postman", ("PMAK-",), r"PMAK-[A-Za-z0-9-]{24,}"),
    Form("Prefect", ("pnu_", "pnb_"), r"pn[ub]_[A-Za-z0-9]{24,}"),
    Form("Pulumi", ("pul-",), r"pul-[0-9a-f]{16,}"),
    Form("PyPI", ("pypi-",), r"pypi-AgE[\w-]{16,}|pypi-[\w-]{48,}"),
    Form("Replicate", ("r8_",), r"r8_[A-Za-z0-9]{24,}"),
    Form("RubyGems", ("rubygems_",), r"rubygems_[a-f0-9]{16,}"),
    Form("RunPod", ("rpa_", "rps_"), r"rp[as]_[A-Za-z0-9]{16,}"),
    Form("Salesforce", ("00D",), r"00D[A-Za-z0-9]{12,15}![\w.]{24,}"),
    Form("SendGrid", ("SG.",), r"SG\.[\w-]{16,}(?:\.[\w-]{16,})?"),
    Form("Sendinblue", ("xkeysib-", "xsmtpsib-"), r"x(?:key|smtp)sib-[A-Za-z0-9-]{16,}"),
    Form("Sentry", ("sntry",), r"sntry[us]_[\w+/=-]{16,}"),
    Form("Shippo", ("shippo_",), r"shippo_(?:live|test)_[A-Za-z0-9]{16,}"),
    Form("Shopify", ("shp",), r"shp(?:at|ca|pa|ss|ua|tka)_[A-Fa-f0-9]{16,}"),
    Form("Slack", ("xox", "xapp-", "xwfp-"), r"xox[a-z](?:\.xox[a-z])?-[\w-]{8,}|x(?:app|wfp)-[\w-]{8,}"),
    Form(
        "Slack and other webhooks",
        ("hooks.slack.com/", "/api/webhooks/", ".webhook.office.com/"),
        r"hooks\.slack\.com/(?:services|workflows|triggers)/[\w/+-]{8,}|discord(?:app)?\.com/api/webhooks/\d+/[\w-]{8,}|[a-z0-9]+\.webhook\.office\.com/webhookb2/[\w@/-]{16,}",
    ),
    Form("Sourcegraph", ("sgp_",), r"sgp_[\w]{16,}"),
    Form("Square", ("sq0", "EAAA"), r"sq0(?:atp|csp|idp)-[\w-]{16,}|EAAA[\w-]{56,}"),
    Form(
        "Stripe", ("_live_", "_test_", "whsec_"), r"[rsp]k_(?:live|test|prod)_[A-Za-z0-9]{8,}|whsec_[A-Za-z0-9+/=]{16,}"
    ),
    Form("Supabase", ("sbp_", "sb_secret_"), r"sbp_(?:oauth_)?[a-f0-9]{16,}|sb_secret_[\w-]{16,}"),
    Form("Tailscale", ("tskey-",), r"tskey-[a-z]+-[\w-]{8,}"),
    Form("Tavily", ("tvly-",), r"tvly-(?:(?:dev|prod)-)?(?=[A-Za-z-]{0,30}\d)[A-Za-z0-9-]{16,}"),
    Form("Telegram", (":AA",), r"\d{8,10}:AA[\w-]{30,}"),
    Form("Together", ("tgp_v1_",), r"tgp_v1_[\w-]{16,}"),
    Form("Twilio", ("SK",), r"SK[0-9a-f]{32}"),
    Form("Typeform", ("tfp_",), r"tfp_[\w.=-]{24,}"),
    Form("Vercel", ("vcp_", "vca_", "vck_", "vcr_", "vci_"), r"vc[pakri]_[A-Za-z0-9]{24,}"),
    Form("Weights and Biases", ("wandb_v1_",), r"wandb_v1_\w{16,}"),
    Form("xAI", ("xai-",), r"xai-[A-Za-z0-9]{16,}"),
    Form("Yandex", ("AQVN", "YC"), r"AQVN[\w-]{35,38}|YC[\w-]{38}(?![\w-])"),
    Form(
        "private key in base64",
        ("LS0tLS1CRUdJTi",),
        r"LS0tLS1CRUdJTi(?:BQUklWQVRF|BSU0Eg|BFQyBQ|BPUEVOU1NI|BFTkNSWVBU|BEU0Eg|BQR1Ag)[A-Za-z0-9+/]*={0,2}",
    ),
)
"""Every known form, by kind."""
_FORM_OF_PART = tuple((part, form) for form in FORMS for part in form.parts)

# Before a credential there is another word's end, or an escape of JSON or of a URL.
_BEGIN = r"(?:(?<![A-Za-z0-9])|(?<=\\[bfnrt])|(?<=%[0-9A-Fa-f]{2})|(?<=\\u[0-9A-Fa-f]{4}))"
# The rest of the word belongs to it: two of them without anything in between are hidden as one.
_REST = r"[\w-]*+"


@cache
def pattern_of(form: Form) -> re.Pattern[str]:
    """The form as it is searched in a text."""
    return re.compile(f"{_BEGIN}(?:{form.pattern}){_REST}", re.ASCII)


def replace_forms(text: str, placeholder: str) -> str:
    """A text with every credential of a known form replaced."""
    # One flat loop: nearly every text has no part of any form, and every problem and line of a log comes through here.
    for form in dict.fromkeys([form for part, form in _FORM_OF_PART if part in text]):
        text = pattern_of(form).sub(placeholder, text)
    return text
