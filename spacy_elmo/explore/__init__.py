"""A page on this machine, to type sentences into and to look at words in context."""
