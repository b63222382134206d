"""perch-agent: walks a host's share of a plan. Python 3.9 and its standard library, no more.

`setup/zipapp.py` packs it, with perch/plan/template.py, as one file.
"""
