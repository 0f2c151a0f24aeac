# SPDX-License-Identifier: MIT
"""Files of images as arrays; and models that read them, from folders of Hugging Face and from two files of GGUF."""

import base64
import json
import pathlib
import resource
import struct
import subprocess
import sys
import zlib

import numpy
import tap
from tap import refused, tenon

LM = pathlib.Path(__file__).resolve().parents[1] / "lm"
SANITIZED = len(sys.argv) > 3 and sys.argv[3] != "none"  # then address space counts, and is large

JPEG = {  # of Pillow: the file, and its pixels
    "colours": (
            "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABALDA4MChAODQ4SERATGCgaGBYWGDEjJR0oOjM9PDkzODdASFxOQERXRTc4UG1RV19iZ2hnPk1xeX"
            "BkeFxlZ2P/2wBDARESEhgVGC8aGi9jQjhCY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2P/wAARCAAG"
            "AAkDASIAAhEBAxEB/8QAFQABAQAAAAAAAAAAAAAAAAAAAAP/xAAdEAABAwUBAAAAAAAAAAAAAAAAAhFBAQMEFGKS/8QAFQEBAQAAAAAAAAAAAA"
            "AAAAAAAwX/xAAbEQABBAMAAAAAAAAAAAAAAAABAAIDBBETMv/aAAwDAQACEQMRAD8AXcpSatLQS2ldegBmgMOAFSq04NfIX//Z",
            "DOpjFexqH+VuItZrNMx1ScuFWsKPYLWUabCeI95rLOByNdd0N8dwRLlzVrSAY6mHZpmKZIiIRrpxUL15WrV6XaZ4aZd6eZGDg4SIhXSGkW+QXZ"
            "NzaJZ5cpJ9eYV7hnp+mXOIpGiMp1mLul+ceXmBg32HjHeIkGiCnV2Cr1eKukuNvT2KxTaOkHiSlniUm2yQmlmEo0l/s0KEvzaGwyiDzSSJ"),
    "progressive": (
            "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABALDA4MChAODQ4SERATGCgaGBYWGDEjJR0oOjM9PDkzODdASFxOQERXRTc4UG1RV19iZ2hnPk1xeX"
            "BkeFxlZ2P/2wBDARESEhgVGC8aGi9jQjhCY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2P/wgARCAAG"
            "AAkDASIAAhEBAxEB/8QAFQABAQAAAAAAAAAAAAAAAAAAAAL/xAAVAQEBAAAAAAAAAAAAAAAAAAACBP/aAAwDAQACEAMQAAABQOn/xAAXEAEAAw"
            "AAAAAAAAAAAAAAAAAAAQIS/9oACAEBAAEFAps0/8QAGBEAAgMAAAAAAAAAAAAAAAAAAAMCEjH/2gAIAQMBAT8BUmFcP//EABYRAAMAAAAAAAAA"
            "AAAAAAAAAAABIf/aAAgBAgEBPwFQ/8QAFBABAAAAAAAAAAAAAAAAAAAAEP/aAAgBAQAGPwI//8QAGBAAAgMAAAAAAAAAAAAAAAAAAAERYZH/2g"
            "AIAQEAAT8haid6f//aAAwDAQACAAMAAAAQc//EABURAQEAAAAAAAAAAAAAAAAAAABB/9oACAEDAQE/EIR//8QAFhEBAQEAAAAAAAAAAAAAAAAA"
            "AQAR/9oACAECAQE/EAPAv//EABcQAAMBAAAAAAAAAAAAAAAAAAERQRD/2gAIAQEAAT8QMKqYH//Z",
            "DOpjFexqH+VuItZrNMx1ScuFWsKPYLWUabCeI95rLOByNdd0N8dwRLlzVrSAY6mHZpmKZIiIRrpxUL15WrV6XaZ4aZd6eZGDg4SIhXSGkW+QXZ"
            "NzaJZ5cpJ9eYV7hnp+mXOIpGiMp1mLul+ceXmBg32HjHeIkGiCnV2Cr1eKukuNvT2KxTaOkHiSlniUm2yQmlmEo0l/s0KEvzaGwyiDzSSJ"),
    "grey": (
            "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABALDA4MChAODQ4SERATGCgaGBYWGDEjJR0oOjM9PDkzODdASFxOQERXRTc4UG1RV19iZ2hnPk1xeX"
            "BkeFxlZ2P/wAALCAAGAAkBAREA/8QAFQABAQAAAAAAAAAAAAAAAAAAAAX/xAAbEAACAQUAAAAAAAAAAAAAAAAAAwUGFiEyYv/aAAgBAQAAPwBH"
            "U2jGpXttHJ//2Q==",
            "AAAABgYGERERHBwcJSUlMDAwPDw8Q0NDT09PHBwcIyMjLy8vOTk5Q0NDTk5OWVlZYWFhbGxsPj4+RkZGUVFRXFxcZmZmcHBwfHx8g4ODj4+PWl"
            "paYmJibW1teHh4gYGBjIyMmJiYn5+fq6ureHh4f39/i4uLlpaWn5+fqqqqtbW1vb29yMjIk5OTm5ubpqamsbGxurq6xcXF0NDQ2NjY5OTk"),
}
FOUR_COLOURS = (
    "/9j/7gAOQWRvYmUAZAAAAAAA/9sAQwBQNzxGPDJQRkFGWlVQX3jIgnhubnj1r7mRyP////////////////////////////////////////////"
    "///////8AAFAgABgAJBEMRAE0RAFkRAEsRAP/EABYAAQEBAAAAAAAAAAAAAAAAAAADBP/EACAQAAIBBAEFAAAAAAAAAAAAAAABAgMREyExEmKS"
    "odH/2gAOBEMATQBZAEsAAD8AQoITrsNdDUeG1e0de+TaVwIlnZTfd5v4D//Z")


