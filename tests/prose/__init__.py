"""A linter of the words that users read."""
