"""Reads raw text of any kind: files, tokenizers, sentences."""
