"""Records of experiments."""
