"""Train a biLM: one step with hand-written gradients, and growing a model."""
