"""Tables of credentials, the only ones: their forms, the names that they stand under, and the readers of both.

| module | its table |
|---|---|
| `forms.py` | credentials that are recognised by their own form, one row a kind |
| `private_keys.py` | the marks and lines of private keys |
| `names.py` | names of variables, options and attributes that hold a secret |
| `headers.py` | names of HTTP headers and query parameters that carry a credential |
| `commands.py` | programs' options for a password that no name precedes |

What hides them in a text is `bezel_base.text.redaction`.
"""