def pixels(path):
    values = tap.values("x", f"x={path}")[0]
    return numpy.array(values, dtype=numpy.uint8)


def numbers(name, count):
    """Those of tests/lm/make_fixtures.py."""
    with numpy.errstate(over="ignore"):
        state = numpy.uint64(0xcbf29ce484222325)
        for byte in name.encode():
            state = (state ^ numpy.uint64(byte)) * numpy.uint64(0x100000001b3)
        z = state + numpy.arange(1, count + 1, dtype=numpy.uint64) * numpy.uint64(0x9e3779b97f4a7c15)
        z = (z ^ (z >> numpy.uint64(30))) * numpy.uint64(0xbf58476d1ce4e5b9)
        z = (z ^ (z >> numpy.uint64(27))) * numpy.uint64(0x94d049bb133111eb)
        z ^= z >> numpy.uint64(31)
    return (z >> numpy.uint64(53)).astype(numpy.int64)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(path, width, height, bits, colour, raw, *more):
    """Writes rows that begin with their filter; `more` chunks come before them."""
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0))
    data = b"\x89PNG\r\n\x1a\n" + head + b"".join(more) + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b"")
    pathlib.Path(path).write_bytes(data)
    return data


def rows_of(array):
    return b"".join(b"\0" + row.tobytes() for row in array)


# --- formats -------------------------------------------------------------------------------


