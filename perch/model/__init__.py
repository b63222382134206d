"""Types of everything that Perch reads and writes. The JSON Schemas of reports/schema are generated from them."""
