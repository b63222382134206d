"""Inputs of a plan on standard input -> the plan, its flows spelled out, on standard output."""

import sys

import msgspec

from perch.errors import PerchError
from perch.plan import engine, planner, rounds
from spelled import spelled

try:
    planned = planner.plan(planner.decoded(sys.stdin.buffer.read()), engine.checker())
except PerchError as error:
    sys.exit(f"perchctl plan: {error}")
lines = list(rounds.lines(planned))
plan = rounds.plan_document(planned, b"".join(map(rounds.text, lines)))
sys.stdout.buffer.write(msgspec.json.encode(spelled(plan, lines)) + b"\n")
