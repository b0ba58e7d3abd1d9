"""Data plane of the global load balancers: listeners, choice of a region, health and ejection, TLS.

Leaves out the resources and their routing table (`bezel_localcloud.services.load_balancing`).
"""
