"""Texts for people, fitted to the width of a terminal: lines, fields and tables, colours, and the line of progress."""
