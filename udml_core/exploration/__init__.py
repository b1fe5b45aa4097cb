"""Computations behind sliders and cursors.

They are pure functions of arrays, fast enough to run at every move.
"""
