#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tokenizers of folders (tokenizer.json) against ids of Hugging Face's library `tokenizers`.

  folders.py check TOKENS TENON     compares with the frozen ids of fixtures/folders.json.gz: folders, and files of GGUF made of
                                    these, whose "tokenizer.ggml.pre" is that of llama.cpp
  folders.py freeze                 makes these anew: needs `tokenizers` (0.23), and trains small vocabularies
  folders.py compare TOKENS [N]     N random texts more for each form, against `tokenizers` itself
"""

import gzip
import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
FIXTURE = HERE / "fixtures" / "folders.json.gz"
ADD_SPECIAL, PARSE_SPECIAL, HIDE = 1, 2, 256

# --- the texts --------------------------------------------------------------------------

WORDS = """
don't DON'T I'll WE'LL they're THEY'RE I've You'Ve he'd HE'D it's IT'S I'm I'M 'tis ''s 's's can't've o'clock rock'n'roll y'all'd've
it’s don’t ‘quoted’ “double” it'ſ x'ſt naïve café Ångström ÄÖÜß straße ǅungla ŒuvrE ﬀ ﬁn İstanbul ıx ſtar K Å
camelCase PascalCase snake_case SCREAMING_CASE kebab-case XMLHttpRequest iPhone15Pro a1b2c3 4you x86_64 utf8proc v1.2.3-rc.4 __init__
1 12 123 1234 12345 123456 1234567 1234567890 3.14159 1,234,567.89 0x1F 6.02e23 1/2 ½ ¾cup x² m³ ¹⁰ ⅧⅨ ①② ٠١٢٣٤ १२३ ๑๒๓ 一二三 ２０２４ 𝟘𝟙𝟚 12²3 7th №5
Привет ПРИВЕТ приветМир ё Ё Ελληνικά ΕΛΛΑΣ ς Հայերեն ქართული ᲥᲐᲠᲗᲣᲚᲘ Ωμέγα ʼn Ĳ ĳ ŉ
مرحبا بالعالم שלום עולם שָׁלוֹם اَلْعَرَبِيَّةُ ‏abc‏ ‫עברית‬ ۱۲۳ لا ﷺ
नमस्ते दुनिया বাংলা தமிழ் తెలుగు ಕನ್ನಡ മലയാളം ไทยภาษา ພາສາລາວ မြန်မာ ខ្មែរ བོད་ ᏣᎳᎩ አማርኛ ⵣⴰⵎ
你好，世界。 日本語テキスト ひらがな カタカナ ｶﾞｷﾞ 한국어 ㄱㄴㄷ ㄅㄆㄇ 汉字𠀀𠀁 「引用」 々〆〇 ㍻ ㈱ ﾊﾝｶｸ ー〜
각 한글 ᄀ 가 각 ᆨ 힣 ᅡ ᄒ
é é é̂ ệ ệ ệ Å Å Å q̣̇ q̣̇ s̩̍ ñ ñ Ω Ω ﬃ ẛ ẛ̣ ́a ̈ ️ a̷̛̱̘
😀 👍🏽 👨‍👩‍👧‍👦 🇩🇪🇫🇷 🏴󠁧󠁢󠁥󠁮󠁧󠁿 ❤️ ☺ 1️⃣ 🧑🏿‍🚀 👁️‍🗨️ 🫠 ©® ™ ⁉️ ♀ ➡️
""".split()

SENTENCES = [
    "", " ", "  ", "   ", " " * 7, " " * 16, "\n", "\n\n", "\n\n\n", "\r\n", "\r\n\r\n", "\r", "\t", "\t\t", " \n", "\n ", " \n ", "  \n  \n",
    "\n\t", "\t\n ", " \t ", "\x0b\x0c", "\x85", "\xa0", "\xa0\xa0 ", "\u2003", "\u3000", "\u3000\u3000x", "\u1680", "\u2028", "\u2029x",
    "\u200b", "\u200b\u200b", "\ufeff", "\ufeffx", "\u180e", "\u2060", "\xad", "a\xadb", "\u200d", "\u200c", "a\u200db",
    "a", " a", "a ", " a ", "  a", "a  ", "  a  b  ", "   a   b   c   ", "a\nb", "a \nb", "a\n b", "a  \n\n  b", "a\n\n\nb\n", "a\r\nb\r\n", "\na", "a\t b",
    "a \t\n b", "x\xa0y", "x \xa0 y", "x\u3000y", "x\u2028y", "x\x85y", "x\n\xa0\n y", "word  word", "word   word", "word\n\n  word", "\u2581", "\u2581a", " \u2581a",
    "a\u2581b", "\u2581\u2581", "a \u2581 b", "\u2581 \u2581", "  \u2581", "_ __ ___",
    "Hello, world!", "Hello , world !", "Hello,world!How are you?", "Wait... what?!", "(a) [b] {c} <d>", "a/b\\c|d", "\"quoted\" 'single' `code`",
    "!!!", "???!!!", " !!! ", "!\n", "!!\n\n", "...\r\n", "... \n", "a!/b", "!/\n/", "//\n//", "/* c */\n", "-->\n", "=\n=\n", "#!/bin/sh\n", "$5 +3 <=4 ^2 ~1 |x| `y`",
    "~~~", "++i; --j;", "a+b=c", "a<b>c", "100%", "50 €", "£3.50", "¥1000", "§5", "¶", "a·b", "°C", "a×b÷c", "∑∫√∞≠≤", "→←↑↓", "▁▂▃", "■□●○", "♠♣♥♦", "☃", "𝒜𝓑𝔠", "ℵℶ",
    "for (int i = 0; i < n; i++) {\n\t\tx[i] += a->b * (c | ~d) ^ e % f; // $HOME `id` #1\n}\r\n",
    "def f(x):\n    return {'a': x, \"b\": [1, 22, 333, 4444]}\n\n\nclass A:\n    pass\n",
    "<html>\n  <body class=\"x\">&amp; &#x27;</body>\n</html>", "{\"key\": [1.5e-10, null, true], \"k2\": \"\\u00e9\\n\"}",
    "SELECT * FROM t WHERE id=42 AND name LIKE '%x%';", "https://example.com/a?b=c&d=%20#frag", "user.name+tag@example.co.uk", "C:\\Users\\x\\file.txt", "2026-11-27T18:35:00Z",
    "+49 (0)30 123456", "192.168.0.1:8080", "::1", "3:2", "10^-3", "1e5", "1.", ".5", "-1", "+1", "1-2", "1 2 3", "12 345 678", "1,2,3", "9" * 50, "1" * 3 + " " + "2" * 4, "a1 b22 c333 d4444",
    "The quick brown fox jumps over the lazy dog.", "THE QUICK BROWN FOX", "The Quick-Brown_Fox", "tHe qUiCk", "aB", "Ab", "ABc", "aBC", "AbCdEf", "HTTPServer2Go", "ÀÉÎõü", "ÀBÉ", "éA", "Éa", "ǅa", "aǅ",
    "ʰʱ", "aʰB", "ªº", "Iª", "x̂Y", "X̂y", "数学A数学", "a数学b", "あAア", "漢字かなカナ漢字", "中文,标点。混合！English混合 text", "价格：１２３元", "第3章 第12节", "한국어 문장입니다. 두 번째!", "각각 각각", "나는 나는",
    "مرحبا، كيف حالك؟ ١٢٣٤", "שלום! מה שלומך? 123", "हिन्दी में १२३ और 456", "ภาษาไทย๑๒๓ 456", "Tiếng Việt có dấu: ờ ợ ể", "Tiếng Việt có dấu: ờ ợ ể",
    "Zażółć gęślą jaźń", "Příliš žluťoučký kůň", "İstanbul'da ÇĞİÖŞÜ", "L’été où naïf", "“Hi,” she said—‘no’…", "a—b–c‐d", "…", "a…b", "。。。", "！？", "「」『』【】", "（a）", "、、", "।॥", "۔،؟",
    "x" * 60, "ab" * 40, "abc" * 30, "a " * 40, " a" * 40, "\n" * 30, " " * 40 + "x", "x" + " " * 40, "=" * 80, "-" * 33 + "\n", "é" * 40, "e\u0301" * 40, "汉" * 40, "😀" * 20, "가" * 20, "\u1100\u1161" * 20, "123" * 20, "a1" * 30,
    "'" * 10, "''''s", "' s", "'\n", "s'", "S'", "'S", "x'S'", "'LL'RE'VE", "\u0301" * 12, "a" + "\u0301\u0323" * 10, "a" + "\u0323\u0301" * 10, "\u0344", "\u0958", "\u2126\u212a\u212b", "\uac00\u11a8", "\u1100\u1161\u11a8", "\uf900", "\ufb1d", "ﷺﷻ", "ﬃ①㎏Ａ㍿",
    "\x00", "a\x00b", "\x01\x02\x1f", "\x7f", "\x80\x9f", "\x1b[31mred\x1b[0m", "\x08\x08", "\ufffd", "a\ufffdb", "\ufffe\uffff", "\ue000", "\U000f0000", "\U0010ffff", "\u0378", "\U0001f9ff", "\u2fff", "\ud7ff", "\ue0ff", "Ã©", "â‚¬", "ï»¿", "%c3%28",
    "Ġ", "Ċ", "Ġa", "ĠĠ", "<0x0A>", "<0x41>", "<0xZZ>", "[UNK]", "<unk>", "<pad>", "[PAD7]",
]

# With tokens that are found before all else: see ADDED.
MARKED = [
    "<s>", "</s>", "<s></s>", "a<s>b", " <s> ", "<s> a </s> b", "<s>\n</s>\n", "x <|end|> y", "x<|end|>y", "x  <|end|>  y", "x\n<|end|>\n\ny", "<|end|><|end|>", "<|end|> <|end|>", "<|end", "|end|>", "<<|end|>>",
    "<|left|>", "a <|left|>b", "a  \n<|left|> b", "<s> <|left|>", "<s>  <|right|>  <|left|>", "a <|both|> b", "a \t\n<|both|>\u3000\xa0b", "<|both|>", " <|both|><|both|> ", "<|right|>\n\nx", "<|right|>  ", "x<|right|>y",
    "word", "a word b", "sword", "words", "word,word", "word_word", "wordé", "éword", "word\u0301", "1word", "word1", "-word-", "word word", "\u200dword", "Ⓐword", "汉word汉",
    "tag", "<tag>", "a<tag>b", "a <tag> b", "<TAG>", "<ta", "<|im_start|>user\nHi there<|im_end|>\n<|im_start|>assistant\n", "two words", "a two words b", "two  words", "two words</s>", "việt", "vie\u0323\u0302t", "một việt!", "VIỆT",
    "<s>việt</s>", "<extra><extra_1>", "<extra_", "<extra_12>", "<extra_1><extra_12>", "ab<extra>c", "\u2581word", "x\u2581word y", "  word", "the   word  is", "<s> word", "</s>word", "<|end|>'s", "<|end|>123 456", "<|left|>\u2003<|right|>", "<s> <tag>\n<|both|> x",
]

# text, id is what comes, flags: l(strip) r(strip) w(single_word) n(ormalized) s(pecial)
ADDED = [("<unk>", "s"), ("<s>", "s"), ("</s>", "s"), ("<|end|>", "s"), ("<|left|>", "sl"), ("<|right|>", "sr"), ("<|both|>", "slr"), ("word", "wn"), ("<tag>", "n"),
         ("<|im_start|>", "s"), ("<|im_end|>", "s"), ("two words", "n"), ("việt", "n"), ("<extra>", ""), ("<extra_1>", ""), ("<extra_12>", "")]


def texts():
    made = SENTENCES + MARKED + WORDS
    made = list(dict.fromkeys(made))
    return made


# --- the forms --------------------------------------------------------------------------

CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
LINES = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
BEFORE, BEHIND = r"[^\r\n\p{L}\p{N}]?", r"| ?[^\s\p{L}\p{N}]+[\r\n]*"
LLAMA3 = CONTRACTIONS + "|" + BEFORE + r"\p{L}+|\p{N}{1,3}" + BEHIND + LINES
QWEN2 = CONTRACTIONS + "|" + BEFORE + r"\p{L}+|\p{N}" + BEHIND + LINES
SEED_CODER = CONTRACTIONS + "|" + BEFORE.replace(r"\r\n", "\r\n") + r"\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}" + "\r\n]+" + LINES.replace(r"\r\n", "\r\n")
MINICPM5 = CONTRACTIONS + "|" + BEFORE + r"\p{L}+|\p{N}+" + BEHIND + LINES
QWEN35 = CONTRACTIONS + "|" + BEFORE + r"[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*" + LINES


def cased(ending, numbers):
    head, tail = (UPPER + "*" + LOWER + "+", UPPER + "+" + LOWER + "*")
    return f"{BEFORE}{head}{ending}|{BEFORE}{tail}{ending}|{numbers}" + r"| ?[^\s\p{L}\p{N}]+[\r\n/]*" + LINES


DEEPSEEK3 = (r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*"
             .replace('\\"', '"') + LINES)
DEEPSEEK = ["[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥\u0800-一가-\ud7ff]+"]
CASED_LETTERS = ("A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃")
DEEPSEEK_LLM = ["[\r\n]", r"\s?[" + CASED_LETTERS + "]+", r"\s?[!-/:-~！-／：-～‘-‟　-。]+", r"\s+$", DEEPSEEK[3]]
BLOOM = r" ?[^(\s|[.,!?…。，、।۔،])]+"


def split(expression, **kind):
    return {"type": "Split", "pattern": {"Regex": expression}, "behavior": "Isolated", "invert": False, **kind}


def letters(use_regex=False, add_prefix_space=False):
    return {"type": "ByteLevel", "add_prefix_space": add_prefix_space, "trim_offsets": True, "use_regex": use_regex}


def sequence(member, *items):
    return {"type": "Sequence", member: list(items)}


def cuts(*items):
    return sequence("pretokenizers", *items)


def post(begin=None, end=None):
    around = [[{"SpecialToken": {"id": t, "type_id": 0}}] if t else [] for t in (begin, end)]
    return {"type": "TemplateProcessing", "single": around[0] + [{"Sequence": {"id": "A", "type_id": 0}}] + around[1],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}], "special_tokens": (begin, end)}


DIGITS = {"type": "Digits", "individual_digits": True}
REPLACE = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
PREPEND = {"type": "Prepend", "prepend": "▁"}
PIECES = [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}]
STRIP = {"type": "Strip", "content": " ", "start": 1, "stop": 0}
BYTES = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True}


def metaspace(scheme, splits):
    return {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": splits}


# name: the parts of tokenizer.json, and what the model is trained with. "pre" is GGUF's name for the rule; None: it has none.
FORMS = {
    "gpt-2": {"pre_tokenizer": letters(True), "pre": "gpt-2"},
    "roberta": {"pre_tokenizer": letters(True, True), "pre": None, "post_processor": post("<s>", "</s>")},
    "llama-3": {"pre_tokenizer": cuts(split(LLAMA3), letters()), "ignore_merges": True, "pre": "llama-bpe",
                "post_processor": sequence("processors", BYTES, post("<s>"))},
    "phi-4": {"pre_tokenizer": cuts(split(LLAMA3, behavior="Removed", invert=True), letters()), "pre": "smaug-bpe"},
    "qwen2": {"normalizer": {"type": "NFC"}, "pre_tokenizer": cuts(split(QWEN2), letters()), "pre": "qwen2", "post_processor": BYTES},
    "qwen3.5": {"normalizer": {"type": "NFC"}, "pre_tokenizer": cuts(split(QWEN35), letters()), "pre": "qwen35"},
    "seed-coder": {"pre_tokenizer": cuts(split(SEED_CODER), letters()), "pre": "seed-coder"},
    "minicpm5": {"pre_tokenizer": cuts(split(r"\p{N}{1,3}"), split(MINICPM5), letters()), "ignore_merges": True, "pre": "minicpm5"},
    "phi-4-mini": {"pre_tokenizer": cuts(split(cased(CONTRACTIONS + "?", r"\p{N}{1,3}")), letters()), "pre": "gpt-4o"},
    "tekken": {"pre_tokenizer": cuts(split(cased("", r"\p{N}")), letters()), "ignore_merges": True, "pre": "tekken", "post_processor": post("<s>")},
    "deepseek-v3": {"normalizer": sequence("normalizers"), "pre": "deepseek-v3", "post_processor": post("<s>"),
                    "pre_tokenizer": cuts(split(r"\p{N}{1,3}"), split("[一-龥぀-ゟ゠-ヿ]+"), split(DEEPSEEK3), letters())},
    "deepseek-coder": {"pre_tokenizer": cuts(*map(split, DEEPSEEK), DIGITS, letters()), "pre": "deepseek-coder"},
    "deepseek-llm": {"pre_tokenizer": cuts(*map(split, DEEPSEEK_LLM), DIGITS, letters()), "pre": "deepseek-llm"},
    "starcoder": {"normalizer": {"type": "NFKC"}, "pre_tokenizer": cuts(DIGITS, letters(True)), "pre": "smollm"},
    "falcon": {"pre_tokenizer": cuts({"type": "Punctuation", "behavior": "Contiguous"}, letters(True), {"type": "Digits", "individual_digits": False},
                                     split("[0-9][0-9][0-9]")), "pre": "falcon"},
    "bloom": {"normalizer": {"type": "NFD"}, "pre_tokenizer": cuts(split(BLOOM), letters()), "pre": "bloom"},
    "gemma": {"normalizer": REPLACE, "pre_tokenizer": {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False},
              "decoder": sequence("decoders", *PIECES), "byte_fallback": True, "fuse_unk": True, "post_processor": post("<s>"), "pre": "default"},
    "llama-2": {"normalizer": sequence("normalizers", PREPEND, REPLACE), "decoder": sequence("decoders", *PIECES, STRIP), "byte_fallback": True,
                "fuse_unk": True, "post_processor": post("<s>"), "pre": "default"},
    "mistral": {"pre_tokenizer": metaspace("first", False), "decoder": sequence("decoders", *PIECES, STRIP), "byte_fallback": True, "fuse_unk": True,
                "post_processor": post("<s>"), "pre": "default"},
    "metaspace": {"normalizer": {"type": "NFKD"}, "pre_tokenizer": metaspace("always", True), "decoder": metaspace("always", True), "fuse_unk": True,
                  "pre": "default"},
    "metaspace-alone": {"pre_tokenizer": metaspace("never", False), "decoder": metaspace("never", False), "pre": "default"},
}


def is_pieces(form):
    return form["pre"] == "default"


# --- folders ----------------------------------------------------------------------------

CONFIG = {"model_type": "llama", "hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 4,
          "num_key_value_heads": 2, "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "vocab_size": 6}


def write_folder(path, tokenizer):
    """A folder with the tokenizer alone, and one array."""
    header = json.dumps({"model.norm.weight": {"dtype": "F32", "shape": [8], "data_offsets": [0, 32]}}).encode()
    path.mkdir()
    (path / "config.json").write_text(json.dumps(CONFIG))
    (path / "tokenizer.json").write_text(json.dumps(tokenizer))
    (path / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(32))


def run_tokens(tool, folder, strings):
    """(ids, decoded text) of each, whole prompts with marks."""
    records = b"".join(struct.pack("<II", len(t.encode()), ADD_SPECIAL | PARSE_SPECIAL | HIDE) + t.encode() for t in strings)
    done = subprocess.run([tool, str(folder)], input=records, capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(f"{folder}: {done.stderr.decode()}")
    at, results, out = 0, [], done.stdout
    for _ in strings:
        (count,) = struct.unpack_from("<I", out, at)
        ids = list(struct.unpack_from(f"<{count}i", out, at + 4))
        at += 4 + 4 * count
        (size,) = struct.unpack_from("<I", out, at)
        results.append((ids, out[at + 4:at + 4 + size].decode("utf-8", "replace")))
        at += 4 + size
    return results


# --- freezing ---------------------------------------------------------------------------

def trained(form, words):
    """The form's tokenizer.json with a small vocabulary, learnt from texts of this tree."""
    import tokenizers  # pylint: disable=import-outside-toplevel
    parts = {k: v for k, v in form.items() if k in ("normalizer", "pre_tokenizer", "decoder")}
    parts.setdefault("decoder", BYTES)
    model = {"type": "BPE", "dropout": None, "unk_token": "<unk>" if is_pieces(form) else None, "continuing_subword_prefix": None,
             "end_of_word_suffix": None, "fuse_unk": form.get("fuse_unk", False), "byte_fallback": form.get("byte_fallback", False),
             "ignore_merges": form.get("ignore_merges", False), "vocab": {}, "merges": []}
    bare = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None, "pre_tokenizer": None,
            "post_processor": None, **parts, "model": model}
    teacher = tokenizers.Tokenizer.from_str(json.dumps(bare))
    alphabet = ["▁"] if is_pieces(form) else tokenizers.pre_tokenizers.ByteLevel.alphabet()
    first = [t for t, f in ADDED if "s" in f] + ([f"<0x{b:02X}>" for b in range(256)] if form.get("byte_fallback") else [])
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=len(first) + len(alphabet) + (700 if is_pieces(form) else 500), show_progress=False,
                                             special_tokens=first, initial_alphabet=alphabet, limit_alphabet=300)
    teacher.train_from_iterator(words, trainer)
    made = json.loads(teacher.to_str())
    vocab = made["model"]["vocab"]
    if form.get("ignore_merges"):  # words that merges do not make
        for word in ("Ġquick", "Hello", "Ġ\u00c3\u00a9t\u00c3\u00a9", "Ġ[INST", "123"):
            vocab.setdefault(word, len(vocab))
    added = []
    for text, flags in ADDED:
        added.append({"id": vocab.get(text, len(vocab) + sum(t["content"] not in vocab for t in added)), "content": text, "single_word": "w" in flags,
                      "lstrip": "l" in flags, "rstrip": "r" in flags, "normalized": "n" in flags, "special": "s" in flags})
    made["added_tokens"] = sorted(added, key=lambda t: t["id"])
    made["post_processor"] = finished(form.get("post_processor"), vocab)
    return made


