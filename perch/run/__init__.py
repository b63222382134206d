"""The folder of a run: planned, judged, read again."""
