"""Modules that only project.yml calls."""