def finished(part, vocab):
    """A post-processor with the ids of its tokens."""
    if part and part["type"] == "Sequence":
        return {**part, "processors": [finished(p, vocab) for p in part["processors"]]}
    if part and "special_tokens" in part:
        return {**part, "special_tokens": {t: {"id": t, "ids": [vocab[t]], "tokens": [t]} for t in part["special_tokens"] if t}}
    return part


def lessons():
    root = HERE.parents[1]
    lines = [line for name in ("docs/models.md", "docs/concepts.md", "README.md") for line in (root / name).read_text().splitlines()[:150]]
    return lines + [t for t in texts() for _ in range(3) if "\0" not in t]


def answers(tokenizer, strings):
    """What `tokenizers` gives: ids, and the texts that come back as others."""
    encoded = [tokenizer.encode(t).ids for t in strings]
    back = [tokenizer.decode(ids, skip_special_tokens=True) for ids in encoded]
    return encoded, {str(i): b for i, (t, b) in enumerate(zip(strings, back)) if b != t}


def freeze():
    import tokenizers  # pylint: disable=import-outside-toplevel
    strings, frozen = texts(), []
    for name, form in FORMS.items():
        made = trained(form, lessons())
        peer = tokenizers.Tokenizer.from_str(json.dumps(made))
        ids, back = answers(peer, strings)
        assert len(made["model"]["merges"]) > 100, name
        frozen.append({"name": name, "pre": form["pre"], "tokenizer": made, "ids": ids, "back": back})
        print(f"{name}: {len(made['model']['vocab'])} tokens, {sum(map(len, ids))} ids, {len(back)} texts come back as others")
    data = json.dumps({"texts": strings, "forms": frozen}, ensure_ascii=False, separators=(",", ":")).encode()
    FIXTURE.write_bytes(gzip.compress(data, mtime=0))
    print(f"{len(strings)} texts, {len(FORMS)} forms, {FIXTURE.stat().st_size} bytes")


