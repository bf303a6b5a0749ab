"""ranges.py EXPRESSION...: of the JSON document of tgc ranges (standard input) every expression holds. `one(kind, name,
shape)` is its only tensor of these, `numbers` that with the numbers of ranges.csv, `f16(t)` how many of its 15 become 0, denormal,
infinite; so are the other types."""
import json
import sys

document = json.load(sys.stdin)


def one(kind, name, shape=None):
    (found,) = [t for t in document["tensors"] if (t["kind"], t["name"], shape or t["shape"]) == (kind, name, t["shape"])]
    return found


def of(name, count=15):
    return lambda t: [round(count * t["types"][name][what], 4) for what in ("zero", "denormal", "infinite")]


numbers = one("value", "mul", "[B, 4]")
f16, bf16, e4m3, e5m2 = (of(name) for name in ("f16", "bf16", "e4m3", "e5m2"))
for expression in sys.argv[1:]:
    if not eval(expression):
        sys.exit(f"not so: {expression}\n{json.dumps(document, indent=1)}")
