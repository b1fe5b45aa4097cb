"""What runs in the background: jobs, sweeps, workers and exports."""
