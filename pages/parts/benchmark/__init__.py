"""Parts of the view Benchmark."""
