"""What a PyTorch script needs to see the batches that a tgc program sees: files, splits and orders as docs/training.md defines them."""
import gzip
import json
import struct

import numpy as np

SHUFFLE, SPLIT = 1, 2


def philox(key, counter):
    """Philox 4x32-10 on Python integers; counter has four words."""
    k0, k1 = key & 0xFFFFFFFF, key >> 32
    c = list(counter)
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k0, b & 0xFFFFFFFF, (a >> 32) ^ c[3] ^ k1, a & 0xFFFFFFFF]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c


def permute(records, key, epoch, purpose):
    records = list(records)
    for i in range(len(records) - 1, 0, -1):
        word = philox(key, [i & 0xFFFFFFFF, i >> 32, epoch, purpose])
        j = ((word[1] << 32 | word[0]) * (i + 1)) >> 64
        records[i], records[j] = records[j], records[i]
    return records


def split(count, shares, index):
    """The records of part `index`, ascending."""
    cut = [int(np.floor(count * sum(shares[:i]) + 0.5)) for i in range(len(shares) + 1)]
    order = permute(range(count), 0, 0, SPLIT)
    return sorted(order[cut[index]:cut[index + 1]])


def epoch_order(records, seed, epoch):
    return permute(records, seed, epoch, SHUFFLE)


def idx(path):
    data = gzip.open(path).read() if path.endswith(".gz") else open(path, "rb").read()
    rank = data[3]
    dims = struct.unpack(f">{rank}I", data[4:4 + 4 * rank])
    return np.frombuffer(data, np.uint8, offset=4 + 4 * rank).reshape(dims)


def write_safetensors(path, tensors):
    header, at = {}, 0
    for name, value in tensors.items():
        header[name] = {"dtype": {"float32": "F32", "float64": "F64"}[str(value.dtype)], "shape": list(value.shape),
                        "data_offsets": [at, at + value.nbytes]}
        at += value.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for value in tensors.values():
            file.write(np.ascontiguousarray(value).data)


def read_safetensors(path):
    """Arrays that are views of the file."""
    data = np.memmap(path, np.uint8, "r")
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size].tobytes())
    kinds = {"F32": np.float32, "F64": np.float64, "I32": np.int32, "U8": np.uint8}
    return {name: np.frombuffer(data, kinds[row["dtype"]], int(np.prod(row["shape"])), 8 + size + row["data_offsets"][0])
            .reshape(row["shape"]) for name, row in header.items() if name != "__metadata__"}


def text_tokens(path, shares, index):
    """Byte tokens of one run of a text."""
    data = np.frombuffer(open(path, "rb").read(), np.uint8)
    cut = [int(len(data) * sum(shares[:i]) + 0.5) for i in range(len(shares) + 1)]
    return data[cut[index]:cut[index + 1]]


def text_epoch(tokens, length, seed, epoch):
    """Where the windows of length + 1 tokens begin, in the order of a training epoch."""
    count = max((tokens - length) // length, 1)
    shifts = min(tokens - count * length, length)
    word = philox(seed, [0, 0, epoch, 3])
    shift = ((word[1] << 32 | word[0]) * shifts) >> 64
    return permute([i * length + shift for i in range(count)], seed, epoch, SHUFFLE)


def text_windows(tokens, length):
    """Validation: every whole window."""
    return [i * length for i in range((tokens - 1) // length)]
