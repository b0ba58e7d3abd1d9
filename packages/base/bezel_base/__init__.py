"""The base of every package: errors, redaction, Markdown, whole files, processes, loopback guards, cron."""
