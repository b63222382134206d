"""Inputs of a plan on standard input -> the plan on standard output, without a run's folder."""

import sys

import msgspec

from perch.errors import PerchError
from perch.plan import engine, plan1, planner

try:
    planned = planner.plan(planner.decoded(sys.stdin.buffer.read()), engine.checker())
except PerchError as error:
    sys.exit(f"perchctl plan: {error}")
sys.stdout.buffer.write(msgspec.json.encode(plan1.document(planned)) + b"\n")
