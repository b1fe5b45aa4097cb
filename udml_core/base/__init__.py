"""What everything else stands on: arrays, errors, paths, files and declarations."""
