#!/usr/bin/env python3
"""Sentences by NLTK, and ROUGE-Lsum of pairs by rouge_score, as vectors for punkt_test.cc.

    pip install nltk rouge_score
    NLTK_DATA=FOLDER punkt_expected.py COUNT SEED [TEXTS.jsonl ...] > cases.jsonl

FOLDER holds tokenizers/punkt_tab/english.

One line is [text, [sentence, ...], lsum]: lsum compares the line's text with that of the line before,
which is the right one. Texts are COUNT random ones, made of words that matter to the model and of
marks, and the string values of the lines of the files.
"""
import json
import random
import sys

from nltk.data import find
from nltk.tokenize.punkt import PunktTokenizer
from rouge_score.rouge_scorer import RougeScorer

MARKS = (". . . . ? ! ... .. .) .\" .' ?\" !) .] , ; : - -- --- ( [ { \" ' ` ; .\u201d \u201c \u2019 \u2018 \u00bb \u00ab .-- "
         ". . . ... . & # * @ ) ?!? !!! .* ?; .\u00bb").split(" ")
SPACES = [" "] * 12 + ["", "", "", "  ", "\n", "\n\n", "\t", "\u00a0", " \n ", "\u2003", "\r\n", "\x1c", "\x0b"]
WORDS = ("the he He The it It house House 3.14 12. -5. 1,000. .5 7.-8. \u0663. J. K. q. A.B. e.g. U.S. "
         "Dr. St. No. Inc. co-Inc. Mr. Mrs. vs. \u00c9tude \u00e9tude \u00c9. \u0130. \u212a. _. \u01c5x. \u00df. \u03a3. a.m. "
         "Ph.D. however However This this May may Bach Gallen Sec. 5th 1st. x. X. I. i. word Word "
         "end.Next a.b.c. http://a.b/c?d=e!f \u4e2d\u6587\u3002 don't 'tis rock'n'roll. (a). [b]. {c}. \"d.\" e.) f.\"").split(" ")


def model_words(folder):
    out = []
    for name in ("abbrev_types.txt", "sent_starters.txt"):
        out += [w + "." for w in open(f"{folder}/{name}", encoding="utf-8").read().split("\n") if w]
    for line in open(f"{folder}/collocations.tab", encoding="utf-8"):
        first, second = line.rstrip("\n").split("\t")
        out += [first.replace("##number##", "12") + ". " + second.capitalize()]
    return out


def random_text(rng, words):
    out = []
    for _ in range(rng.randrange(1, 40)):
        word = rng.choice(words)
        word = rng.choice([word, word, word.capitalize(), word.upper()])
        out.append(word + rng.choice(["", "", "", rng.choice(MARKS), rng.choice(MARKS) + rng.choice(MARKS)]))
        out.append(rng.choice(SPACES))
    return "".join(out).strip()


def strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from strings(each)


def main():
    count, seed = int(sys.argv[1]), int(sys.argv[2])
    rng = random.Random(seed)
    punkt = PunktTokenizer()
    scorer = RougeScorer(["rougeLsum"], use_stemmer=True)
    words = WORDS + model_words(str(find("tokenizers/punkt_tab/english/")))
    texts = [random_text(rng, words) for _ in range(count)]
    for name in sys.argv[3:]:
        for line in open(name, encoding="utf-8"):
            texts += [t.strip() for t in strings(json.loads(line)) if t.strip()]
    before = ""
    for text in texts:
        found = punkt.tokenize(text)
        lines = "\n".join(found)
        lsum = scorer.score(before, lines)["rougeLsum"].fmeasure if len(lines) < 20000 else 0
        print(json.dumps([text, found, lsum], ensure_ascii=True))
        before = lines if len(lines) < 20000 else ""


main()
