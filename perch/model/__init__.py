"""Types of everything that Perch reads and writes; reports/schema is generated from them."""
