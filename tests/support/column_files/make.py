#!/usr/bin/env python3
"""Writes the files beside it (needs pyarrow): one table of every type that is read, in Parquet with each
compression and as a folder like Hugging Face's save_to_disk writes one. Tests read what is committed."""

import json
import pathlib
import sys

import pyarrow as pa
import pyarrow.parquet as pq

here = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__).parent
part = pa.struct([("type", pa.string()), ("text", pa.string())])
message = pa.struct([("role", pa.string()), ("content", pa.string())])

rows = [
    {"question": "plain \"quoted\" \u00e9\n", "n": 2, "stop": ["a", "b"], "answer": "025", "day": 1},
    {"question": "", "n": None, "stop": [], "answer": None, "day": 2},
    {"question": "last", "n": 9007199254740993, "stop": None, "answer": "x", "day": 3},
]
schema = pa.schema([
    ("question", pa.string()), ("n", pa.int64()), ("stop", pa.list_(pa.string())),
    ("answer", pa.string()), ("day", pa.date32()),
])
table = pa.Table.from_pylist(rows, schema=schema)
for codec in ("none", "snappy", "gzip", "zstd", "lz4"):
    pq.write_table(table, here / f"{codec}.parquet", compression=codec)

types = pa.table({
    "prompt": pa.array(["a", "b"]).dictionary_encode(),
    "system": pa.array(["s", None], pa.large_string()),
    "messages": pa.array([[{"role": "user", "content": "hi"}], None], pa.list_(message)),
    "tools": pa.array([[{"f": 0.5, "h": 1.0}], [{"f": None, "h": -2.0}]],
                      pa.list_(pa.struct([("f", pa.float64()), ("h", pa.float32())]))),
    "logit_bias": pa.array([{"5": 1.5}, {"5": None}], pa.struct([("5", pa.float64())])),
    "n": pa.array([1, 255], pa.uint8()),
    "stop": pa.array([["x", "y"], ["z", None]], pa.list_(pa.string(), 2)),
    "unused": pa.array([b"\xff", b"\x00"]),
})
pq.write_table(types, here / "types.parquet")
pq.write_table(pa.table({"prompt": [b"\x01"]}), here / "binary.parquet")
pq.write_table(pa.table({"prompt": pa.array([], pa.string())}), here / "empty.parquet")
pq.write_table(pa.table({"question": ["a", "b"], "input_tokens": [[1, 2, 3], [70000]]}), here / "tokens.parquet")


def save_to_disk(folder, table, files):
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"data-{i:05d}-of-{files:05d}.arrow" for i in range(files)]
    each = -(-table.num_rows // files)
    for i, name in enumerate(names):
        with pa.ipc.new_stream(folder / name, table.schema) as out:
            out.write_table(table.slice(i * each, each))
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": n} for n in names], "_split": folder.name}))


save_to_disk(here / "folder" / "train", table, 2)
save_to_disk(here / "folder" / "test", table.slice(2), 1)
(here / "folder" / "dataset_dict.json").write_text(json.dumps({"splits": ["train", "test"]}))
