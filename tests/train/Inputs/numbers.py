"""Prints numbers of JSON documents, one a line, as they are written there: FILE PATH..., a path as in val.test.loss."""
import json
import sys

document = json.load(open(sys.argv[1]), parse_float=str, parse_int=str)
for path in sys.argv[2:]:
    value = document
    for part in path.split("."):
        value = value[int(part) if isinstance(value, list) else part]
    print(value)
