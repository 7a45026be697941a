"""Tests of who is there."""

from tests.provisioned import lab, other_lab

__all__ = ["lab", "other_lab"]
