"""Thinc models: docs to layers, layers to mixed vectors, and tok2vec with ELMo."""
