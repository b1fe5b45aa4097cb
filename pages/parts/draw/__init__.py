"""Figures, tables, pictures, downloads and forms."""
