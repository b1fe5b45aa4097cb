"""Parts that most pages need: address, cached loaders, run picker, run status, selection, user errors."""
