"""chroot.py ROOT BUNDLE PROGRAM [ARGUMENT]...: runs a bundle's program where there is nothing but libc, the loader and the bundle."""
import os
import re
import shutil
import subprocess
import sys

LIBC = re.compile(r"(libc|libm|libdl|libpthread|librt)\.so\.|ld-linux")

root, bundle, program = sys.argv[1:4]
if os.geteuid() != 0:
    print("SKIPPED: chroot needs root")
    sys.exit(0)
shutil.rmtree(root, ignore_errors=True)
shutil.copytree(bundle, os.path.join(root, "bundle"))
os.makedirs(os.path.join(root, "tmp"))
for name in [program] + sorted(os.listdir(bundle)):
    path = os.path.join(bundle, name)
    listed = subprocess.run(["ldd", path], capture_output=True, text=True).stdout if os.path.isfile(path) else ""
    for needed in re.findall(r"(/\S+) \(0x", listed):
        if LIBC.search(os.path.basename(needed)):
            to = root + needed
            os.makedirs(os.path.dirname(to), exist_ok=True)
            shutil.copy(needed, to)
os.chroot(root)
os.chdir("/tmp")
os.execve("/bundle/" + program, [program] + sys.argv[4:], {"TG_THREADS": "1"})
