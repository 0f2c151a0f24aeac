# SPDX-License-Identifier: MIT
"""`tenon generate`, `chat`, `perplexity` and `bench llm` on a small model that this test writes."""

import functools
import json
import math
import os
import pathlib
import random
import re
import signal
import struct
import subprocess
import xml.etree.ElementTree

import tap
from tap import refused, tenon

WIDTH, INNER, HEADS, LAYERS = 16, 32, 2, 2
LETTERS = [chr(c) for c in range(ord("a"), ord("z") + 1)]
WORDS = LETTERS + ["\u0120", "\u010a", ".", ",", "'", "<end>"]
TEXT = "once upon a time there was a model of letters."


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def pair(key, value):
    if isinstance(value, str):
        return text(key) + struct.pack("<I", 8) + text(value)
    if isinstance(value, float):
        return text(key) + struct.pack("<If", 6, value)
    if isinstance(value, int):
        return text(key) + struct.pack("<II", 4, value)
    kind = 5 if value and isinstance(value[0], int) else 8
    items = b"".join(struct.pack("<i", v) if kind == 5 else text(v) for v in value)
    return text(key) + struct.pack("<IIQ", 9, kind, len(value)) + items


# The templates of SmolLM2 and of Mistral 7B v0.2, which are known.
MISTRAL = ("{{ bos_token }}{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
           "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
           "{% if message['role'] == 'user' %}{{ '[INST] ' + message['content'] + ' [/INST]' }}{% elif message['role'] == "
           "'assistant' %}{{ message['content'] + eos_token}}{% else %}{{ raise_exception('Only user and assistant roles are "
           "supported!') }}{% endif %}{% endfor %}")
SMOLLM = ("{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\nYou are "
          "a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + "
          "message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}"
          "{{ '<|im_start|>assistant\n' }}{% endif %}")


def gguf(path, spread, endless=False, wrong=(None, 0.0), other=None, chat=None, context=128):
    """Writes a Llama of random weights up to `spread`; of 0 all tokens are equally probable.

    Endless replies have no end of text and no end of line. `wrong`: an array, and its first element.
    `other`: words of the vocabulary in place of others.
    """
    other = {"\u010a": "-", "<end>": "+"} if endless else other or {}
    words = [other.get(word, word) for word in WORDS]
    pairs = {"general.architecture": "llama", "general.name": "letters", "llama.block_count": LAYERS,
             "llama.embedding_length": WIDTH, "llama.feed_forward_length": INNER, "llama.context_length": context,
             "llama.attention.head_count": HEADS, "llama.attention.layer_norm_rms_epsilon": 1e-5,
             "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "gpt-2", "tokenizer.ggml.tokens": words,
             "tokenizer.ggml.token_type": [1] * (len(WORDS) - 1) + [3], "tokenizer.ggml.merges": ["a b"]}
    if chat:
        pairs["tokenizer.chat_template"] = chat
    if not endless:
        pairs["tokenizer.ggml.eos_token_id"] = len(WORDS) - 1
    shapes = {"token_embd.weight": (len(WORDS), WIDTH), "output_norm.weight": (WIDTH,)}
    for i in range(LAYERS):
        shapes |= {f"blk.{i}.attn_{x}.weight": (WIDTH, WIDTH) for x in ("q", "k", "v", "output")}
        shapes |= {f"blk.{i}.{x}_norm.weight": (WIDTH,) for x in ("attn", "ffn")}
        shapes |= {f"blk.{i}.ffn_{x}.weight": (INNER, WIDTH) for x in ("gate", "up")}
        shapes[f"blk.{i}.ffn_down.weight"] = (WIDTH, INNER)
    draw, infos, data = random.Random(5), b"", b""
    for name, shape in shapes.items():
        infos += text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape), 0, len(data))
        values = [1.0 if len(shape) == 1 else draw.uniform(-spread, spread) for _ in range(math.prod(shape))]
        if name == wrong[0]:
            values[0] = wrong[1]
        data += struct.pack(f"<{len(values)}f", *values)
        data += bytes(-len(data) % 32)
    head = struct.pack("<4sIQQ", b"GGUF", 3, len(shapes), len(pairs))
    head += b"".join(pair(k, v) for k, v in pairs.items()) + infos
    pathlib.Path(path).write_bytes(head + bytes(-len(head) % 32) + data)


