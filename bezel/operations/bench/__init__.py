"""Benchmarks as operations: measuring in a process of its own, reports and audits of files of the project."""
