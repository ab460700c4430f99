"""The sections of the page, one module for each kind of result."""