def out(*words, **options):
    return tenon(*words, **options).stdout


def failed(*words, saying, **options):
    """The command fails, and its last line says why; lines before it may tell the model or steps."""
    done = subprocess.run([tap.TENON, *words], env=tap.ENVIRONMENT, capture_output=True, text=True, timeout=300, check=False, **options)
    last = done.stderr.splitlines()[-1]
    assert done.returncode == 1 and last.startswith("tenon: ") and saying in last, (words, done)
    return done


def beside_models(test):
    """The test, in its folder of its own, with the files that it uses."""
    @functools.wraps(test)
    def with_files():
        gguf("letters.gguf", 1.0)
        gguf("equal.gguf", 0.0)
        gguf("endless.gguf", 0.0, endless=True)
        pathlib.Path("text").write_text(TEXT)
        return test()
    return with_files


def generating_is_repeated_by_its_seed():
    def drawn(seed, *more):
        return out("generate", "letters.gguf", "once", "upon", "--tokens", "30", "-t", "2", "--seed", seed, *more)
    assert drawn("1") == drawn("1") != drawn("2") and drawn("1").startswith("once upon")
    assert drawn("1", "--top-p", "0") == drawn("1", "--top-p", "1") == drawn("1") != drawn("1", "--top-p", "0.01") # 0 and 1: all
    first = out("generate", "letters.gguf", "once", "--tokens", "12", "-t", "2", "--seed", "3")
    if len(first) > 8:
        cut = out("generate", "letters.gguf", "once", "--tokens", "12", "-t", "2", "--seed", "3", "--stop", first[6:8])
        assert cut == first[:4 + first[4:].index(first[6:8])], (first, cut)
    # Whatever came is not drawn again, so that all are different.
    for penalty in ("--presence", "--frequency"):
        got = out("generate", "letters.gguf", "--raw", "a", "--tokens", "20", penalty, "1000", "--bias", "31=-inf")
        assert len(set(got)) == len(got) == 21, got
    refused("generate", "letters.gguf", "a", "--presence", "1e9", saying="presence is 1e+09, expected -1e+06 to 1e+06")


def text_is_held_to_schemas_and_grammars():
    # The vocabulary has letters, a space, a line and ".,'": no JSON but true, false and null.
    pathlib.Path("schema.json").write_text('{"enum": [true, null]}')
    pathlib.Path("rules.gbnf").write_text('root ::= "a" [b-d]{3} "."')
    for seed in "12":
        drawn = ("generate", "letters.gguf", "once", "-t", "2", "--seed", seed)
        assert json.loads(out(*drawn, "--json-schema", "schema.json")) in (True, None)
        text = out(*drawn, "--grammar", "rules.gbnf")
        assert len(text) == 5 and text[0] == "a" and set(text[1:4]) <= set("bcd") and text[4] == ".", text
    assert out("chat", "letters.gguf", "--template", "chatml", "--grammar", "rules.gbnf", input="hello\n")[0] == "a"
    pathlib.Path("wrong.gbnf").write_text("root ::= \"a\n")
    refused("generate", "letters.gguf", "a", "--grammar", "wrong.gbnf", saying="wrong.gbnf: grammar: line 1, column 12: got")
    refused("generate", "letters.gguf", "a", "--grammar", "rules.gbnf", "--json-schema", "schema.json", saying="one of them")


def a_real_model_writes_json():
    models = pathlib.Path(os.environ.get("TEST_MODELS", "/nowhere"))
    real = models / "SmolLM2-135M-Instruct.Q4_1.gguf"
    if not real.exists():
        return "run tools/packages/models"
    pathlib.Path("person.json").write_text(json.dumps({
        "properties": {"name": {"type": "string", "maxLength": 20}, "born": {"type": "integer", "minimum": 1700, "maximum": 1900},
                       "tags": {"items": {"enum": ["poet", "engineer"]}, "minItems": 1, "maxItems": 2}},
        "required": ["name", "born", "tags"]}))
    for seed in "12":
        got = json.loads(out("generate", str(real), "Ada Lovelace as JSON:", "--json-schema", "person.json", "-t", "1", "--seed", seed))
        assert list(got) == ["name", "born", "tags"] and 1700 <= got["born"] <= 1900 and len(got["name"]) <= 20, got
    return None


