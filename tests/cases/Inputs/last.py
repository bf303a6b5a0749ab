"""The last values of fields of a trace: last.py FILE.json FIELD..."""
import json
import sys


def find(value, name):
    if isinstance(value, dict):
        if isinstance(value.get(name), list):
            return value[name]
        value = list(value.values())
    for item in value if isinstance(value, list) else []:
        found = find(item, name)
        if found:
            return found
    return None


with open(sys.argv[1], encoding="utf-8") as file:
    document = json.load(file)
for name in sys.argv[2:]:
    print(name, find(document, name)[-1])
