"""The verdict's own test: plants faults in good runs and looks whether the verdict finds each."""
