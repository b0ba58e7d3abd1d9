"""Answers that Google's front end gives in place of a server: which they are, and what each of them means."""
