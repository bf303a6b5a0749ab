"""chroot.py STATUS ROOT BUNDLE PROGRAM [ARGUMENT]...: runs a bundle's program where there is nothing but libc, the loader and
the bundle; it must end with this exit status."""
import os
import re
import shutil
import subprocess
import sys

LIBC = re.compile(r"(libc|libm|libdl|libpthread|librt)\.so\.|ld-linux")

status, root, bundle, program = sys.argv[1:5]
if os.geteuid() != 0:
    print("SKIPPED: chroot needs root")
    sys.exit(0)
if "libasan" in subprocess.run(["ldd", os.path.join(bundle, program)], capture_output=True, text=True).stdout:
    print("SKIPPED: programs of a build with sanitizers need their libraries as well")
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
ended = subprocess.run(["/bundle/" + program] + sys.argv[5:], env={"TG_THREADS": "1"}).returncode
if ended != int(status):
    sys.exit(f"exit status {ended}, not {status}")