def images_of_png_are_bytes_of_three_colours():
    colours = (numbers("colours", 5 * 7 * 3) & 255).astype(numpy.uint8).reshape(5, 7, 3)
    png("colours.png", 7, 5, 8, 2, rows_of(colours))
    assert (pixels("colours.png") == colours).all()
    opacity = numpy.concatenate([colours, numpy.zeros((5, 7, 1), numpy.uint8)], 2)  # is left out
    png("opacity.png", 7, 5, 8, 6, rows_of(opacity), chunk(b"gAMA", struct.pack(">I", 45455 // 2)))
    assert (pixels("opacity.png") == colours).all()
    grey = colours[:, :, 0]
    png("grey.png", 7, 5, 8, 0, rows_of(grey))
    assert (pixels("grey.png") == grey[:, :, None]).all()
    png("bits.png", 7, 1, 1, 0, b"\0\xa5")
    assert pixels("bits.png")[0, :, 1].tolist() == [255, 0, 255, 0, 0, 255, 0]
    png("wide.png", 7, 5, 16, 2, rows_of(colours.astype(numpy.uint16) * 257))  # the same in either byte order
    assert (pixels("wide.png") == colours).all()
    palette = bytes(range(12))
    png("palette.png", 2, 1, 8, 3, b"\0\3\1", chunk(b"PLTE", palette), chunk(b"tRNS", b"\0\0\0\0"))
    assert pixels("palette.png").tolist() == [[[9, 10, 11], [3, 4, 5]]]


def images_of_jpeg_are_those_of_pillow():
    for name, (data, want) in JPEG.items():
        pathlib.Path(name + ".jpg").write_bytes(base64.b64decode(data))
        got = pixels(name + ".jpg")
        assert got.shape == (6, 9, 3), got.shape
        # Another version of the library may round otherwise.
        want = numpy.frombuffer(base64.b64decode(want), dtype=numpy.uint8).reshape(6, 9, 3)
        assert abs(got.astype(int) - want).max() <= 1, name


def noted(jpeg, orientation, order):
    """The file with a note of a camera, in either order of bytes."""
    tiff = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "IHHHIHHI", 8, 1, 0x0112, 3, 1, orientation, 0, 0)
    return jpeg[:2] + b"\xff\xe1" + struct.pack(">H", 8 + len(tiff)) + b"Exif\0\0" + tiff + jpeg[2:]


def images_of_jpeg_are_turned_as_their_camera_noted():
    data = base64.b64decode(JPEG["colours"][0])
    pathlib.Path("plain.jpg").write_bytes(data)
    plain = pixels("plain.jpg")
    turned = [plain, plain[:, ::-1], plain[::-1, ::-1], plain[::-1], plain.swapaxes(0, 1), numpy.rot90(plain, -1),
              plain[::-1, ::-1].swapaxes(0, 1), numpy.rot90(plain)]  # of orientations 1 to 8, as Exif has them
    for orientation, want in enumerate(turned, 1):
        for order in "<>":
            pathlib.Path("noted.jpg").write_bytes(noted(data, orientation, order))
            got = pixels("noted.jpg")
            assert got.shape == want.shape and (got == want).all(), orientation
    for damaged in (0, 9):
        pathlib.Path("noted.jpg").write_bytes(noted(data, damaged, "<"))
        assert (pixels("noted.jpg") == plain).all()
    note = noted(data, 6, "<")
    for cut in range(2, 34):  # a note that ends too early is none
        short = note[:4] + struct.pack(">H", cut) + note[6:4 + cut] + data[2:]
        pathlib.Path("noted.jpg").write_bytes(short)
        assert pixels("noted.jpg").shape in (plain.shape, turned[5].shape), cut


def images_of_netpbm_are_read_in_place():
    colours = (numbers("colours", 5 * 7 * 3) & 255).astype(numpy.uint8).reshape(5, 7, 3)
    pathlib.Path("colours.ppm").write_bytes(b"P6\n# by hand\n7 5\n255\n" + colours.tobytes())
    assert (pixels("colours.ppm") == colours).all()
    pathlib.Path("grey.pgm").write_bytes(b"P5 7 5 255\n" + colours[:, :, 0].tobytes())
    assert (pixels("grey.pgm") == colours[:, :, :1]).all()
    pathlib.Path("unnamed").write_bytes(pathlib.Path("colours.ppm").read_bytes())  # by its first bytes
    assert (pixels("unnamed") == colours).all()


def little_memory():
    if not SANITIZED:
        resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 30))


