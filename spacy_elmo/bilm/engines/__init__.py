"""Computes layers for use, without gradients: packed weights, cached words, int8."""
