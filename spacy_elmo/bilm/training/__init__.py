"""Compute training steps with hand-written gradients, and grow trained models."""
