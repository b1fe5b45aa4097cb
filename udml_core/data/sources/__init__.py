"""Where data sets come from, one file a kind of source."""
