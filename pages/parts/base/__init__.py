"""Address, cached loaders, run picker, user errors."""
