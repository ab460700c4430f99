"""Convert gold data to .spacy files: one module per file format."""
