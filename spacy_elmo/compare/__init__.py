"""spaCy's own CNN against ELMo: same data, same seeds, same budget."""
