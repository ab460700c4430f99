"""Compare pipelines with and without ELMo: same data, seeds and training settings."""