# --- comparing --------------------------------------------------------------------------

def differences(tool, folder, strings, ids, back):
    wrong = []
    for i, (got, text) in enumerate(run_tokens(tool, folder, strings)):
        if got != ids[i]:
            wrong.append(f"{strings[i][:60]!r}: got {got[:24]}, expected {ids[i][:24]}")
        elif text != back.get(str(i), strings[i]):
            wrong.append(f"{strings[i][:60]!r}: decoded as {text[:60]!r}, expected {back.get(str(i), strings[i])[:60]!r}")
    return wrong


def report(number, name, wrong):
    print(f"{'not ' if wrong else ''}ok {number} - {name}")
    for line in wrong[:5]:
        print(f"# {line}")
    if wrong:
        print(f"# {len(wrong)} texts differ")
    return bool(wrong)


def load():
    return json.loads(gzip.decompress(FIXTURE.read_bytes()))


def convert(tenon, folder, pre):
    """A folder as a file of GGUF, or None where GGUF has no name for its rule; and what is wrong."""
    path = folder.with_suffix(".gguf")
    done = subprocess.run([tenon, "model", "convert", folder, path], capture_output=True, text=True, check=False)
    if pre is None:
        return None, [] if done.returncode and "GGUF has no name for how its tokenizer cuts text" in done.stderr else [done.stderr]
    if done.returncode:
        return None, [done.stderr]
    shown = subprocess.run([tenon, "model", "show", path, "--json"], capture_output=True, text=True, check=True)
    got = json.loads(shown.stdout)["tokenizer"]["pre"]
    return path, [] if got == pre else [f"tokenizer.ggml.pre is {got}, expected {pre}"]


