"""No cast is lost work in a model's step, compiled with mixed precision: casts.py TGC PRECISION MODEL...

None gives back what another took; none is made twice; a parameter's low copy is made once, where the parameter is written."""
import re
import subprocess
import sys

tgc, precision, models = sys.argv[1], sys.argv[2], sys.argv[3:]
value_line = re.compile(r"%(\d+) : ((?:scaled )?)(\w+)(?:\[[^]]*\])? = (\w+) ?(.*)")
store_line = re.compile(r"store @(\S+) %(\d+)")
width = {"f64": 4, "f32": 3, "bf16": 1, "f16": 2}
over_rows = ("pre", "micro", "eval.micro", "export")
faults = []
copies = casts = 0


def check_func(model, name, kind, lines, params):
    """Faults of one function; how many of its stores are of copies, and its casts of floats."""
    values, seen, stored, found = {}, {}, 0, 0
    for line in lines:
        store = store_line.match(line)
        if store and store[1].startswith("copy."):
            stored += 1
            if values[store[2]][1] != "convert":
                faults.append(f"{model} @{name}: {store[1]} is no cast")
        match = value_line.match(line)
        if not match:
            continue
        scaled, dtype, op, rest = match[2], match[3], match[4], match[5]
        values[match[1]] = (dtype, op, rest, scaled)
        operand = re.match(r"%(\d+)", rest)
        if op != "convert" or dtype not in width:
            continue
        source = values[operand[1]]
        if source[0] not in width or source[0] == dtype:
            if source[0] == dtype and source[3] == scaled:
                faults.append(f"{model} @{name}: a cast to its own type: {line}")
            continue
        found += 1
        key = (operand[1], dtype, scaled)
        if key in seen:
            faults.append(f"{model} @{name}: made twice: {seen[key]} and {line}")
        seen[key] = line
        if source[1] == "convert":
            before = values[re.match(r"%(\d+)", source[2])[1]]
            if before[0] == dtype and width.get(before[0], 9) < width[source[0]]:
                faults.append(f"{model} @{name}: gives back what was there: {line}")
        load = re.match(r"@(\S+)", source[2]) if source[1] == "load" else None
        if load and load[1] in params and kind in over_rows:
            faults.append(f"{model} @{name}: a parameter is cast where rows are: {line}")
    return stored, found


for model in models:
    text = subprocess.run([tgc, "compile", model, "-p", precision, "-Wno-emulated-type", "--emit=step"], check=True, capture_output=True,
                          text=True).stdout
    buffers = re.findall(r"^  buffer @(\S+) : (?:scaled )?\w+(?:\[[^]]*\])? (\w+)", text, re.M)
    params = {name for name, kind in buffers if kind == "param"}
    wanted = sum(kind == "copy" for _, kind in buffers)
    for func in re.findall(r"^  func @(\S+) ([\w.]+)\((.*?)^  }", text, re.M | re.S):
        lines = [line.strip() for line in func[2].splitlines()]
        stored, found = check_func(model, func[0], func[1], lines, params)
        casts += found
        copies += stored
        if func[1] in ("tail", "copies") and stored != wanted:
            faults.append(f"{model} @{func[0]}: {stored} of {wanted} copies are written")
print("\n".join(faults))
print(f"{precision}: {len(faults)} faults, casts: {'some' if casts else 'none'}, copies: {'some' if copies else 'none'}")
