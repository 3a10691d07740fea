"""What tools/gpu_check.py runs, and how it reads what came of it."""
