"""budget.py TGC MODEL MEMORY...: each plan fits into its memory, and the less there is, the more is computed again."""
import re
import subprocess
import sys

tgc, model, budgets = sys.argv[1], sys.argv[2], sys.argv[3:]
dots = -1
for budget in budgets:
    run = subprocess.run([tgc, "compile", model, "--memory", budget, "--emit=plan"], capture_output=True, text=True, check=True)
    memory = int(re.search(r"^memory (\d+)", run.stdout, re.M).group(1))
    limit = int(budget[:-3]) << 20
    assert memory <= limit, f"{budget}: {memory} bytes"
    again = re.search(r"(\d+) values are computed again(?:, with (\d+) dots)?", run.stderr)
    now = -1 if again is None else int(again.group(2) or 0)
    assert now >= dots, f"{budget}: {now} dots, {dots} with more memory"
    dots = now
assert dots > 0, "no budget asked for a dot"