def tokens_and_embeddings_are_printed_as_json():
    got = json.loads(out("generate", "letters.gguf", "once", "--tokens", "3", "--json", "--top", "2", "--bias", "31=-inf"))
    assert len(got["tokens"]) == 3 and got["text"] == "".join(t["text"] for t in got["tokens"]), got
    assert all(t["id"] != 31 and len(t["top"]) == 2 and t["log_probability"] < 0 for t in got["tokens"]), got
    always = json.loads(out("generate", "letters.gguf", "once", "--tokens", "3", "--json", "--bias", "2=99,31=-inf"))
    assert always["text"] == "ccc", always
    refused("generate", "letters.gguf", "a", "--bias", "x=1", saying="--bias is 'x=1', expected TOKEN=NUMBER")
    refused("generate", "letters.gguf", "a", "--top", "2", status=2, saying="expected --json with it")
    rows = json.loads(out("embed", "letters.gguf", "a cat", "a dog", "a cat"))
    assert [r["text"] for r in rows] == ["a cat", "a dog", "a cat"] and rows[0]["embedding"] == rows[2]["embedding"]
    assert all(abs(sum(x * x for x in r["embedding"]) - 1) < 1e-5 and len(r["embedding"]) == WIDTH for r in rows)
    last = json.loads(out("embed", "letters.gguf", "a cat", "--pooling", "last", "--plain"))[0]["embedding"]
    assert last != rows[0]["embedding"] and abs(sum(x * x for x in last) - 1) > 1e-3
    refused("embed", "letters.gguf", "a", "--pooling", "most", status=2, saying="expected mean, last or cls")


def what_ran_is_told():
    told = tenon("generate", "letters.gguf", "once", "--tokens", "3").stderr
    assert "4 tokens of prompt" in told and "letters, llama: 2 layers of 16" in told and " on " in told, told


def layers_are_placed_as_asked():
    told = tenon("generate", "letters.gguf", "once", "--tokens", "3", "--split", "2").stderr
    assert "on cpu-blas:0 (" in told and "layers 0 to" not in told, told
    where = ("model", "show", "letters.gguf", "--where")
    shown = out(*where)
    assert shown.startswith("cpu-blas:0 (") and "layers 0 to 1, " in shown, shown
    assert "caches of f16, for 1 sequence of 128 positions" in shown, shown
    # Nothing is computed, so a device that cannot compute will do.
    both = {"TENON_BACKEND": "cpu-blas,null"}
    more = ("--split", "1,1", "--sequences", "3", "--context", "64", "--cache", "f32")
    parts = json.loads(out(*where, *more, "--json", env=both))
    assert [(p["device"], p["first"], p["end"]) for p in parts] == [("cpu-blas:0", 0, 1), ("null:0", 1, 2)], parts
    caches = 3 * 2 * 4 * WIDTH * (64 + 8)  # sequences, keys and values, bytes, positions with padding
    layer = 4 * (4 * WIDTH * WIDTH + 3 * WIDTH * INNER + 2 * WIDTH)
    assert [p["cache_bytes"] for p in parts] == [caches, caches], parts
    table = 4 * len(WORDS) * WIDTH  # the embedding, which is the output, too
    assert [p["weight_bytes"] for p in parts] == [layer + table, layer + table + 4 * WIDTH], parts
    assert "null:0 (" in out(*where, "--split", "0,2", env=both)
    for words in (("generate", "letters.gguf", "a", "--split", "1,2"), (*where, "--split", "1,2")):
        refused(*words, env=both, saying="a split of '1,2' for 2 layers on 2 devices: it has more layers than the model")
    refused("model", "show", "letters.gguf", "--split", "2", status=2, saying="--split are for --where")
    refused(*where, "--arrays", status=2, saying="--where: expected no --arrays")
    refused("bench", "--split", "2", status=2, saying="are for 'bench llm'")


def equal_probabilities_have_the_perplexity_of_their_number():
    got = json.loads(out("perplexity", "equal.gguf", "text", "--json", "--context", "20"))
    assert abs(got["perplexity"] - len(WORDS)) < 1e-3 and got["window"] == 20, got
    assert got["tokens"] == len(TEXT) - math.ceil(len(TEXT) / 20), got
    other = json.loads(out("perplexity", "letters.gguf", "text", "--json"))
    assert abs(other["perplexity"] / math.exp(other["nats"]) - 1) < 1e-4 and other["tokens"] == len(TEXT) - 1
    refused("perplexity", "letters.gguf", "/nowhere/at/all", saying="/nowhere/at/all: ")


