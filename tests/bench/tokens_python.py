"""What tests/bench/tokens compares with: the Python library on the same texts, one thread.

Usage: tokens_python.py texts TREE >TEXTS | tokens_python.py count MODEL_FOLDER TEXTS PASSES
"""

import json
import pathlib
import sys
import time

import tokenizers


def write_texts(tree):
    """Pieces of some 1,000 characters, as replies are: English of the docs, and code."""
    tree = pathlib.Path(tree)
    for path in sorted([*tree.glob("docs/**/*.md"), *tree.glob("common/**/*.cc"), *tree.glob("tests/conformance/*.py")]):
        text = path.read_text()
        for i in range(0, len(text), 1000):
            print(json.dumps(text[i:i + 1000]))


def count(folder, texts, passes):
    start = time.process_time()
    tokenizer = tokenizers.Tokenizer.from_file(folder + "/tokenizer.json")
    tokenizer.no_truncation()
    tokenizer.no_padding()
    load_s = time.process_time() - start
    texts = [json.loads(line) for line in open(texts)]
    count_all = lambda: sum(len(tokenizer.encode(text, add_special_tokens=False)) for text in texts)
    tokens = count_all()
    start = time.process_time()
    for _ in range(passes):
        count_all()
    each_s = (time.process_time() - start) / passes
    print(f"{tokens} {tokens / each_s:.0f} {load_s:.2f}")


if sys.argv[1] == "texts":
    write_texts(sys.argv[2])
else:
    count(sys.argv[2], sys.argv[3], int(sys.argv[4]))
