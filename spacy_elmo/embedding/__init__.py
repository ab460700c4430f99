"""Write the vectors of a text to a file."""
