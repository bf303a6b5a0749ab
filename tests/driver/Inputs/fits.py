"""fits.py TGC MODEL MEMORY NAME: what `tgc fit` finds is what the compiler's own report says of that value and of the next."""
import json
import re
import subprocess
import sys

tgc, model, memory, name = sys.argv[1:]


def plan(value):
    text = subprocess.run([tgc, "compile", model, f"--set={name}={value}", "--emit=plan"], capture_output=True, text=True, check=True).stdout
    return int(re.search(r"^memory (\d+)", text, re.M)[1])


found = subprocess.run([tgc, "fit", model, f"--memory={memory}", f"--vary={name}", "--json"], capture_output=True, text=True, check=True)
found = json.loads(found.stdout)
assert found["bytes"] <= found["memory"] < found["next"]["bytes"], found
assert sum(found["parts"].values()) == found["bytes"], found
assert plan(found["value"]) == found["bytes"], found
assert plan(found["next"]["value"]) == found["next"]["bytes"], found
assert found["command"].endswith(f"--set {name}={found['value']}"), found
