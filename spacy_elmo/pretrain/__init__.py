"""Train a biLM on raw text, and measure its perplexity."""
