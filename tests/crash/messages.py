"""Parts of messages by which the crash tests recognize how a process ended."""

from __future__ import annotations

LEASE_RAN_OUT = "ran out before it was renewed"
"""A process could not renew the lease of its lock in time."""
