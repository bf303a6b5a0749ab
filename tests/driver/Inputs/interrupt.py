"""interrupt.py TRACE: the trace as on a busy machine: in each step another kernel takes a second more."""
import json
import sys

document = json.load(open(sys.argv[1]))
begin, steps = 0, 0
for event in document["traceEvents"]:
    if event["ph"] != "X":
        continue
    event["ts"] += begin
    if event["cat"] == "step":
        steps += 1
        kernel = 0
        event["ts"] += 1e6
        begin += 1e6
        event["dur"] += 1e6
    elif "plan_step" in event.get("args", {}) and event["cat"] != "share":
        kernel += 1
        if kernel == steps % 4:
            event["dur"] += 1e6
json.dump(document, sys.stdout)
