#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares tokenizers with llama.cpp's, token for token, and makes the frozen fixtures.

  oracle.py compare TOKENS FILE.gguf [--family NAME] [--random N] [TEXT-FILE...]
  oracle.py freeze BPE.gguf SENTENCEPIECE.gguf

By hand, in a virtual environment that has numpy, gguf and llama-cpp-python (which needs a
C++ compiler to install); TOKENS is the program tests/tokenizers/tokens of a build folder.
`compare` runs the texts of a file as a whole and line by line, texts that are hard, and
random ones; it tells the first differences and how many there are. `freeze` writes the folder
fixtures: the beginnings of two vocabularies, and what llama.cpp makes of texts with these, and with
all of the first, which is the model of tools/packages/models.
"""

import argparse
import ctypes
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import unicodedata

import gguf
import llama_cpp

ADD_SPECIAL, PARSE_SPECIAL = 1, 2

HARD = [
    b"", b" ", b"  ", b"\n", b"\t\n \r\n\x0b\x0c", b"a", b" a", b"a ", b"  a  b  ", b"\n\n\nx",
    b"Hello, world! It's 2023; I'll say 'HELLO' they'Re we'VE", b"don't DON'T 'S's'",
    "naïve café ÄÖÜß ŒŁ ǅ ﬀ İıſK".encode(), "Привет, мир! Ελληνικά Հայերեն ქართული".encode(),
    "مرحبا بالعالم ٠١٢٣ ۔ ، ؟".encode(), "สวัสดีชาวโลก ๑๒๓ ลุ้ น้ำ".encode(),
    "नमस्ते दुनिया १२३ বাংলা తెలుగు".encode(), "你好，世界。１２３ 日本語テキスト 한국어 ㄅㄆ".encode(),
    "😀👍🏽👨‍👩‍👧‍👦🇩🇪 e\u0301 a\u0308\u0323 \u200b\u200d\ufeff\u180e\u2028\u2029\x85\xa0\u3000x".encode(),
    b"\x00\x01\x02\x1f\x7f a\x00b", b"1234567890 12 345 6.78e9 1,234 0x1F 3/4 \xc2\xbd \xe2\x85\xa7",
    b"for (int i = 0; i < n; i++) {\n\t\tx[i] += a->b * (c | ~d) ^ e % f; // $HOME `id` #1\n}\r\n",
    b"<|im_start|>user\nHi<|im_end|>\n<|endoftext|></s><s> [INST] <|eot_id|> <unk>",
    b"<|im_start|", b"|im_end|>", b"<<|im_end|>>", b"<|im_end|><|im_end|>",
    b"\xff\xfe", b"a\x80b", b"\xc3", b"\xc3(", b"\xe2\x82", b"\xf0\x9f\x98", b"\xed\xa0\x80",
    b"\xc0\x80", b"\xe0\x80\xaf", b"\xf8\x88\x80\x80\x80", b"ok \xe2\x82\xac \xe2\x82 ok",
    b"x" * 300, b"ab" * 200, b" " * 77 + b"x", b"\n" * 40, b"aaaa " * 50, b"=" * 100,
    "ééééé".encode() * 30, "汉字".encode() * 60, ("a" * 31 + " " + "b" * 32 + " " + "c" * 33).encode(),
]


class Vocabulary:
    """llama.cpp's view of a file."""

    def __init__(self, path, family=None):
        parameters = llama_cpp.llama_model_default_params()
        parameters.vocab_only = True
        if family:
            overrides = (llama_cpp.llama_model_kv_override * 2)()
            overrides[0].tag = llama_cpp.LLAMA_KV_OVERRIDE_TYPE_STR
            overrides[0].key = b"tokenizer.ggml.pre"
            overrides[0].value.val_str = family.encode()
            parameters.kv_overrides = overrides
            self.overrides = overrides
        self.model = llama_cpp.llama_model_load_from_file(str(path).encode(), parameters)
        if not self.model:
            sys.exit(f"{path}: llama.cpp cannot open it")
        self.vocabulary = llama_cpp.llama_model_get_vocab(self.model)

    def encode(self, text, flags):
        ids = (ctypes.c_int32 * (len(text) * 3 + 8))()
        count = llama_cpp.llama_tokenize(self.vocabulary, text, len(text), ids, len(ids),
                                         bool(flags & ADD_SPECIAL), bool(flags & PARSE_SPECIAL))
        return list(ids[:count])


