"""What people are shown of a judged run: words, tables and charts. Nothing here judges."""