def a_chat_replies_to_each_line():
    words = ["chat", "letters.gguf", "--template", "chatml", "--tokens", "5", "--context", "120"]
    both = out(*words, input="hello\nagain\n")
    assert both.count("\n") == 2 and out(*words, input="hello\n") == both[:both.index("\n") + 1], both
    assert out(*words, input="") == ""
    refused(*words[:3], "jabber", input="hello\n", saying="no template 'jabber'; known are ")
    refused("chat", "letters.gguf", input="hello\n", saying=", kimi-k2, by --template NAME")


def another_template_than_the_known_is_refused():
    """One mark in common is not enough: a template that is like a known one may write another text."""
    gguf("known.gguf", 1.0, chat=SMOLLM + "\n")
    gguf("unknown.gguf", 1.0, chat=SMOLLM.replace("helpful", "hopeful"))
    words = ["--tokens", "5", "--context", "200", "--temperature", "0"]
    known = tenon("chat", "known.gguf", *words, input="hello\n")
    assert "warning" not in known.stderr, known.stderr
    refused("chat", "unknown.gguf", *words, input="hello\n", saying="its template of chats is none that is known")
    refused("chat", "unknown.gguf", *words, input="hello\n", saying=", by --template NAME")

    gguf("mistral.gguf", 1.0, chat=MISTRAL, other={"<end>": "</s>"})
    gguf("ended.gguf", 1.0, chat=MISTRAL)
    assert "warning" not in tenon("chat", "mistral.gguf", *words, input="hello\n").stderr
    refused("chat", "mistral.gguf", *words, "--system", "a", input="hello\n", saying="no place")
    refused("chat", "ended.gguf", *words, input="hello\n", saying="the end token of the file, '<end>', where '</s>' is expected")

    def warned(model, form, *more):
        done = tenon("chat", model, *words, "--template", form, *more, input="hello\n")
        return [line for line in done.stderr.splitlines() if line.startswith("tenon: warning: ")]
    assert warned("letters.gguf", "chatml") == []
    assert warned("known.gguf", "chatml", "--system", "a") == []
    for model, form, says in (("unknown.gguf", "chatml", "is not known: the text that --template chatml makes may not be"),
                              ("known.gguf", "gemma", "makes another text than --template gemma"),
                              ("known.gguf", "chatml", "makes another text")): # its own system message
        lines = warned(model, form)
        assert len(lines) == 1 and says in lines[0], lines


def lines_of_a_chat_are_commands():
    words = ["chat", "letters.gguf", "--template", "chatml", "--tokens", "5", "--context", "120", "--temperature", "0"]
    both = out(*words, input="hello\nagain\n")
    first = both[:both.index("\n") + 1]
    for name in ("exit", "quit", "bye"):
        assert out(*words, input=f"hello\n/{name}\nagain\n") == first, name
    # Of 120 positions a reply of 5 tokens leaves room for the message before.
    assert out(*words, input="hello\n/clear\nhello\n") == 2 * first != out(*words, input="hello\nhello\n"), first
    # The system's message stays.
    told = [*words, "--system", "Be brief."]
    assert out(*told, input="hello\n/clear\nhello\n") == 2 * out(*told, input="hello\n")
    helped = tenon(*words, input="/help\n")
    assert "/clear " in helped.stderr and "/quit and /bye" in helped.stderr and helped.stdout == "", helped
    wrong = tenon(*words, input="/jabber it\n/image\n/image none.png\nhello\n")
    assert wrong.stdout == first, wrong.stdout
    for text in ("no command '/jabber'; /help lists them", "/image: expected a file", "letters.gguf reads no images"):
        assert text in wrong.stderr, wrong.stderr
    # Messages: a path, a command's name with more behind it, a space in front.
    for line in ("/usr/bin has tenon", "/exit!", " /exit"):
        assert out(*words, input=f"{line}\n").count("\n") == 1, line


