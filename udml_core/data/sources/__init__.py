"""Sources of data sets, one module for each kind."""
