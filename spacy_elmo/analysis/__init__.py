"""Look inside a biLM: what its layers know, and which words lie near each other."""
