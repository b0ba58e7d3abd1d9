"""Minimum and maximum of a service's instances, written into the stack's file and deployed."""
