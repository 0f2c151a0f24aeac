# SPDX-License-Identifier: MIT
"""tenon.lm: what is generated beside the command's tokens, conversations, batches, sequences, adapters, images, bad input."""

import gc
import json
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import tenon as tn
import tenon.lm
from models import ROOT, command, images, letters, real_model

TEXT = "once upon a time there was a model of letters. "
CHAT = [{"role": "user", "content": "hello"}]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return letters(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def model(folder):
    return tn.lm.open(folder / "letters.gguf")


# --- tokens are the command's ------------------------------------------------------------------

# Options of the command, and of generate().
SAME = {
    "greedy": ([], {}),
    "drawn": (["-t", 2, "--seed", 1], {"temperature": 2, "seed": 1}),
    "top k": (["-t", 2, "--seed", 7, "--top-k", 3], {"temperature": 2, "seed": 7, "top_k": 3}),
    "top p": (["-t", 2, "--seed", 3, "--top-p", 0.4], {"temperature": 2, "seed": 3, "top_p": 0.4}),
    "min p": (["-t", 2, "--seed", 3, "--min-p", 0.3], {"temperature": 2, "seed": 3, "min_p": 0.3}),
    "penalty": (["--penalty", 3, "--penalty-last", 4], {"repetition_penalty": 3, "repetition_context": 4}),
    "presence": (["--presence", 1000], {"presence_penalty": 1000}),
    "frequency": (["--frequency", 2.5], {"frequency_penalty": 2.5}),
    "bias": (["--bias", "31=-inf,3=4"], {"logit_bias": {31: -float("inf"), 3: 4}}),
    "stop": (["-t", 2, "--seed", 5, "--stop", "o"], {"temperature": 2, "seed": 5, "stop": "o"}),
    "raw": (["--raw"], {"raw": True}),
}


def generated(model, prompt, tokens, options):
    generation = model.generate(prompt, max_tokens=tokens, **options)
    return [token.id for token in generation.tokens()], generation.text


@pytest.mark.parametrize("what", SAME)
def test_tokens_are_those_of_the_command(what, folder, model):
    arguments, options = SAME[what]
    want = command("generate", folder / "letters.gguf", "once upon", "--tokens", 20, "--json", *arguments)
    assert generated(model, "once upon", 20, options) == ([token["id"] for token in want["tokens"]], want["text"])


def test_probabilities_are_those_of_the_command(folder, model):
    want = command("generate", folder / "letters.gguf", "once", "--tokens", 4, "--json", "--top", 3)["tokens"]
    for got, row in zip(model.generate("once", max_tokens=4, top=3).tokens(), want, strict=True):
        assert got.log_probability == pytest.approx(row["log_probability"], abs=1e-6)
        assert [i for i, _ in got.top] == [other["id"] for other in row["top"]]


def test_embeddings_are_those_of_the_command(folder, model):
    want = command("embed", folder / "letters.gguf", "once", "upon a time")
    got = model.embed(["once", "upon a time"])
    np.testing.assert_allclose(np.asarray(got), [row["embedding"] for row in want], atol=1e-6)
    assert model.embed("once").shape == (16,) and model.embed([], pooling="last").shape == (0, 16)
    assert float(tn.sum(model.embed("once", pooling="first", normalize=False) ** 2)) > 2


REAL = """
import json, sys
import tenon.lm
model = tenon.lm.open(sys.argv[1])
print([token.id for token in model.generate("Once upon a time", max_tokens=24, **json.loads(sys.argv[2])).tokens()])
"""


@pytest.mark.skipif(real_model() is None, reason="TEST_MODELS has no model")
@pytest.mark.parametrize("arguments, options", [([], {}), (["-t", 0.7, "--seed", 4, "--top-p", 0.9], {"temperature": 0.7, "seed": 4, "top_p": 0.9})])
def test_tokens_of_a_real_model_are_those_of_the_command(arguments, options):
    """In a process without NumPy, which chooses OpenBLAS's kernels where it comes first."""
    want = command("generate", real_model(), "Once upon a time", "--tokens", 24, "--json", *arguments)
    done = subprocess.run([sys.executable, "-c", REAL, real_model(), json.dumps(options)], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [token["id"] for token in want["tokens"]]


# --- streams -----------------------------------------------------------------------------------

def test_a_text_comes_in_pieces_and_says_how_it_ended(model, folder):
    generation = model.generate("once upon", max_tokens=8)
    assert generation.reason is None and generation.text == "" and generation.statistics == {}
    first = next(generation)
    assert generation.text == first and len(generation.ids) >= 1
    rest = generation.read()
    assert generation.text == first + rest and generation.reason == "length" and generation.statistics["tokens"] == 8
    assert list(generation) == [] and generation.read() == ""
    assert model.generate("once upon", temperature=2, seed=1, max_tokens=None).read() == "q'"  # and the end token
    stopped = model.generate("once upon", temperature=2, seed=1, stop=["'"])
    assert (stopped.read(), stopped.reason) == ("q", "stop")
    full = tn.lm.open(folder / "endless.gguf", context=16).generate("a", max_tokens=None)
    full.read()
    assert full.reason == "full"


def test_loops_may_be_left_and_texts_generated_beside_others(model):
    want = model.generate("once upon", max_tokens=12).read()
    for _ in model.generate("once upon", max_tokens=12):
        break
    first, second = model.generate("once upon", max_tokens=12), model.generate("upon", max_tokens=12)
    next(first), next(second), next(first)
    assert first.read() and first.text == want and second.read()
    with model.generate("once upon") as third:
        next(third)
    assert third.reason == "cancelled" and len(third.ids) == 1
    assert model.generate("once upon", max_tokens=12).read() == want


def test_a_prompt_may_be_tokens(model):
    assert model.generate(model.tokenize("once upon"), max_tokens=9).read() == model.generate("once upon", max_tokens=9).read()
    assert model.detokenize(model.tokenize("once upon")) == "once upon"
    assert model.is_end(31) and not model.is_end(3) and not model.is_end(-1)


def test_threads_generate_at_the_same_time(model):
    want = [model.generate(letter, max_tokens=20).read() for letter in "abcd"]
    got = [None] * 4

    def work(i):
        for _ in range(5):
            got[i] = model.generate("abcd"[i], max_tokens=20).read()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == want


def test_other_threads_run_meanwhile(folder):
    """The interpreter is free while a token is computed."""
    model, counted = tn.lm.open(folder / "letters.gguf"), []
    stop = threading.Event()
    thread = threading.Thread(target=lambda: [counted.append(stop.wait(0.0005)) for _ in iter(stop.is_set, True)])
    thread.start()
    for _ in range(20):
        model.embed([TEXT] * 8)
    stop.set()
    thread.join()
    assert len(counted) > 2


INTERRUPTED = """
import os, signal, sys, threading, time
import tenon.lm
model = tenon.lm.open(sys.argv[1])
want = model.generate("a", max_tokens=3).read()
for what in (lambda: [time.sleep(0.01) for _ in model.generate("a", max_tokens=None)],
             lambda: [model.embed(["a" * 100] * 50) for _ in iter(int, 1)],
             lambda: model.train_adapter("a" * 200, steps=1000000, window=8)):
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        while True:
            what()
    except KeyboardInterrupt:
        model.load_adapter(None)
        assert model.generate("a", max_tokens=3).read() == want
        print("interrupted")
left = model.generate("a", max_tokens=None)
next(left)
"""


def test_ctrl_c_ends_what_runs_and_the_model_goes_on(folder):
    done = subprocess.run([sys.executable, "-c", INTERRUPTED, folder / "endless.gguf"], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted\n" * 3, "")


# --- conversations, schemas --------------------------------------------------------------------

def test_conversations(model):
    text = model.chat_text(CHAT)
    assert text.endswith("<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n") and "SmolLM" in text
    first = model.chat(CHAT, max_tokens=10).read()
    assert model.chat("hello", max_tokens=10).read() == first == model.chat(
        [{"role": "user", "content": [{"type": "text", "text": "hello"}]}], max_tokens=10).read()
    talk = [{"role": "system", "content": "you are"}, *CHAT, {"role": "assistant", "content": first}, *CHAT]
    reply = model.chat(talk, max_tokens=10)
    assert reply.read() and reply.statistics["prompt_tokens"] <= len(model.chat_tokens(talk))
    assert model.chat(CHAT, template="chatml", max_tokens=4).read()


class Pydantic:
    """What tenon.lm uses of a class of Pydantic."""

    @staticmethod
    def model_json_schema():
        return {"enum": [True, None]}


@pytest.mark.parametrize("schema", [{"enum": [True, None]}, '{"enum": [true, null]}', Pydantic])
def test_texts_are_held_to_schemas(schema, model):
    for seed in range(100):
        assert json.loads(model.generate("once", temperature=2, seed=seed, schema=schema).read()) in (True, None)
        assert json.loads(model.chat(CHAT, temperature=2, seed=seed, schema=schema).read()) in (True, None)


def test_texts_are_held_to_grammars(model):
    grammar = tn.lm.Grammar('root ::= "a" [b-d]{3} "."')
    assert [grammar.fits(text) for text in ("abcd.", "ab", "ax")] == ["fits", "begins", "no"]
    for given in (grammar, 'root ::= "a" [b-d]{3} "."'):
        assert grammar.fits(model.generate("once", temperature=2, grammar=given).read()) == "fits"
    assert tn.lm.Grammar.of_schema({}).fits('{"a": [1, 2]}') == "fits"


# --- several texts at once ---------------------------------------------------------------------

def test_batches_are_the_texts_one_by_one(folder):
    prompts = ["once upon", "a", "time.", "model of", [3, 4]]
    with tn.lm.open(folder / "letters.gguf", sequences=3) as model:
        want = [model.generate(prompt, max_tokens=10).read() for prompt in prompts]
        batch = model.generate_batch(prompts, max_tokens=10)
        assert {index for index, _ in batch} == set(range(5))
        assert batch.texts == want and set(batch.reasons) <= {"length", "end"}
        assert model.generate_batch(prompts, max_tokens=10).read() == want
        with model.generate_batch(prompts) as left:
            next(left)
        assert model.generate_batch([]).read() == []


def test_sequences_go_on_and_are_saved(model, tmp_path):
    tokens = model.tokenize("once upon a time")
    with model.sequence() as whole, model.sequence() as parts:
        rows = whole.infer(tokens, all=True)
        assert rows.shape == (len(tokens), 32) and len(whole) == len(tokens)
        parts.infer(tokens[:5])
        np.testing.assert_allclose(np.asarray(parts.infer(tokens[5:])), np.asarray(rows)[-1], atol=1e-4)
        parts.save(tmp_path / "saved")
        want = parts.generate(max_tokens=6).read()
        parts.load(tmp_path / "saved")
        assert len(parts) == len(tokens) and parts.generate(max_tokens=6).read() == want
        whole.cut(3)
        assert len(whole) == 3
        np.testing.assert_allclose(np.asarray(whole.infer(tokens[3:])), np.asarray(rows)[-1], atol=1e-4)
        assert [row.shape for row in tn.lm.infer_batch([(whole, [1]), (parts, [2, 3])])] == [(32,), (32,)]


def test_tokens_are_drawn_from_logits(model):
    logits = model.sequence().infer("once upon")
    best, log_probability = tn.lm.Sampler(32).sample(logits)
    assert best == int(tn.argmax(logits)) and log_probability == pytest.approx(float(tn.max(tn.log_softmax(logits))), abs=1e-5)
    drawn = [tn.lm.Sampler(32, temperature=3, seed=seed).sample(np.asarray(logits))[0] for seed in range(20)]
    assert len(set(drawn)) > 3
    assert tn.lm.Sampler(32, repetition_penalty=1e6).sample(logits, [best])[0] != best


def test_layers_run_in_parts(folder, model):
    tokens = model.tokenize("once upon")
    want = np.asarray(model.sequence().infer(tokens))
    with tn.lm.open(folder / "letters.gguf") as part:
        part.load_layers(0, 0)
        with part.sequence() as first:
            hidden = first.infer_shard(tokens)
        assert hidden.shape == (len(tokens), 16)
        part.load_layers(1, 1)
        with part.sequence() as second:
            np.testing.assert_allclose(np.asarray(second.infer_shard(hidden)), want, atol=1e-3)
            assert (part.info["first"], part.info["end"]) == (1, 2)


# --- adapters, images, what is known -----------------------------------------------------------

def test_adapters_are_trained_saved_and_loaded(folder, tmp_path):
    steps = []
    with tn.lm.open(folder / "letters.gguf") as model:
        before = model.generate("once", max_tokens=12).read()
        losses = model.train_adapter(TEXT * 20, steps=40, window=32, rate=0.02, seed=3, progress=steps.append)
        assert losses[-1] < 0.8 * losses[0] and [step.step for step in steps] == list(range(1, 41)) and steps[-1].loss == losses[-1]
        trained = model.generate("once", max_tokens=12).read()
        assert trained != before
        for name in ("adapter.safetensors", "adapter.gguf", "folder/"):
            model.save_adapter(str(tmp_path) + "/" + name)
        model.load_adapter(None)
        assert model.generate("once", max_tokens=12).read() == before
    for name in ("adapter.safetensors", "adapter.gguf", "folder"):
        with tn.lm.open(folder / "letters.gguf", adapter=tmp_path / name) as model:
            assert model.generate("once", max_tokens=12).read() == trained


def test_importance_is_written(model, tmp_path):
    model.save_importance(TEXT * 3, tmp_path / "importance.gguf", window=16)
    assert "blk.0.attn_q.weight.in_sum2" in tn.load(tmp_path / "importance.gguf")


class Picture:
    """What tenon.lm uses of an image of Pillow."""

    def __init__(self, pixels):
        self.pixels, (self.height, self.width, _) = pixels, pixels.shape

    def convert(self, _):
        return self

    def tobytes(self):
        return self.pixels.tobytes()


def test_images_stand_in_prompts(tmp_path):
    files, lines = images(tmp_path)
    one, two = tmp_path / "one.png", tmp_path / "two.png"
    model = tn.lm.open(tmp_path / "text.gguf", vision=tmp_path / "mmproj.gguf", cache="f32")
    pixels = np.asarray(tn.load(one))
    read = model.image(one)
    assert (read.info["height"], read.info["width"]) == (30, 70) and read.rows().shape == (read.info["tokens"], model.info["width"])
    for given in (one, str(one), read, pixels, tn.array(pixels), Picture(pixels)):
        generation = model.generate("What is this?", images=[given], raw=True, max_tokens=1)
        assert [token.id for token in generation.tokens()] == [files.first_token(lines, "one")]
    generation = model.generate("User:<image><image>same?", images=[one, two], raw=True, max_tokens=1)
    assert [token.id for token in generation.tokens()] == [files.first_token(lines, "two")]
    ids = model.tokenize("User:<image><image>same?", special=True)
    assert int(tn.argmax(model.sequence().infer(ids, images=[one, two]))) == files.first_token(lines, "two")
    with pytest.raises(ValueError, match="expected 1, one for each image"):
        model.generate("<image><image>", images=[one]).read()
    with pytest.raises(FileNotFoundError, match="none.png"):
        model.generate("a", images=["none.png"])
    with pytest.raises(ValueError, match="expected bytes"):
        model.generate("a", images=[np.zeros((3, 3))])
    with pytest.raises(TypeError, match="expected a path"):
        model.generate("a", images=[3])


def test_what_is_known(model):
    assert model.info["name"] == "letters" and model.info["vocabulary"] == 32 and model.info["context"] == 128
    assert model.metadata["llama.block_count"] == 2 and model.metadata["tokenizer.ggml.tokens"][:2] == ["a", "b"]
    model.generate("a", max_tokens=1).read()
    assert [(part["first"], part["end"]) for part in model.parts()] == [(0, 2)]
    assert repr(model).startswith("<tenon.lm.Model letters: 2 layers of 16")


# --- bad input ---------------------------------------------------------------------------------

# The exception, words of its sentence, what is called with the folder and a model.
FAULTS = [
    (FileNotFoundError, "none.gguf", lambda f, m: tn.lm.open(f / "none.gguf")),
    (tn.PluginError, "cut.gguf", lambda f, m: tn.lm.open(f / "cut.gguf")),
    (tn.PluginError, "text.gguf", lambda f, m: tn.lm.open(f / "text.gguf")),
    (LookupError, "config.json", lambda f, m: tn.lm.open(ROOT)),
    (TypeError, "", lambda f, m: tn.lm.open(3.5)),
    (ValueError, "cache", lambda f, m: tn.lm.open(f / "letters.gguf", cache="f8")),
    (ValueError, "context", lambda f, m: tn.lm.open(f / "letters.gguf", context=-1)),
    (tn.PluginError, "NaN or infinite", lambda f, m: tn.lm.open(f / "nan.gguf").generate("a").read()),
    (ValueError, "128", lambda f, m: m.generate("once upon " * 50).read()),
    (ValueError, "empty|nothing", lambda f, m: m.generate([]).read()),
    (ValueError, "token", lambda f, m: m.generate([99]).read()),
    (ValueError, "32 bits", lambda f, m: m.generate([1 << 40]).read()),
    (TypeError, "", lambda f, m: m.generate(["a"]).read()),
    (ValueError, "null character", lambda f, m: m.generate("a\0b").read()),
    (TypeError, "no option 'temprature'; did you mean 'temperature'?", lambda f, m: m.generate("a", temprature=1)),
    (TypeError, "chat: no option 'repeat_penalty'; did you mean 'repetition_penalty'?", lambda f, m: m.chat("a", repeat_penalty=1)),
    (TypeError, "did you mean 'max_tokens'?", lambda f, m: m.generate_batch(["a"], max_new_tokens=1)),
    (TypeError, "Sampler: no option 'zzz'; there are max_tokens", lambda f, m: tn.lm.Sampler(32, zzz=1)),
    (ValueError, "temperature is -1", lambda f, m: m.generate("a", temperature=-1).read()),
    (ValueError, "temperature is nan", lambda f, m: m.generate("a", temperature=float("nan")).read()),
    (TypeError, "", lambda f, m: m.generate("a", temperature="hot")),
    (OverflowError, "", lambda f, m: m.generate("a", seed=-1)),
    (ValueError, "top_p", lambda f, m: m.generate("a", temperature=1, top_p=2).read()),
    (ValueError, "logit_bias|bias|token", lambda f, m: m.generate("a", logit_bias={99: 1}).read()),
    (ValueError, "max_tokens is 0, expected at least 1", lambda f, m: m.generate("a", max_tokens=0)),
    (ValueError, "line 1", lambda f, m: m.generate("a", grammar='root ::= "a')),
    (ValueError, "schema", lambda f, m: m.generate("a", schema='{"type": ')),
    (ValueError, "type", lambda f, m: m.generate("a", schema={"type": "no such type"})),
    (NotImplementedError, "unevaluatedItems|not known", lambda f, m: m.generate("a", schema={"unevaluatedItems": False})),
    (TypeError, "expected one of them", lambda f, m: m.generate("a", schema={}, grammar="root ::= [a]")),
    (NotImplementedError, "no token", lambda f, m: m.generate("a", grammar='root ::= "\u00fc"').read()),
    (ValueError, "role", lambda f, m: m.chat([{"role": "robot", "content": "a"}]).read()),
    (TypeError, "chat: got int, expected a text or a list", lambda f, m: m.chat(5)),
    (TypeError, "message 0 is 'hello', expected a dict", lambda f, m: m.chat(["hello"])),
    (ValueError, 'message 0: a part of type \'sound\', expected "text" or "image"', lambda f, m: m.chat([{"role": "user", "content": [{"type": "sound"}]}])),
    (LookupError, "no template of chats", lambda f, m: tn.lm.open(f / "formless.gguf").chat("a")),
    (LookupError, "no template 'q'", lambda f, m: m.chat("a", template="q")),
    (NotImplementedError, "reads no images", lambda f, m: m.generate("a", images=[np.zeros((2, 2, 3), "uint8")])),
    (ValueError, "pooling is 'max'", lambda f, m: m.embed("a", pooling="max")),
    (ValueError, "context", lambda f, m: m.embed("a" * 1000)),
    (FileNotFoundError, "none", lambda f, m: m.load_adapter(f / "none")),
    (tn.PluginError, "letters.gguf", lambda f, m: tn.lm.open(f / "formless.gguf", adapter=f / "letters.gguf")),
    (ValueError, "adapter", lambda f, m: tn.lm.open(f / "formless.gguf").save_adapter(f / "a.gguf")),
    (ValueError, "token", lambda f, m: tn.lm.open(f / "formless.gguf").train_adapter([1])),
    (ValueError, "what", lambda f, m: tn.lm.open(f / "formless.gguf").train_adapter(TEXT, weights=["what"])),
    (ValueError, "length|position", lambda f, m: m.sequence().cut(5)),
    (FileNotFoundError, "none", lambda f, m: m.sequence().load(f / "none")),
    (tn.PluginError, "text.gguf", lambda f, m: m.sequence().load(f / "text.gguf")),
    (ValueError, "expected 32", lambda f, m: tn.lm.Sampler(32).sample(np.zeros(3, "f4"))),
    (TypeError, "pairs", lambda f, m: tn.lm.infer_batch([(m.sequence(), [1]), 3])),
]


@pytest.mark.parametrize("kind, words, call", FAULTS, ids=range(len(FAULTS)))
def test_bad_input_is_told_and_the_model_goes_on(kind, words, call, folder, model):
    with pytest.raises(kind, match=words.replace("?", r"\?") if "?" in words else words):
        call(folder, model)
    gc.collect()
    assert model.generate("once", max_tokens=2).read()


def test_what_is_used_or_closed_says_so(folder):
    model = tn.lm.open(folder / "letters.gguf")
    sequence = model.sequence()
    running = sequence.generate("once", max_tokens=None)
    next(running)
    for call in (lambda: sequence.infer([1]), lambda: len(sequence), lambda: sequence.generate("a"), lambda: model.load_adapter(None)):
        with pytest.raises(RuntimeError, match="in use"):
            call()
    running.close()
    with pytest.raises(ValueError, match="sequence"):  # of the adapter's layers
        model.train_adapter(TEXT)
    sequence.close()
    with pytest.raises(ValueError, match="sequence is closed"):
        sequence.infer([1])
    left, image_of = model.generate("once"), model.sequence()
    next(left)
    model.generate("once", max_tokens=1).read()  # leaves a sequence that waits for the next text
    model.close()
    with pytest.raises(ValueError, match="model is closed"):
        model.generate("a")
    assert left.reason == "cancelled" and repr(model) == "<tenon.lm.Model, closed>"
    for call in (lambda: model.generate("a"), lambda: model.info, lambda: image_of.infer([1])):
        with pytest.raises(ValueError, match="closed"):
            call()
    model.close()


def test_a_forked_process_says_so(model):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            model.generate("a").read()
        except RuntimeError as error:
            os.write(writer, str(error).encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writer)
    assert b"spawn" in os.read(reader, 4096)


# --- examples ----------------------------------------------------------------------------------

@pytest.mark.parametrize("program", sorted(path.name for path in (ROOT / "docs/examples/python/lm").glob("*.py")))
def test_an_example_runs(program, folder):
    if program == "schema.py" and real_model() is None:
        pytest.skip("the letters have no quotation marks, which JSON needs")
    path = real_model() or folder / "long.gguf"
    done = subprocess.run([sys.executable, ROOT / "docs/examples/python/lm" / program, path], capture_output=True, text=True,
                          input="What is a tenon?\n", env={**os.environ, "EXAMPLE_TOKENS": "8"})
    assert done.returncode == 0 and done.stdout.strip(), done.stderr
    if program == "schema.py":
        assert {"word", "is_noun"} <= set(json.loads(done.stdout))
    assert program in (ROOT / "docs/examples/README.md").read_text()
