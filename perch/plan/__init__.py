"""What is measured: a suite and an inventory become a plan, before anything runs."""