def damaged_images_are_told():
    whole = png("whole.png", 60, 50, 8, 2, rows_of((numbers("noise", 60 * 50 * 3) & 255).astype(numpy.uint8).reshape(50, 60, 3)))
    jpeg = base64.b64decode(JPEG["colours"][0])
    scan = jpeg.index(b"\xff\xda")
    rows = [
        ("cut.png", whole[:5000], "damaged PNG: it ends too early"),
        ("begin.png", whole[:20], "damaged PNG: it ends too early"),
        ("turned.png", whole[:100] + bytes([whole[100] ^ 1]) + whole[101:], "damaged PNG"),
        ("text.png", b"hello, this is no image", "damaged PNG: Not a PNG file"),
        ("cut.jpg", jpeg[:scan + 20], "damaged JPEG: it ends too early"),
        ("begin.jpg", jpeg[:30], "damaged JPEG: it ends too early"),
        ("text.jpg", b"hello, this is no image", "damaged JPEG: Not a JPEG file"),
        ("four.jpg", base64.b64decode(FOUR_COLOURS), "a JPEG of 4 colours, expected grey or red, green and blue"),
        ("cut.ppm", b"P6 7 5 255\n" + bytes(104), "104 bytes of pixels, expected 105"),
        ("deep.ppm", b"P6 7 5 65535\n" + bytes(210), "expected P6 or P5, the width, the height and 255"),
        ("no.ppm", b"P6 7 x", "expected P6 or P5, the width, the height and 255"),
        ("empty.ppm", b"P6 0 5 255\n", "an image of 0 x 5 pixels, expected 1 to 134217728"),
        ("huge.ppm", b"P6 60000 60000 255\n", "an image of 60000 x 60000 pixels, expected 1 to 134217728"),
        ("huge.jpg", jpeg[:jpeg.index(b"\xff\xc0") + 5] + b"\xff\x00\xff\x00" + jpeg[jpeg.index(b"\xff\xc0") + 9:],
         "an image of 65280 x 65280 pixels, expected 1 to 134217728"),
    ]
    for name, data, saying in rows:
        pathlib.Path(name).write_bytes(data)
        done = refused("eval", "x", f"x={name}", saying=saying, preexec_fn=little_memory)
        assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    png("most.png", 11000, 11000, 8, 2, b"")  # 363 MB, of a file that cannot hold them
    refused("eval", "x", "x=most.png", saying="damaged PNG: 6", preexec_fn=little_memory)
    png("side.png", 70000, 1, 8, 2, b"")
    refused("eval", "x", "x=side.png", saying="damaged PNG")


# --- models --------------------------------------------------------------------------------


def fixture():
    keys, shapes = {}, {}
    for line in (LM / "idefics3.txt").read_text().splitlines():
        word, name, *rest = line.split()
        if word == "key":
            keys[name] = rest[0]
        else:
            shapes[name] = tuple(map(int, rest))
    lines = (LM / "idefics3_cases.txt").read_text().splitlines()
    return keys, shapes, lines[0].split()[1:], lines


def weight(name, shape):
    """That of fixture.h."""
    drawn = (numbers(name, int(numpy.prod(shape))) - 1024).astype(numpy.float32).reshape(shape) / 1024
    return 1 + drawn / 4 if "norm" in name else drawn * 2 if name.startswith("token_embd") else drawn / 2


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
    kind = {int: 5, str: 8, float: 6}[type(value[0])]
    items = b"".join(text(v) if kind == 8 else struct.pack("<i" if kind == 5 else "<f", v) for v in value)
    return text(key) + struct.pack("<IIQ", 9, kind, len(value)) + items


def gguf(path, pairs, weights):
    infos, data = b"", b""
    for name, array in weights.items():
        shape = array.shape
        infos += text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape), 0, len(data))
        data += array.astype("<f4").tobytes()
        data += bytes(-len(data) % 32)
    head = struct.pack("<4sIQQ", b"GGUF", 3, len(weights), len(pairs))
    head += b"".join(pair(k, v) for k, v in pairs.items()) + infos
    pathlib.Path(path).write_bytes(head + bytes(-len(head) % 32) + data)


def number(value):
    try:
        return int(value)
    except ValueError:
        return float(value) if value[0].isdigit() else value


