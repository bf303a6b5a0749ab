"""parts.py PART...: the report on standard input splits its memory into parts that add up to all of it, and these are among them."""
import re
import sys

text = sys.stdin.read()
whole = int(re.search(r"^memory +(\d+) bytes", text, re.M).group(1))
parts = dict(re.findall(r"^    ([a-z ]+?) +(\d+) bytes$", text, re.M))
assert sum(map(int, parts.values())) == whole, (whole, parts)
missing = set(sys.argv[1:]) - set(parts)
assert not missing, missing