def an_interrupt_ends_a_reply_and_not_the_chat():
    words = [tap.TENON, "chat", "endless.gguf", "--template", "chatml", "--tokens", "20000", "--context", "50000"]
    chat = subprocess.Popen(words, env=tap.ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)
    replies = []
    for line in (b"hello\n", b"again\n"):
        chat.stdin.write(line)
        chat.stdin.flush()
        reply = chat.stdout.read(1) # it has begun, and would go on to the context's end
        chat.send_signal(signal.SIGINT)
        while not reply.endswith(b"\n"):
            more = chat.stdout.read(1)
            assert more, (reply[-80:], chat.stderr.read())
            reply += more
        replies.append(reply)
    chat.stdin.close()
    assert chat.wait(60) == 0 and all(r.endswith(b" ...\n") for r in replies), replies
    chat.stdout.close()
    chat.stderr.close()


def a_model_that_is_no_numbers_is_told():
    no_logits, no_number = "the logits behind token ", "weights of the model, or of its adapter, are NaN or infinite"
    commands = {
        ("generate", "a"): no_logits, ("generate", "a", "--json"): no_logits, ("generate", "a", "-t", "1"): no_logits,
        ("generate", "a", "--grammar", "any.gbnf"): no_logits, ("chat", "--template", "chatml"): no_logits,
        ("embed", "abc"): "the embedding of 3 tokens is no number: value 0 of 16 is ",
        ("perplexity", "text"): "the surprise of token 1 of a window is nan: " + no_number,
        ("perplexity", "text", "--json"): no_number,
        ("train", "lora", "text", "-o", "old.gguf"): "step 1 of 100: the loss is nan: " + no_number,
        ("model", "imatrix", "text", "-o", "old.gguf"): "window 1: squares of what the products of blk.",
    }
    pathlib.Path("any.gbnf").write_text("root ::= [a-z]+")
    for array, value in (("token_embd.weight", math.nan), ("blk.1.attn_v.weight", math.inf), ("blk.0.ffn_norm.weight", -math.inf)):
        gguf("wrong.gguf", 1.0, wrong=(array, value))
        for words, saying in commands.items():
            pathlib.Path("old.gguf").write_text("old")
            of = 2 if words[0] in ("train", "model") else 1
            if array == "token_embd.weight" and words[0] in ("embed", "model"):
                continue # a row that the text does not read
            done = failed(*words[:of], "wrong.gguf", *words[of:], saying=saying, input="a\n")
            assert done.stdout == "" and pathlib.Path("old.gguf").read_text() == "old", (array, value, done)
        quantize = ("model", "quantize", "wrong.gguf", "new.gguf", "--format", "q8_0") # rows of 16 become f16
        assert f"'{array}' has a value of {value}, which new.gguf has, too" in tenon(*quantize).stderr, array
        gguf("wrong.gguf", 1.0, wrong=("blk.1.ffn_down.weight", value))
        failed(*quantize[:3], "old.gguf", *quantize[4:], saying=f"has a value of {value}, which q8_0 cannot hold")
        assert pathlib.Path("old.gguf").read_text() == "old"


def a_training_that_runs_away_keeps_the_old_file():
    words = ["train", "lora", "letters.gguf", "text", "--steps", "9", "-o"]
    for path in ("a.gguf", "b.safetensors", "c/"):
        out(*words, path, "--rate", "0.001")
        files = [pathlib.Path(path)] if path[-1] != "/" else sorted(pathlib.Path(path).iterdir())
        before = [file.read_bytes() for file in files]
        failed(*words, path, "--rate", "1e38", saying="step 2 of 9: the loss is nan: a lower rate may help")
        failed(*words, path, "--rate", "1e300", "--steps", "1", saying="the adapter's blk.0.attn_q.weight.lora_a: value 0 of ")
        assert [file.read_bytes() for file in files] == before, path


