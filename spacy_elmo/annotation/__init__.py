"""Run a pipeline over a corpus and store what it finds."""