def two_files():
    """A text model in GGUF, and its vision encoder beside it."""
    keys, shapes, tokens, lines = fixture()
    weights = {name: weight(name, shape) for name, shape in shapes.items()}
    texts = {k: number(v) for k, v in keys.items() if not k.startswith("clip.")}
    # The fixture's rows are in the order of llama's files: pairs side by side.
    texts |= {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "gpt-2", "tokenizer.ggml.tokens": tokens,
              "tokenizer.ggml.token_type": [3] * 10 + [1] * (len(tokens) - 10), "tokenizer.ggml.merges": ["\u010a \u010a"],
              "tokenizer.ggml.eos_token_id": 8}
    gguf("text.gguf", texts, {k: v for k, v in weights.items() if not k.startswith(("v.", "mm."))})
    clip = {k: number(v) for k, v in keys.items() if k.startswith("clip.")}
    clip |= {"general.architecture": "clip", "clip.vision.image_mean": [0.5] * 3, "clip.vision.image_std": [0.5] * 3}
    encoder = {k: v for k, v in weights.items() if k.startswith(("v.", "mm."))}
    gguf("mmproj.gguf", clip, encoder)
    # As llama.cpp once wrote them.
    swap = {"ffn_up": "ffn_down", "ffn_down": "ffn_up"}
    gguf("swapped.gguf", clip, {".".join(swap.get(p, p) for p in k.split(".")): v for k, v in encoder.items()})
    return lines


def make_image(path, height, width):
    image = (numbers(f"pixels {height} {width}", height * width * 3) & 255).astype(numpy.uint8).reshape(height, width, 3)
    png(path, width, height, 8, 2, rows_of(image))


def first_token(lines, name):
    """The most probable token behind a prompt of the cases."""
    at = next(i for i, line in enumerate(lines) if line.startswith(f"case {name} "))
    end = next((i for i in range(at + 1, len(lines)) if lines[i].startswith("case ")), len(lines))
    last = max(i for i in range(at, end) if lines[i].startswith("row "))
    return int(numpy.argmax([float(x) for line in lines[last + 1:end] for x in line.split()]))


def generated(*args):
    done = tenon("generate", *args, "--raw", "--json", "-n", 1, "--cache", "f32")
    return json.loads(done.stdout)["tokens"][0]["id"]


def models_of_two_files_read_images():
    lines = two_files()
    make_image("one.png", 30, 70)
    make_image("two.png", 64, 20)
    for encoder in ("mmproj.gguf", "swapped.gguf"):
        model = ["text.gguf", "--mmproj", encoder]
        assert generated(*model, "--image", "one.png", "What is this?") == first_token(lines, "one")
        assert generated(*model, "--image", "one.png,two.png", "User:<image><image>same?") == first_token(lines, "two")
    refused("generate", "text.gguf", "--image", "one.png", "What?", saying="text.gguf reads no images: clip.projector_type is missing")
    refused("generate", "text.gguf", "--mmproj", "text.gguf", "What?", saying="text.gguf reads no images")
    refused("generate", *model, "--image", "one.png", "<image><image>",
            saying="the prompt has 2 of the mark '<image>', expected 1, one for each image")
    refused("generate", *model, "--image", "none.png", "What?", saying="none.png")
    pathlib.Path("notes.what").write_text("no image")
    refused("generate", *model, "--image", "notes.what", "What?", saying="notes.what")


def several_processes_read_images():
    if not tap.has_mpi("mpirun"):
        return "no MPI is installed"
    lines = two_files()
    make_image("one.png", 30, 70)
    for how in ("pipeline", "tensor"):
        done = tenon("run", "-n", 2, "--allow-root", tap.TENON, "generate", "text.gguf", "--mmproj", "mmproj.gguf", "--image", "one.png",
                     "What is this?", "--raw", "--json", "-n", 1, "--cache", "f32", "--parallel", how)
        assert json.loads(done.stdout)["tokens"][0]["id"] == first_token(lines, "one"), how
    return None


