"""The pages: widgets, calls into udml_core, drawing. Nothing is computed here."""
