"""The process side of a task: execute, train, analyse."""
