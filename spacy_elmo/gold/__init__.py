"""Gold data of the usual kinds to .spacy files: a module for each kind."""
