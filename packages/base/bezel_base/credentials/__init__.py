"""What a credential looks like, and what it is called: the one place of these tables.

| module | its table |
|---|---|
| `forms.py` | credentials that are recognised by their own form, one row a kind |
| `private_keys.py` | the marks and lines of private keys |
| `names.py` | names of variables, options and attributes that hold a secret |
| `headers.py` | names of HTTP headers and query parameters that carry a credential |
| `commands.py` | programs' options for a password that no name precedes |

What hides them in a text is `bezel_base.text.redaction`.
"""