def a_full_output_is_an_error():
    commands = ("generate letters.gguf a", "generate letters.gguf a --json", "generate letters.gguf a --tokens 1", "chat letters.gguf --template chatml",
                "embed letters.gguf a", "perplexity letters.gguf text", "perplexity letters.gguf text --json",
                "train lora letters.gguf text --steps 3 --json", "model tokens letters.gguf abc", "model tokens letters.gguf abc --json",
                "model show letters.gguf", "model show letters.gguf --where", "model show letters.gguf --where --json",
                "model convert letters.gguf out.gguf", "model quantize letters.gguf out.gguf --format q8_0", "model imatrix --help",
                "bench llm --random layers=1,width=64,heads=1,kv_heads=1,inner=64,vocabulary=96 --rounds 1 --tokens 1 --json")
    with open("/dev/full", "w") as full:
        for words in commands:
            done = subprocess.run([tap.TENON, *words.split()], env=tap.ENVIRONMENT, stdout=full, stderr=subprocess.PIPE, input="hello\n", text=True,
                                  check=False)
            assert done.returncode == 1 and done.stderr.endswith("tenon: cannot write the output\n"), done


def text_that_is_no_utf_8_is_json():
    gguf("bytes.gguf", 1.0, other={"'": "\u00f0", ",": "\u0141", ".": "\u00e2"}) # bytes f0, a0 (an end of UTF-8), e2
    for ids, text in (("30=99", "\ufffd" * 3), ("28=99", "\ufffd" * 3)):
        got = json.loads(out("generate", "bytes.gguf", "a", "--raw", "--tokens", "3", "--json", "--bias", ids + ",31=-inf"))
        assert got["text"] == text and [t["text"] for t in got["tokens"]] == [None] * 3, got
    assert out("model", "tokens", "bytes.gguf", "a\U0001d11e") == '      0  "a"\n     30  "\\xf0"\n'
    assert json.loads(out("model", "tokens", "bytes.gguf", "\U0001d11e", "--json"))[0]["text"] == "\\xf0"
    assert out("generate", "letters.gguf", "--raw", "abc", "--tokens", "1") == out("generate", "letters.gguf", "--raw", "-", "--tokens", "1", input="abc\n")


def every_lack_of_memory_is_told():
    """One allocation of the core fails: among all of them one of each so many, from another one on for each command."""
    commands = [("generate", "letters.gguf", "a", "--tokens", "2"), ("embed", "letters.gguf", "a"), ("model", "show", "letters.gguf"),
                ("model", "tokens", "letters.gguf", "a")]
    for first, words in enumerate(commands, 1):
        whole, passed = out(*words), 0
        for nth in range(first, 10000, 197):
            done = subprocess.run([tap.TENON, *words], env={**tap.ENVIRONMENT, "TENON_FAIL_ALLOC": str(nth)}, capture_output=True, text=True, check=False)
            passed = passed + 1 if done.returncode == 0 else 0
            told = done.stderr.splitlines() or [""]
            assert done.stdout == whole if passed else done.returncode == 1 and told[-1].startswith("tenon: "), (nth, words, done)
            if passed == 3:
                break


def standard_input_is_a_prompt_and_a_text():
    for more in (["--json"], []):
        words = ["generate", "letters.gguf", "--tokens", "5", *more]
        assert out(*words, "once upon") == out(*words, "-", input="once upon") == out(*words, "-", input="once upon\n")
    assert out(*words, "-", input="a\n\n").startswith("a\n")
    assert out("embed", "letters.gguf", "b", "-", input="a cat\n") == out("embed", "letters.gguf", "b", "a cat")
    refused("generate", "letters.gguf", "-", input="a\0b", saying="standard input has a zero byte: expected a text")


def more_positions_than_a_model_knows_are_told():
    note = "note: --context 200 is more than the 128 positions that the model was trained for"
    for words in (("generate", "letters.gguf", "a", "--tokens", "1"), ("embed", "letters.gguf", "a"),
                  ("perplexity", "letters.gguf", "text"), ("chat", "letters.gguf", "--template", "chatml")):
        assert note in tenon(*words, "--context", "200", input="").stderr, words
        assert "note:" not in tenon(*words, "--context", "128", input="").stderr, words


