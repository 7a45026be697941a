"""Tests of what tasks say to each other."""

from tests.provisioned import lab, other_lab

__all__ = ["lab", "other_lab"]
