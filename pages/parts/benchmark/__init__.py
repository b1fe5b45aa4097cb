"""Parts of the page Benchmark."""
