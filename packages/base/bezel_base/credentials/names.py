"""Names of variables, options and attributes that hold a secret: one rule for the plan, policies and hidden texts.

A value under a secret's name passes only where it is known not to be a secret: a switch, the resource name of a secret,
a reference to another variable, the file of a credential. Leaves the places of such values to the callers.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise

_LONGEST = 256
"""Characters of a name that are looked at, from its end."""
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
# A word with this ending names a secret anywhere in a name, also without a separator as in PGPASSWORD.
_SECRET = re.compile(
    r"\w*(?:passwords?|passwd|passphrases?|passcodes?|secrets?|credentials?|apikeys?|accesskeys?|privatekeys?"
    r"|secretkeys?|authkeys?|accountkeys?)|(?:ssh)?pwd|(?:ssh)?pswd?|sshpass|creds?|jwt"
)
# These do so only as the last of several words, as in DB_PASS.
_LAST = re.compile(r"(?:\w*(?:db|my|pg|user|root|admin|smtp|mail|ftp|key|redis))?pass|pw|pat")
_AUTH = re.compile(
    "artifactory|basic|config|docker|elastic|ftp|http|kafka|mail|nexus|npm|npmrc|proxy|redis|registry|smtp"
)
"""Words before `auth` that make it a user and a password, as in npm's `_auth`."""
# Words before `key`, after detect-secrets' list of keywords, and services whose only key is a secret one.
_OF_KEY = re.compile(
    r"\w*(?:access|account|api|auth|client|consumer|database|deploy|encryption|hmac|license|master|priv|private|secret"
    r"|service|session|shared|signing|ssh|ssl|storage|subscription|tls|webhook)|ai|algolia|anthropic|anyscale|assemblyai"
    r"|aws|azure|baseten|brave|cartesia|cerebras|clarifai|cloudflare|cohere|datadog|db|deepgram|deepinfra|deepl|deepseek"
    r"|digitalocean|elevenlabs|exa|fal|fireworks|gemini|github|gitlab|groq|helicone|hf|huggingface|jina|labs|langfuse"
    r"|langsmith|linode|mailgun|mistral|modal|moonshot|netlify|ngc|novita|nvidia|openai|openrouter|paypal|perplexity"
    r"|pinecone|postmark|qdrant|replicate|runpod|sambanova|sendgrid|serpapi|serper|shodan|stability|stripe|tavily"
    r"|together|twilio|vast|vercel|virustotal|voyage|vultr|wandb|weaviate|xai|zilliz"
)
# As the last word, these make the name describe a secret instead of holding it.
_ABOUT = re.compile(
    "algorithm|backend|class|count|dir|enabled|endpoint|errors?|exception|expiration|expiry|field|file|folder|format|header|ids?|kind"
    "|length|lifetime|limit|manager|mode|names?|namespace|parser|path|policy|prefix|prompt|provider|ref|regex|required"
    "|rotation|scope|size|stdin|store|strategy|suffix|timeout|ttl|type|uri|url|version"
)
# Words that make `token` a token of text or of a page, or a number of them.
_OF_TEXT = re.compile(
    "audio|bonus|bos|budget|cls|count|draft|end|eos|first|image|last|limit|mask|max|min|next|num|output|pad|page|per"
    "|prompt|sep|special|start|stop|sync|think|unk|video"
)
# Trailing words that select one of several secrets or its form: ignored.
_WHICH = re.compile(
    r"\d+|b64|base64|current|data|default|dev|env|json|main|old|plain|primary|prod|production|raw|read|ro|rw"
    "|secondary|staging|string|test|text|value|write"
)
# Google's roles and resources whose names have the words of a secret (IAM's list of predefined roles, November 2026).
_OF_IAM = re.compile(
    r"(?:[\w/]+\.)*(?:secretAccessor|secretVersion(?:Adder|Manager)|serviceAccountKey(?:Admin|s)|apiKeys(?:Admin|Viewer)?)"
    r"(?:\.[a-z][A-Za-z]+)?"
)
_NO_SECRET = re.compile(
    r"|true|false|yes|no|on|off|none|null|[01]|projects/[^/]+/secrets/.*|\$[({]\w+[)}]", re.IGNORECASE
)
_OF_FILE = re.compile(r"(?i)credentials?|(?:ssl|tls)[_.-]?key")
"""Names under which the path of a credential's file is usual."""
_FILE = re.compile(r"(?:~|\.{1,2})?/(?:[\w.-]+/)+[\w.-]+|/[\w-]+\.\w+")


def names_secret(name: str) -> bool:
    """Whether a variable, an option or an attribute of this name holds a secret."""
    return _names_secret(name[-_LONGEST:])


@lru_cache(maxsize=4096)
def _names_secret(name: str) -> bool:
    if name in ("PWD", "OLDPWD") or _OF_IAM.fullmatch(name):
        return False
    parts = [word.lower() for word in _WORDS.findall(name)]
    while parts and _WHICH.fullmatch(parts[-1]):
        parts.pop()
    if not parts or _ABOUT.fullmatch(parts[-1]):
        return False
    if parts[-1].endswith("token"):
        return not any(_OF_TEXT.fullmatch(word) for word in parts)
    if _LAST.fullmatch(parts[-1]):
        return len(parts) > 1 or parts[-1] not in ("pass", "pw", "pat") or name.strip("-.") in ("PAT", "pat")
    if parts[-1] == "auth":
        return name.strip("-.") == "_auth" or (len(parts) > 1 and bool(_AUTH.fullmatch(parts[-2])))
    of_a_key = any(
        _OF_KEY.fullmatch(first) and second in ("key", "keys") for first, second in pairwise(filter(str.isalpha, parts))
    )
    return of_a_key or any(_SECRET.fullmatch(word) for word in parts)


def option_names_secret(name: str) -> bool:
    """Whether an option of this name takes a secret: `--api-key` does, `--api-key-env` takes the name of a variable."""
    return names_secret(name.lstrip("-")) and not name.lower().endswith("-env")


def holds_secret(name: str, value: str) -> bool:
    """Whether a value is a secret by the name that it stands under."""
    if not names_secret(name) or _NO_SECRET.fullmatch(value):
        return False
    return not (_OF_FILE.search(name) and _FILE.fullmatch(value))
