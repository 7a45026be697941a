"""Whole stories through the entry points."""
