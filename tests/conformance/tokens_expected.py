"""Counts and prompts as the Hugging Face libraries make them: one JSON case a line, for tutti-token-check.

Usage: tokens_expected.py MODEL_FOLDER SOURCE_TREE >cases.jsonl
"""

import json
import pathlib
import random
import sys

from transformers import PreTrainedTokenizerFast

WORDS = ("the quick brown fox naïve café Übergröße straße привет мир こんにちは 世界 你好 안녕 שלום عالم नमस्ते 👍 👨‍👩‍👧‍👦 🇩🇪 e\u0301 "
         "\u200b \ufeff \u00a0 don't I'll we've 1234567 3.14159 0x1F <|im_start|> <s> </s> [INST] ``` {} [] () \\n \t").split(" ")
CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": {"city": "Köln", "days": 3, "exact": True}}}
TOOLS = [{"type": "function", "function": {
    "name": "weather", "description": "Tells the <weather> & \"more\".",
    "parameters": {"type": "object", "properties": {"city": {"type": "string", "description": "where"}, "days": {"type": "integer", "default": 1.0}},
                   "required": ["city"]}}}]


def texts(tree):
    draw = random.Random(7)
    yield from ("", " ", "\n", "\n\n\n", "a", " a", "a ", "  a  b   c\t\td\r\n", "\x00\x01", "é", "ﬁ①²", "A" * 3000, " " * 500, "0" * 77)
    for path in sorted(pathlib.Path(tree).glob("docs/*.md")):
        yield from path.read_text().split("\n\n")
    for path in sorted(pathlib.Path(tree).glob("common/base/*.cc")):
        yield path.read_text()
    for _ in range(900):
        yield draw.choice(("", " ", "\n")).join(draw.choice(WORDS) for _ in range(draw.randrange(1, 40)))
    for _ in range(600):
        top = draw.choice((0x7F, 0x24F, 0x3000, 0xD7FF, 0x1FAFF))
        chars = (draw.randrange(1, top) for _ in range(draw.randrange(1, 60)))
        yield "".join(chr(c) for c in chars if not 0xD800 <= c <= 0xDFFF)


def talks():
    say = lambda role, content, **more: {"role": role, "content": content, **more}
    system, user = say("system", "Be brief.\n  "), say("user", "  Hi, what is 2+2?\n")
    yield [user], None
    yield [system, user], None
    yield [system, user, say("assistant", "4"), say("user", "And “3”?")], None
    yield [user, say("assistant", "4", reasoning_content="2 and 2\nis 4"), say("user", "sure?")], None
    yield [system, say("user", "Rain?")], TOOLS
    yield [say("user", "Rain?"), say("assistant", "", tool_calls=[CALL]), say("tool", '{"rain": true}', tool_call_id="c1"),
           say("assistant", "Yes."), say("user", "Thanks")], TOOLS
    yield [say("user", ""), say("assistant", "")], None


def main(folder, tree):
    folder = pathlib.Path(folder)
    config = json.loads((folder / "tokenizer_config.json").read_text()) if (folder / "tokenizer_config.json").exists() else {}
    specials = {k: v for k, v in config.items() if k in ("bos_token", "eos_token", "unk_token", "pad_token") and v}
    specials = {k: v["content"] if isinstance(v, dict) else v for k, v in specials.items()}
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), **specials)
    # As the files say: this class would add what is missing, which a count must not depend on.
    raw = tokenizer.backend_tokenizer
    raw.no_truncation()
    raw.no_padding()
    template = config.get("chat_template")
    if (folder / "chat_template.jinja").exists():
        template = (folder / "chat_template.jinja").read_text()
    if isinstance(template, list):
        template = next(t["template"] for t in template if t["name"] == "default")
    tokenizer.chat_template = template
    count = lambda text: len(raw.encode(text, add_special_tokens=False).ids)
    emit = lambda **case: print(json.dumps(case, ensure_ascii=False))

    for text in texts(tree):
        emit(text=text, tokens=count(text))
    if not template:
        return

    def render(messages, tools, generation):
        return tokenizer.apply_chat_template(messages, tools=tools, tokenize=False, add_generation_prompt=generation)

    for messages, tools in talks():
        for generation in (False, True):
            try:
                prompt = render(messages, tools, generation)
            except Exception as error:  # templates refuse in many ways; so must ours
                emit(messages=messages, tools=tools, generation=generation, fails=str(error))
                continue
            emit(messages=messages, tools=tools, generation=generation, prompt=prompt, tokens=count(prompt))

    made = lambda **answer: count(render([{"role": "user", "content": ""}, {"role": "assistant", **answer}], None, False))
    for answer in ({"content": "It is 4.", "reasoning_content": "2+2"}, {"content": "", "tool_calls": [CALL]},
                   {"content": "Look", "reasoning_content": "hm", "tool_calls": [CALL, CALL]}):
        try:
            tokens = max(0, made(**answer) - made(content=""))
        except Exception:
            pieces = [answer["content"], answer.get("reasoning_content", ""), ""]
            if "tool_calls" in answer:
                continue  # how its pieces are written out is no matter of this library
            tokens = count("\n".join(piece for piece in pieces if piece))
        emit(reply=answer, tokens=tokens)


main(*sys.argv[1:])