def random_texts(count, seed):
    """Strings of characters from many blocks, and of bytes. Characters that Unicode 14 does not have
    are left out: they are letters for llama.cpp, and not for a PCRE2 of that age."""
    draw = random.Random(seed)
    blocks = [(0x20, 0x7e), (0x20, 0x7e), (0x20, 0x7e), (9, 13), (0, 0x1f), (0xa0, 0x24f), (0x300, 0x36f),
              (0x370, 0x52f), (0x590, 0x6ff), (0x900, 0xdff), (0xe00, 0xeff), (0x1680, 0x1680),
              (0x2000, 0x206f), (0x2100, 0x27bf), (0x3000, 0x30ff), (0x4e00, 0x9fff), (0xac00, 0xd7a3),
              (0xfe00, 0xffef), (0x10000, 0x1f9ff), (0x1f300, 0x1f64f)]
    words = [b" the", b"'s", b"'LL", b"  ", b"\n\n", b" \n", b"123", b"<|im_end|>", b"<s>", b"</s>",
             b"<|endoftext|>", b"\r\n", b"\t", b"...", "\u2581".encode()]
    for _ in range(count):
        parts = []
        for _ in range(draw.randrange(1, 12)):
            kind = draw.random()
            if kind < 0.25:
                parts.append(draw.choice(words))
            elif kind < 0.93:
                low, high = draw.choice(blocks)
                chars = (chr(draw.randint(low, high)) for _ in range(draw.randrange(1, 8)))
                parts.append("".join(c for c in chars if unicodedata.category(c) != "Cn").encode())
            else:
                parts.append(bytes(draw.randrange(256) for _ in range(draw.randrange(1, 4))))
        yield b"".join(parts)


def ours(tool, path, family, records):
    data = b"".join(struct.pack("<II", len(t), f) + t for t, f in records)
    out = subprocess.run([tool, str(path)] + ([family] if family else []), input=data,
                         stdout=subprocess.PIPE, check=True).stdout
    at, result = 0, []
    for _ in records:
        (count,) = struct.unpack_from("<I", out, at)
        ids = list(struct.unpack_from(f"<{count}i", out, at + 4))
        at += 4 + 4 * count
        (size,) = struct.unpack_from("<I", out, at)
        result.append((ids, out[at + 4:at + 4 + size]))
        at += 4 + size
    return result


def above_unicode(text):
    """Whether llama.cpp ends the process: a character above U+10FFFF."""
    return any(text[i] == 0xf4 and text[i + 1] > 0x8f or text[i] in (0xf5, 0xf6, 0xf7)
               for i in range(len(text) - 1)) or text[-1:] in (b"\xf5", b"\xf6", b"\xf7")


def is_utf8(text):
    try:
        text.decode()
        return True
    except UnicodeDecodeError:
        return False


def compare(options):
    texts = list(HARD)
    for name in options.texts:
        data = pathlib.Path(name).read_bytes()
        texts += [data] + data.split(b"\n")[:2000]
    texts += random_texts(options.random, options.seed)
    records = [(t, f) for i, t in enumerate(texts) for f in ((0, 3) if i < len(HARD) else (i % 4,))
               if not above_unicode(t)]
    peer = Vocabulary(options.file, options.family)
    wrong = trips = 0
    for (text, flags), (ids, back) in zip(records, ours(options.tool, options.file, options.family, records)):
        want = peer.encode(text, flags)
        if ids != want:
            wrong += 1
            if wrong <= options.show:
                print(f"{text[:80]!r} flags {flags}: got {ids[:20]}, expected {want[:20]}")
        if not flags & ADD_SPECIAL and is_utf8(text) and back != text:
            trips += 1
            if trips <= options.show:
                print(f"{text[:80]!r}: decoded as {back[:80]!r}")
    print(f"{options.file} {options.family or ''}: {len(records)} texts, {wrong} differ, "
          f"{trips} come back as others")
    return 1 if wrong else 0


# --- fixtures ---------------------------------------------------------------------------

# One name of each family. llama.cpp's expressions for the last two know ASCII's capitals only.
FAMILIES = ["gpt-2", "smollm", "llama-bpe", "glm4", "dbrx", "qwen2", "qwen35", "deepseek-llm", "deepseek-coder",
            "deepseek-v3", "falcon", "bloom", "viking", "default", "tekken", "gpt-4o"]
ASCII_ONLY = ["tekken", "gpt-4o"]
FOLDER = pathlib.Path(__file__).parent / "fixtures"


def value_of(reader, key):
    field = reader.fields.get("tokenizer.ggml." + key)
    return field.contents() if field else None


