#!/usr/bin/env python3
"""Makes tree.json: digests of trees, worked out from docs/architecture.md alone.

BLAKE3 is written here as well, from its paper, so that nothing is shared with the program that is tested.
Run it as `python3 tests/vectors/tree.py > tests/vectors/tree.json`.
"""

import json
import struct

IV = [0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19]
PERMUTATION = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8]
CHUNK_START, CHUNK_END, PARENT, ROOT, CONTEXT, MATERIAL = 1, 2, 4, 8, 32, 64
MASK = 0xFFFFFFFF


def rotate(x, n):
    return ((x >> n) | (x << (32 - n))) & MASK


def compress(cv, words, counter, length, flags):
    v = cv + IV[:4] + [counter & MASK, counter >> 32, length, flags]
    m = list(words)

    def g(a, b, c, d, x, y):
        v[a] = (v[a] + v[b] + x) & MASK
        v[d] = rotate(v[d] ^ v[a], 16)
        v[c] = (v[c] + v[d]) & MASK
        v[b] = rotate(v[b] ^ v[c], 12)
        v[a] = (v[a] + v[b] + y) & MASK
        v[d] = rotate(v[d] ^ v[a], 8)
        v[c] = (v[c] + v[d]) & MASK
        v[b] = rotate(v[b] ^ v[c], 7)

    for _ in range(7):
        for i in range(4):
            g(i, 4 + i, 8 + i, 12 + i, m[2 * i], m[2 * i + 1])
        for i in range(4):
            g(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4, m[8 + 2 * i], m[9 + 2 * i])
        m = [m[i] for i in PERMUTATION]
    return [v[i] ^ v[i + 8] for i in range(8)]


def block(data):
    return list(struct.unpack("<16I", data.ljust(64, b"\0")))


def chunk(key, data, counter, flags):
    """The last compression of a chunk, not yet carried out."""
    cv = key
    blocks = [data[i : i + 64] for i in range(0, len(data), 64)] or [b""]
    for i, part in enumerate(blocks):
        now = flags | (CHUNK_START if i == 0 else 0) | (CHUNK_END if i == len(blocks) - 1 else 0)
        if i == len(blocks) - 1:
            return cv, block(part), counter, len(part), now
        cv = compress(cv, block(part), counter, 64, now)


def subtree(key, data, counter, flags):
    if len(data) <= 1024:
        return chunk(key, data, counter, flags)
    left = 1024
    while left * 2 < len(data):
        left *= 2
    words = compress(*subtree(key, data[:left], counter, flags))
    words += compress(*subtree(key, data[left:], counter + left // 1024, flags))
    return key, words, 0, 64, flags | PARENT


def keyed(key, data, flags):
    cv, words, counter, length, flags = subtree(key, data, 0, flags)
    # The root is compressed with a counter of its own, which is 0.
    return struct.pack("<8I", *compress(cv, words, 0, length, flags | ROOT))


def blake3(data):
    return keyed(IV, data, 0)


def derive_key(context, data):
    key = keyed(IV, context.encode(), CONTEXT)
    return keyed(list(struct.unpack("<8I", key)), data, MATERIAL)


assert blake3(b"abc").hex() == "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85"
assert blake3(b"").hex() == "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"

KINDS = {"file": 1, "executable": 2, "link": 3, "submodule": 4, "left-out": 5, "unreadable": 6, "special": 7}


def tree(entries):
    out = struct.pack("<Q", len(entries))
    for path, kind, contents in sorted(entries):
        out += struct.pack("<Q", len(path)) + path + struct.pack("<Q", KINDS[kind]) + blake3(contents)
    return derive_key("probity 2026-12-01 tree v1", out)


COMMIT = b"sha1:" + b"0123456789abcdef" * 2 + b"01234567"
TREES = {
    "nothing": [],
    "one empty file": [(b"a", "file", b"")],
    "every kind": [
        (b"bin/tool", "executable", b"#!/bin/sh\n"),
        (b"device", "special", b"char 1:3"),
        (b"fifo", "special", b"fifo"),
        (b"link", "link", b"../elsewhere"),
        (b"secret", "unreadable", b""),
        (b"socket", "special", b"socket"),
        (b"sparse", "left-out", b"100755 " + COMMIT[5:]),
        (b"sub", "submodule", COMMIT),
        (b"uninitialised", "left-out", b"160000 " + COMMIT[5:]),
        (b"unborn", "submodule", b""),
    ],
    "order is that of bytes": [
        (b"a", "file", b"1"),
        (b"a-b", "file", b"2"),
        (b"a.b", "file", b"3"),
        (b"a/b", "file", b"4"),
        (b"a0", "file", b"5"),
        (b"B", "file", b"6"),
        ("ä".encode(), "file", b"7"),
        (b"\xff\n", "file", b"8"),
    ],
    "more than a chunk": [(b"f%03d" % i, "file", bytes([i]) * (5000 if i == 9 else i)) for i in range(60)],
    "a tree to take": [
        (b"link", "link", b"src/main"),
        (b"pipe", "special", b"fifo"),
        (b"probity.toml", "file", b'[verify]\ncommands = [["true"]]\n'),
        (b"src/line\nend", "file", b"x"),
        (b"src/main", "file", b"fn main() {}\n" * 200),
        (b"src/tool", "executable", b"#!/bin/sh\n"),
    ],
}

print(
    json.dumps(
        [
            {
                "name": name,
                "entries": [
                    {"path": path.hex(), "kind": kind, "contents": contents.hex()}
                    for path, kind, contents in sorted(entries)
                ],
                "digest": "blake3:" + tree(entries).hex(),
            }
            for name, entries in TREES.items()
        ],
        indent=1,
    )
)
