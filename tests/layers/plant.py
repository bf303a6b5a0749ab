"""plant.py SOURCE BUILD TO: copies the layers to TO and breaks each rule of check.py once."""
import os
import shutil
import subprocess
import sys

PLANTED = {
    "ir/base/arena.h": '#include "ir/graph.h"\n',
    "frontend/ast.h": '#include "passes/pass.h"\n',
    "passes/pass.h": "static inline void stop(void) { abort(); }\n",
    "runtime/loop.h": '#include "ir/graph.h"\n',
    "runtime/ring.h": "\n" * 701,
}
# A constant that is relocated is no mutable global.
GLOBALS = "int counter; int table[2] = {1, 2}; const char *const names[] = {\"a\"};\n"

source, build, to = sys.argv[1:]
for folder in ("ir", "frontend", "passes", "codegen", "runtime", "driver"):
    shutil.copytree(os.path.join(source, folder), os.path.join(to, folder))
for path, text in PLANTED.items():
    with open(os.path.join(to, path), "a") as file:
        file.write(text)
shutil.copytree(os.path.join(build, "lib"), os.path.join(to, "build/lib"), ignore=lambda _, names: [n for n in names if not n.endswith(".a")])
with open(os.path.join(to, "planted.c"), "w") as file:
    file.write(GLOBALS)
subprocess.run(["cc", "-fPIC", "-c", os.path.join(to, "planted.c"), "-o", os.path.join(to, "planted.o")], check=True)
subprocess.run(["ar", "r", os.path.join(to, "build/lib/libtgir.a"), os.path.join(to, "planted.o")], check=True, capture_output=True)