def check(tool, tenon):
    frozen, failed = load(), False
    print(f"1..{2 * len(frozen['forms'])}")
    with tempfile.TemporaryDirectory() as work:
        for i, form in enumerate(frozen["forms"]):
            folder = pathlib.Path(work) / form["name"]
            write_folder(folder, form["tokenizer"])
            failed |= report(2 * i + 1, form["name"], differences(tool, folder, frozen["texts"], form["ids"], form["back"]))
            path, wrong = convert(tenon, folder, form["pre"])
            wrong += differences(tool, path, frozen["texts"], form["ids"], form["back"]) if path else []
            failed |= report(2 * i + 2, form["name"] + " as GGUF", wrong)
    return failed


def random_texts(count):
    """Pieces of the hard texts, put together anew."""
    draw = random.Random(1)
    pieces = [t for t in texts() if t]
    for _ in range(count):
        parts = []
        for _ in range(draw.randrange(1, 6)):
            piece = draw.choice(pieces)
            begin = draw.randrange(len(piece))
            parts.append(piece[begin:begin + draw.randrange(1, 12)] + draw.choice(["", "", " ", "\n", "  "]))
        yield "".join(parts)


def compare(tool, count):
    import tokenizers  # pylint: disable=import-outside-toplevel
    strings, failed = list(random_texts(count)), False
    with tempfile.TemporaryDirectory() as work:
        for i, form in enumerate(load()["forms"]):
            folder = pathlib.Path(work) / form["name"]
            write_folder(folder, form["tokenizer"])
            ids, back = answers(tokenizers.Tokenizer.from_str(json.dumps(form["tokenizer"])), strings)
            failed |= report(i + 1, form["name"], differences(tool, folder, strings, ids, back))
    return failed


def main():
    command, *rest = sys.argv[1:]
    if command == "freeze":
        return freeze()
    return check(*rest) if command == "check" else compare(rest[0], int(rest[1]) if len(rest) > 1 else 1000)


if __name__ == "__main__":
    sys.exit(main())
