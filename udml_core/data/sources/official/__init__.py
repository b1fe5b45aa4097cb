"""Data sets in the files of their authors, one module for each family of formats."""