def chats_have_images():
    two_files()
    make_image("one.png", 30, 70)
    command = [tap.TENON, "chat", "text.gguf", "--mmproj", "mmproj.gguf", "--template", "smolvlm", "-n", "3", "-t", "0"]

    def said(lines, *more):
        done = subprocess.run([*command, *more], input=lines, env=tap.ENVIRONMENT, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done
    plain, shown = said("What?\n"), said("/image one.png\nWhat?\n")
    assert shown.stdout != plain.stdout, shown.stdout
    assert said("What?\n", "--image", "one.png").stdout == shown.stdout
    wrong = said("/image none.png\nWhat?\n")
    assert wrong.stdout == plain.stdout and "none.png" in wrong.stderr, wrong


def the_template_of_the_processor_counts():
    folder("vlm")
    form = ("<|im_start|>{% for message in messages %}{{message['role'] | capitalize}}{% if message['content'][0]['type'] == 'image' "
            "%}{{':'}}{% else %}{{': '}}{% endif %}{% for line in message['content'] %}{% if line['type'] == 'text' %}"
            "{{line['text']}}{% elif line['type'] == 'image' %}{{ '<image>' }}{% endif %}{% endfor %}<end_of_utterance>\n"
            "{% endfor %}{% if add_generation_prompt %}{{ 'Assistant:' }}{% endif %}") # SmolVLM's
    for other in ("none", "<|im_start|>{{x}}<|im_end|>"):
        pathlib.Path("vlm/tokenizer_config.json").write_text(json.dumps({"chat_template": other}))
        pathlib.Path("vlm/chat_template.json").write_text(json.dumps({"chat_template": form}))
        shown = json.loads(tenon("model", "show", "vlm", "--json").stdout)["metadata"]
        assert shown["tokenizer.chat_template"] == form, shown["tokenizer.chat_template"]
    done = subprocess.run([tap.TENON, "chat", "vlm", "-n", "3", "-t", "0"], input="What?\n", env=tap.ENVIRONMENT,
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    pathlib.Path("vlm/chat_template.json").write_text("{")
    refused("model", "show", "vlm", saying="chat_template.json")


def safetensors(path, weights):
    header, data = {}, b""
    for name, array in weights.items():
        part = array.astype("<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": array.shape, "data_offsets": [len(data), len(data) + len(part)]}
        data += part
    head = json.dumps(header).encode()
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(head)) + head + data)


TEXT = {"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
        "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj", "attn_norm": "input_layernorm",
        "ffn_norm": "post_attention_layernorm"}
TOWER = {"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_out": "self_attn.out_proj",
         "ffn_up": "mlp.fc1", "ffn_down": "mlp.fc2", "ln1": "layer_norm1", "ln2": "layer_norm2"}
ENDS = {"token_embd": "model.text_model.embed_tokens", "output_norm": "model.text_model.norm", "output": "lm_head",
        "v.patch_embd": "model.vision_model.embeddings.patch_embedding", "v.post_ln": "model.vision_model.post_layernorm",
        "v.position_embd": "model.vision_model.embeddings.position_embedding", "mm.model.fc": "model.connector.modality_projection.proj"}


def their_name(name):
    part, kind = name.rsplit(".", 1)
    if part in ENDS:
        return f"{ENDS[part]}.{kind}"
    where, layer, part = part.rsplit(".", 2)
    return (f"model.text_model.layers.{layer}.{TEXT[part]}.{kind}" if where == "blk" else
            f"model.vision_model.encoder.layers.{layer}.{TOWER[part]}.{kind}")


