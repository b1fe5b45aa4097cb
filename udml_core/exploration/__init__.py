"""What sliders and cursors show: pure functions from arrays and values to small records, fast enough for every move."""
