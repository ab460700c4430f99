"""Compute the layers of sentences, without gradients: batching, cached words, int8."""
