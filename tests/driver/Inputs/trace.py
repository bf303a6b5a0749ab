"""trace.py TRACE STEPS: checks a trace event by event: what viewers need is there, spans of a thread lie one in the other, the steps
of the plan are told whole."""
import json
import sys

document = json.load(open(sys.argv[1]))
events = document["traceEvents"]
names = {(e["name"], e["tid"]) for e in events if e["ph"] == "M"}
spans = [e for e in events if e["ph"] == "X"]
assert ("process_name", 0) in names
assert len(spans) + sum(e["ph"] == "M" for e in events) == len(events)
for tid in {e["tid"] for e in spans}:
    assert ("thread_name", tid) in names, tid
    open_until = []
    last = 0
    for e in (e for e in spans if e["tid"] == tid):
        begin = int(e["ts"] * 1000)  # nanoseconds, as viewers find them; they drop what does not nest
        end = begin + int(e["dur"] * 1000)
        assert e["dur"] >= 0 and begin >= last, e
        last = begin
        while open_until and open_until[-1] <= begin:
            open_until.pop()
        assert not open_until or end <= open_until[-1], e
        open_until.append(end)
steps = [e for e in spans if e["cat"] == "step"]
assert len(steps) == int(sys.argv[2]), len(steps)
assert [e["args"]["step"] for e in steps] == list(range(6, 6 + len(steps)))
runs = [e["args"] for e in spans if "plan_step" in e.get("args", {}) and e["cat"] != "share"]
assert len(runs) % len(steps) == 0 and len(runs) >= len(steps)
for args in runs:
    assert args["op"] and args["kind"] and args["function"] and args["bytes"] >= 0 and args["flops"] >= 0, args
    assert args["line"] == args["lines"][0], args
for kind in ("wait for the batch", "copy the batch", "micro", "tail"):
    assert sum(e["name"] == kind for e in spans) >= len(steps), kind
