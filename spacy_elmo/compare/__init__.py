"""Compare pipelines with ELMo and without it: same data, same seeds, same budget."""
