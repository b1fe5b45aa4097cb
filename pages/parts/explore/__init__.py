"""The page Explore: one run, one current image, many panels."""
