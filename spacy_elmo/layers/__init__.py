"""Thinc models that map docs to layers, mix layers, and combine tok2vec with ELMo."""
