"""Worker processes: execute a task, train and evaluate a run, compute an analysis."""
