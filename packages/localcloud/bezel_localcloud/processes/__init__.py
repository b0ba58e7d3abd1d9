"""Processes of the daemon: guards, sockets, ports, orphans."""
