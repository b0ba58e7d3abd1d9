"""Rules of xgrammar 0.2.8: which grammars, expressions, schemas and tags it takes, where the library is not installed.

Each module has one `check`, which raises `RefusedError` with the library's words, or `NotJudgedError` where a rule for
the text is missing. They were compared with the library's own verdicts (`tools/vllm/recorders/grammar_verdicts.py`).
"""
