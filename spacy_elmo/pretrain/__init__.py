"""From raw text to a biLM."""
