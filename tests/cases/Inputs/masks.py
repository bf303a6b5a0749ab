"""Traces of three runs: the same masks in the first two, and in the third from the fourth step on; each step's its own."""
import json
import sys

one, two, rest = (json.load(open(path))["trace"] for path in sys.argv[1:])
for field in ("kept", "marks"):
    assert one[field] == two[field], (field, one[field], two[field])
    assert one[field][3:] == rest[field], (field, one[field], rest[field])
assert len(set(one["marks"])) == len(one["marks"]), one["marks"]