def halves(array, heads):
    shape = array.shape
    return array.reshape(heads, shape[0] // heads // 2, 2, *shape[1:]).swapaxes(1, 2).reshape(shape)


def folder(name, config=None, processor=None):
    keys, shapes, tokens, lines = fixture()
    path = pathlib.Path(name)
    path.mkdir()
    weights = {}
    for key, shape in shapes.items():
        array = weight(key, shape)
        if key.startswith("blk.") and (".attn_q." in key or ".attn_k." in key):
            array = halves(array, 4 if ".attn_q." in key else 2)
        weights[their_name(key)] = array
    safetensors(path / "model.safetensors", weights)
    clip = {k.removeprefix("clip.vision."): number(v) for k, v in keys.items()}
    whole = {"model_type": "smolvlm", "scale_factor": clip["projector.scale_factor"],
             "text_config": {"model_type": "llama", "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "head_dim": 8,
                             "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 1024, "rms_norm_eps": 1e-5},
             "vision_config": {"image_size": clip["image_size"], "patch_size": clip["patch_size"], "num_attention_heads": 2,
                               "hidden_size": clip["embedding_length"], "intermediate_size": clip["feed_forward_length"],
                               "num_hidden_layers": clip["block_count"], "hidden_act": "gelu_pytorch_tanh"}}
    whole["vision_config"].update(config or {})
    (path / "config.json").write_text(json.dumps(whole))
    made = {"image_processor_type": "SmolVLMImageProcessor", "size": {"longest_edge": clip["preproc_image_size"]},
            "max_image_size": {"longest_edge": clip["image_size"]}, "resample": 1, "image_mean": [0.5] * 3, "image_std": [0.5] * 3,
            "do_image_splitting": True, "rescale_factor": 1 / 255}
    (path / "preprocessor_config.json").write_text(json.dumps(made | (processor or {})))
    (path / "tokenizer.json").write_text(json.dumps(
        {"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}, "post_processor": None,
         "added_tokens": [{"id": i, "content": token, "special": True} for i, token in enumerate(tokens[:10])],
         "model": {"type": "BPE", "vocab": {token: i for i, token in enumerate(tokens)}, "merges": [["\u010a", "\u010a"]]}}))
    return lines


def folders_read_images():
    lines = folder("vlm")
    make_image("one.png", 30, 70)
    make_image("whole.png", 33, 47)
    assert generated("vlm", "--image", "one.png", "What is this?") == first_token(lines, "one")
    folder("whole", processor={"do_image_splitting": False})
    assert generated("whole", "--image", "whole.png", "What?") == first_token(lines, "whole")
    folder("newer", processor={"image_processor_type": "Idefics3ImageProcessorFast"})
    assert generated("newer", "--image", "one.png", "What is this?") == first_token(lines, "one")
    tenon("model", "convert", "vlm", "vlm.gguf")  # the vision encoder comes with it
    assert generated("vlm.gguf", "--image", "one.png", "What is this?") == first_token(lines, "one")
    folder("other", processor={"image_processor_type": "CLIPImageProcessor"})
    refused("generate", "other", "--image", "one.png", "What?", saying="images for the projector 'CLIPImageProcessor'")
    tenon("generate", "other", "--raw", "-n", 1, "What?")  # texts are read all the same
    rows = [({"hidden_act": "gelu"}, None, 'config.json: "hidden_act": expected gelu_pytorch_tanh'),
            ({"patch_size": 0}, None, 'config.json: "patch_size": expected a number from 1 on'),
            (None, {"max_image_size": {"longest_edge": 30}}, '"max_image_size": expected a longest_edge that is the image_size'),
            (None, {"image_mean": [0.5]}, '"image_mean": expected three numbers'),
            (None, {"rescale_factor": 1}, '"rescale_factor": expected 1 / 255'),
            (None, {"do_normalize": False}, '"do_normalize": expected true')]
    for i, (config, processor, saying) in enumerate(rows):
        folder(f"wrong{i}", config, processor)
        refused("generate", f"wrong{i}", "What?", saying=saying)


if __name__ == "__main__":
    tap.run([*([images_of_png_are_bytes_of_three_colours] if tap.has_plugins("org.tenon.png") else []),
             *([images_of_jpeg_are_those_of_pillow, images_of_jpeg_are_turned_as_their_camera_noted] if tap.has_plugins("org.tenon.jpeg") else []),
             images_of_netpbm_are_read_in_place,
             *([damaged_images_are_told] if tap.has_plugins("org.tenon.png", "org.tenon.jpeg") else []),
             *([models_of_two_files_read_images, several_processes_read_images, chats_have_images, folders_read_images, the_template_of_the_processor_counts]
               if tap.has_plugins("org.tenon.png", "org.tenon.idefics3", "org.tenon.bpe", "org.tenon.gguf", "org.tenon.huggingface") else [])])