def an_adapter_learns_a_text():
    words = ["train", "lora", "letters.gguf", "text", "--rank", "4", "--rate", "0.02", "--weights", "attn_q,ffn_up,ffn_down"]
    told = [json.loads(line) for line in
            out(*words, "--steps", "60", "-o", "a.gguf", "--plot", "loss.svg", "--json").splitlines()]
    assert [row["step"] for row in told] == list(range(1, 61)) and told[-1]["loss"] < 0.5 * told[0]["loss"], told
    more = [json.loads(line) for line in
            out(*words, "--steps", "1", "--adapter", "a.gguf", "-o", "b.safetensors", "--json").splitlines()]
    assert more[0]["loss"] < 0.5 * told[0]["loss"], more
    drawing = xml.etree.ElementTree.parse("loss.svg").getroot()
    lines = [line for line in drawing if line.tag.endswith("polyline")]
    assert [len(line.get("points").split()) for line in lines] == [60, 60]

    def nats(*options):
        return json.loads(out("perplexity", "letters.gguf", "text", "--json", *options))["nats"]
    assert nats("--adapter", "a.gguf") < 0.6 * nats() == nats("--adapter", "a.gguf", "--adapter-scale", "0") * 0.6
    refused("generate", "letters.gguf", "a", "--adapter", "text", saying="text")
    refused("train", "lora", "letters.gguf", "text", "--weights", "attn_x", saying="blk.N.attn_x.weight")
    for path, saying in (("/nowhere/at.gguf", "/nowhere/: No such file"), ("at.all", "extension all"), ("at", ".safetensors")):
        refused("train", "lora", "letters.gguf", "text", "-o", path, saying=saying)


def models_of_random_weights_are_measured():
    sizes = "layers=2,width=64,heads=4,kv_heads=2,inner=64,vocabulary=96,format=q4_0"
    got = json.loads(out("bench", "llm", "--random", sizes, "--rounds", "1", "--tokens", "4", "--json"))
    assert got["prompt"] > 0 and got["decode"] > 0, got
    refused("bench", "llm", "--random", "layers=none", saying="layers=none, expected format, layers")
    refused("bench", "llm", status=2, saying="bench llm: expected a model")
    refused("bench", "matmul", "--json", status=2, saying="--parallel, --split and --json are for")


def loading_draws_a_bar_on_a_terminal():
    large = ("bench", "llm", "--random", "layers=24,width=1024,heads=8,kv_heads=8,inner=4096,vocabulary=1000", "--rounds", "1")
    try:
        ours, theirs = os.openpty()
    except OSError as error:
        return f"no pseudo-terminal: {error}"
    process = subprocess.Popen([tap.TENON, *large], env=tap.ENVIRONMENT, stderr=theirs, stdout=subprocess.DEVNULL)
    os.close(theirs)
    seen = b""
    try:
        while b"\x1b[K" not in seen:
            seen += os.read(ours, 4096)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    bars = re.findall(rb"\rloading \[(#*)(\.*)\] ([0-9]+) of ([0-9]+) MB", seen)
    assert bars and all(len(full) + len(rest) == 30 and total == b"228" for full, rest, _, total in bars), seen


def wrong_words_are_refused():
    refused("generate", "missing.gguf", "a", saying="missing.gguf")
    refused("generate", "text", "a", saying="text")
    refused("generate", "letters.gguf", "a", "--temperature", "warm", status=2,
            saying="--temperature is 'warm', expected a number")
    refused("generate", "letters.gguf", "a", "--top-p", "2", saying="top_p is 2, expected 0 to 1")
    refused("generate", "letters.gguf", "a" * 200, saying="200 positions are too many: the context has 128")
    assert tenon("generate", "letters.gguf", "a", "--top-p", "2", status=1).stdout == "" # nothing is before it


if __name__ == "__main__":
    tap.run([beside_models(test) for test in (
        generating_is_repeated_by_its_seed,
        text_is_held_to_schemas_and_grammars,
        a_real_model_writes_json,
        tokens_and_embeddings_are_printed_as_json,
        what_ran_is_told,
        layers_are_placed_as_asked,
        equal_probabilities_have_the_perplexity_of_their_number,
        a_chat_replies_to_each_line,
        another_template_than_the_known_is_refused,
        lines_of_a_chat_are_commands,
        an_interrupt_ends_a_reply_and_not_the_chat,
        a_model_that_is_no_numbers_is_told,
        a_training_that_runs_away_keeps_the_old_file,
        a_full_output_is_an_error,
        text_that_is_no_utf_8_is_json,
        every_lack_of_memory_is_told,
        standard_input_is_a_prompt_and_a_text,
        more_positions_than_a_model_knows_are_told,
        an_adapter_learns_a_text,
        models_of_random_weights_are_measured,
        loading_draws_a_bar_on_a_terminal,
        wrong_words_are_refused)])
