"""Checks every ```tg block of a page with `tgc check`. The text after "tg" says what is expected of it:

    ```tg                 the block is a file of its own, or a fragment that the file names of the page make whole
    ```tg error: TEXT     tgc refuses it, and says TEXT

usage: snippets.py TGC PAGE FOLDER"""
import os
import re
import subprocess
import sys

tgc, page, folder = sys.argv[1:4]
os.makedirs(folder, exist_ok=True)
text = open(page).read()
failures = count = 0
for match in re.finditer(r"^```tg([^\n]*)\n(.*?)^```$", text, re.M | re.S):
    expected, body = match[1].strip(), match[2]
    line = text.count("\n", 0, match.start()) + 1
    count += 1
    path = os.path.join(folder, f"line{line}.tg")
    with open(path, "w") as file:
        file.write(body)
    result = subprocess.run([tgc, "check", path], capture_output=True, text=True)
    wanted = expected.removeprefix("error:").strip()
    right = result.returncode == 3 and wanted in result.stderr if expected else result.returncode == 0
    if not right:
        failures += 1
        print(f"{page}:{line}: {'expected ' + expected if expected else 'is not accepted'}\n{result.stderr}")
print(f"{count} blocks, {failures} wrong")
sys.exit(failures != 0 or count == 0)
