"""Outputs that were measured elsewhere: files -> outputs -> results, and `perchctl import`."""
