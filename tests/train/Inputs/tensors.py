"""Prints the single numbers of a safetensors file, a line each: NAME VALUE."""
import json
import struct
import sys

data = open(sys.argv[1], "rb").read()
length = struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8:8 + length])
for name, entry in sorted(header.items()):
    if name != "__metadata__" and entry["shape"] == []:
        print(name, struct.unpack("<f", data[8 + length + entry["data_offsets"][0]:][:4])[0])
