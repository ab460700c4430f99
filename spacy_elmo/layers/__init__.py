"""Thinc models: docs to layers, layers to mixed vectors, [x_k ; ELMo_k]."""
