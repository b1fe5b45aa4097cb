"""Search the embeddings of a run."""
