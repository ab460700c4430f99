"""Find text files, tokenize them and divide them into sentences."""
