"""Text that came from outside, made fit to be shown: printable, without credentials, as Markdown, for a shell."""