def write_vocabulary(path, model, tokens, kinds, scores, merges, ids):
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model(model)
    writer.add_tokenizer_pre("smollm" if merges else "default")
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    if scores:
        writer.add_token_scores(scores)
    if merges:
        writer.add_token_merges(merges)
    for key, text in ids.items():
        writer.add_uint32(f"tokenizer.ggml.{key}_token_id", tokens.index(text))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()


def escape(text):
    return "".join(f"%{b:02x}" if b <= 0x20 or b in b"%\x7f" else chr(b) for b in text.encode("latin-1"))


def write_text(path, out):
    """The pairs of a GGUF file as text, for vocabulary_file.c."""
    lines = []
    for key, field in gguf.GGUFReader(path).fields.items():
        if not key.startswith("tokenizer."):
            continue
        value = field.contents()
        values = value if isinstance(value, list) else [value]
        kind = {str: "text", int: "integer", float: "float"}[type(values[0])]
        count = len(values) if isinstance(value, list) else "-"
        texts = (escape(v.encode().decode("latin-1")) if kind == "text" else str(v) for v in values)
        lines += [f"{key} {kind} {count}", *texts]
    out.write_bytes(("\n".join(lines) + "\n").encode("latin-1"))


def cut_bpe(source, path, num_merges):
    """Marks, bytes, and the first merges with their results."""
    reader = gguf.GGUFReader(source)
    all_tokens, kinds = value_of(reader, "tokens"), value_of(reader, "token_type")
    merges = value_of(reader, "merges")[:num_merges]
    kept = {merge.replace(" ", "", 1) if merge[0] != " " else merge for merge in merges}
    chosen = [i for i, t in enumerate(all_tokens) if kinds[i] == 3 or len(t) == 1 or t in kept]
    tokens = [all_tokens[i] for i in chosen] + ["  mark  "]
    write_vocabulary(path, "gpt2", tokens, [kinds[i] for i in chosen] + [4], None, merges,
                     {"bos": "<|im_start|>", "eos": "<|im_end|>"})


def cut_sentencepiece(source, path, count):
    reader = gguf.GGUFReader(source)
    lists = [value_of(reader, k) for k in ("tokens", "token_type", "scores")]
    singles = [i for i, t in enumerate(lists[0]) if i >= count and len(t) == 1]
    chosen = list(range(count)) + singles[:200]
    tokens, kinds, scores = ([values[i] for i in chosen] for values in lists)
    write_vocabulary(path, "llama", tokens, kinds, scores, None,
                     {"bos": "<s>", "eos": "</s>", "unknown": "<unk>"})


def hash_ids(ids):
    """FNV-1a of 32-bit words."""
    value = 0xcbf29ce484222325
    for i in ids:
        value = ((value ^ i) * 0x100000001b3) & (2**64 - 1)
    return value


def freeze(options):
    FOLDER.mkdir(exist_ok=True)
    work = pathlib.Path(tempfile.mkdtemp())
    bpe, sentencepiece = work / "bpe.gguf", work / "sentencepiece.gguf"
    cut_bpe(options.bpe, bpe, 600)
    cut_sentencepiece(options.sentencepiece, sentencepiece, 700)
    for path in (bpe, sentencepiece):
        write_text(path, FOLDER / (path.stem + ".txt"))
    texts = [t for t in HARD + list(random_texts(60, 7)) if t and not above_unicode(t)]
    texts.append(b"a  mark  b<|im_start|>  mark  ")
    lines = [f"text {i} {len(t)} {t.hex()}" for i, t in enumerate(texts)]
    for path, family in [(bpe, f) for f in FAMILIES] + [(sentencepiece, "-"), (pathlib.Path(options.bpe), "-")]:
        peer = Vocabulary(path, family if family != "-" else None)
        for i, text in enumerate(texts):
            if family in ASCII_ONLY and not text.isascii():
                continue
            ids = peer.encode(text, i % 4)
            name = path.name if path.parent != work else f"{path.stem}.txt"
            lines.append(f"ids {name} {family} {i} {i % 4} {len(ids)} {hash_ids(ids):016x}")
    (FOLDER / "ids.txt").write_text("\n".join(lines) + "\n")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("compare")
    command.add_argument("tool")
    command.add_argument("file")
    command.add_argument("texts", nargs="*")
    command.add_argument("--family")
    command.add_argument("--random", type=int, default=1000)
    command.add_argument("--seed", type=int, default=1)
    command.add_argument("--show", type=int, default=5)
    command.set_defaults(run=compare)
    command = commands.add_parser("freeze")
    command.add_argument("bpe")
    command.add_argument("sentencepiece")
    command.set_defaults(run=freeze)
    options = parser.parse_args()
    return options.run(options)


if __name__ == "__main__":
    sys.exit(main())
