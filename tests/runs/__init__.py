"""Tests of udml_core.runs."""
