"""A judged run for other programs: junit.xml for CI systems, perch.prom for Prometheus."""
