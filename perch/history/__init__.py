"""What outlives a single run: accepted runs, bundles, the list of runs, comparisons, repeats."""
