"""Modules that are called only by project.yml."""
