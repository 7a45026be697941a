"""A view that stores a message and knows nothing else."""
