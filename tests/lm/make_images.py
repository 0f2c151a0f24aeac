#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes what the tests of models that read images compare with. By transformers: idefics3.txt has the
metadata and shapes of a small random model, as make_fixtures.py writes them, and idefics3_cases.txt, for some
prompts with images, the ids that the processor makes of them, rows of the images, and logits. By Pillow: resized.txt has
hashes of resized images. Pixels are numbers that follow from a name and a size.

    python3 make_images.py   # needs torch, torchvision, transformers and Pillow 11; writes beside this file

Pillow 13 resizes some images along the other axis first, which gives other bytes.
"""

import pathlib

import numpy
import PIL.Image
import tokenizers
import torch
import transformers
from transformers.models.idefics3.image_processing_pil_idefics3 import Idefics3ImageProcessorPil

from make_fixtures import GROUPS, HEADS, PARTS, SIZES, halves, name_of, numbers, value

HERE = pathlib.Path(__file__).parent
# 15 patches a side, and one pixel is beside the last. (Of 25 PyTorch would sort some into the bucket of a neighbour, by
# the rounding of a sum that differs between processors; of the sides of known models it does not.)
TILE, PATCH, SHUFFLE, INSIDE, INSIDE_FEED, INSIDE_HEADS, INSIDE_LAYERS = 31, 2, 3, 16, 24, 2, 2
EDGE = 62
MARK = "<image>"
CONTROL = ["<|endoftext|>", MARK, "<fake_token_around_image>", "<global-img>", "<row_1_col_1>", "<row_1_col_2>",
           "<row_2_col_1>", "<row_2_col_2>", "<end_of_utterance>", "<|im_start|>"]
TOKENS = CONTROL + ["Ċ", "ĊĊ", "Ġ"] + list("User:AitanWh?ogSymc")
VISION = {"embeddings.patch_embedding": "patch_embd", "embeddings.position_embedding": "position_embd",
          "post_layernorm": "post_ln", "layer_norm1": "ln1", "layer_norm2": "ln2", "self_attn.q_proj": "attn_q",
          "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.out_proj": "attn_out",
          "mlp.fc1": "ffn_up", "mlp.fc2": "ffn_down"}
# The prompt, whether images are cut, their heights and widths.
CASES = {
    "one": (MARK + "What is this?", True, [(30, 70)]),
    "two": ("User:" + MARK + MARK + "same?", True, [(30, 70), (64, 20)]),
    "square": ("Any" + MARK, True, [(60, 60)]),
    "whole": (MARK + "What?", False, [(33, 47)]),
    "wholes": (MARK + "ate" + MARK + "cat", False, [(33, 47), (101, 7)]),
    "strip": (MARK, True, [(1, 300)]),
}
RESIZED = [(7, 9, 14, 27, f) for f in (1, 2, 3)] + [(64, 48, 21, 13, f) for f in (1, 2, 3)] + [
    (50, 31, 50, 62, 1), (50, 31, 100, 31, 1), (33, 33, 33, 33, 1), (1, 1, 5, 4, 1), (5, 300, 40, 3, 1), (165, 78, 32, 41, 1)]


def pixels(height, width):
    return (numbers(f"pixels {height} {width}", height * width * 3) & 255).astype(numpy.uint8).reshape(height, width, 3)


def vision_name(name):
    part, kind = name.rsplit(".", 1)
    if part == "model.connector.modality_projection.proj":
        return f"mm.model.fc.{kind}"
    part = part.removeprefix("model.vision_model.")
    if part.startswith("encoder.layers."):
        layer, part = part.removeprefix("encoder.layers.").split(".", 1)
        return f"v.blk.{layer}.{VISION[part]}.{kind}"
    return f"v.{VISION[part]}.{kind}"


def fill(model):
    shapes = {}
    for name, place in model.state_dict().items():
        is_text = name.startswith("model.text_model.") or name == "lm_head.weight"
        new = name_of(name.replace("model.text_model.", "model."), PARTS) if is_text else vision_name(name)
        shapes[new] = place.shape
        weight = value(new, place.shape)
        if new.startswith("blk.") and (".attn_q." in new or ".attn_k." in new):
            weight = halves(weight, HEADS if ".attn_q." in new else GROUPS)
        place.copy_(weight)
    return shapes


def make_model():
    text = dict(SIZES, model_type="llama", head_dim=8, rope_parameters={"rope_type": "default", "rope_theta": 10000.0})
    vision = dict(hidden_size=INSIDE, intermediate_size=INSIDE_FEED, num_hidden_layers=INSIDE_LAYERS,
                  num_attention_heads=INSIDE_HEADS, image_size=TILE, patch_size=PATCH)
    config = transformers.Idefics3Config(text_config=text, vision_config=vision, scale_factor=SHUFFLE,
                                         image_token_id=TOKENS.index(MARK), tie_word_embeddings=False)
    config._attn_implementation = "eager"
    return transformers.Idefics3ForConditionalGeneration(config).float().eval()


def make_tokenizer():
    vocabulary = {token: i for i, token in enumerate(TOKENS)}
    inner = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, [("Ċ", "Ċ")]))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = tokenizers.decoders.ByteLevel()
    inner.add_special_tokens(CONTROL)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="<end_of_utterance>",
                                                bos_token="<|im_start|>", extra_special_tokens=CONTROL[1:8])


def make_processor(is_split):
    images = Idefics3ImageProcessorPil(size={"longest_edge": EDGE}, max_image_size={"longest_edge": TILE},
                                       do_image_splitting=is_split)
    return transformers.Idefics3Processor(images, make_tokenizer(), image_seq_len=(TILE // PATCH // SHUFFLE) ** 2)


def metadata():
    clip = {"image_size": TILE, "patch_size": PATCH, "embedding_length": INSIDE, "feed_forward_length": INSIDE_FEED,
            "block_count": INSIDE_LAYERS, "attention.head_count": INSIDE_HEADS, "attention.layer_norm_epsilon": 1e-6,
            "projector.scale_factor": SHUFFLE, "preproc_image_size": EDGE}
    text = {"block_count": 2, "embedding_length": 16, "feed_forward_length": 24, "context_length": 1024,
            "attention.head_count": HEADS, "attention.head_count_kv": GROUPS, "attention.key_length": 8,
            "attention.value_length": 8, "attention.layer_norm_rms_epsilon": 1e-5, "rope.dimension_count": 8,
            "rope.freq_base": 10000.0}
    return {"general.architecture": "llama", **{f"llama.{k}": v for k, v in text.items()},
            "clip.projector_type": "idefics3", **{f"clip.vision.{k}": v for k, v in clip.items()}}


def lines_of(values):
    texts = [f"{x:.7g}" for x in values]
    return [" ".join(texts[i:i + 8]) for i in range(0, len(texts), 8)]


def write_case(name, model):
    prompt, is_split, sizes = CASES[name]
    images = [PIL.Image.fromarray(pixels(*size)) for size in sizes]
    inputs = make_processor(is_split)(text=prompt, images=[images], return_tensors="pt")
    model.config.text_config._attn_implementation = "eager"
    with torch.no_grad():
        logits = model(**inputs).logits[0]
        features = model.get_image_features(inputs["pixel_values"], inputs.get("pixel_attention_mask")).pooler_output
    features = torch.cat(list(features))
    ids = inputs["input_ids"][0].tolist()
    marks = [i for i, x in enumerate(ids) if x == TOKENS.index(MARK)]
    lines = [f"case {name} {int(is_split)} {len(sizes)} {len(ids)} {prompt}"]
    lines += [f"size {height} {width}" for height, width in sizes]
    lines.append("ids " + " ".join(map(str, ids)))
    for row in (0, len(marks) // 2, len(marks) - 1):
        lines += [f"feature {row}"] + lines_of(features[row].tolist())
    for row in sorted({0, marks[0], marks[-1], len(ids) // 2, len(ids) - 1}):
        lines += [f"row {row}"] + lines_of(logits[row].tolist())
    print(name, len(ids), "positions", tuple(inputs["pixel_values"].shape), f"logits of {logits.std():.3f}, features of {features.std():.3f}")
    return lines


def main():
    model = make_model()
    with torch.no_grad():
        shapes = fill(model)
    lines = [f"key {key} {text}" for key, text in metadata().items()]
    lines += [f"weight {key} {' '.join(map(str, shape))}" for key, shape in shapes.items()]
    (HERE / "idefics3.txt").write_text("\n".join(lines) + "\n")
    lines = ["tokens " + " ".join(TOKENS)]
    for name in CASES:
        lines += write_case(name, model)
    (HERE / "idefics3_cases.txt").write_text("\n".join(lines) + "\n")
    lines = []
    for height, width, to_height, to_width, kind in RESIZED:
        data = PIL.Image.fromarray(pixels(height, width)).resize((to_width, to_height), kind).tobytes()
        state = 0xcbf29ce484222325
        for byte in data:
            state = (state ^ byte) * 0x100000001b3 & 0xffffffffffffffff
        lines.append(f"{height} {width} {to_height} {to_width} {kind} {state:016x}")
    (HERE / "resized.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
