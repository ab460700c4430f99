"""Looking inside a biLM: what its layers know, and what is near what."""
