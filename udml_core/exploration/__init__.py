"""Computations behind sliders and cursors: pure functions of arrays, fast enough to run at every move."""
