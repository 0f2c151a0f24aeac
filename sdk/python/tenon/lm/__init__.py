# SPDX-License-Identifier: MIT
"""Language models: a file or folder that generates text, token by token.

    import tenon.lm
    model = tenon.lm.open("SmolLM2-135M-Instruct.Q4_1.gguf")
    for text in model.generate("Once upon a time", max_tokens=50, temperature=0.8):
        print(text, end="", flush=True)
    print(model.chat("What is a tenon?").read())
"""

from .generation import Batch, Generation, Token
from .grammar import Grammar
from .model import Model, Step, open
from .sequence import Image, Sampler, Sequence, infer_batch

__all__ = ["Batch", "Generation", "Grammar", "Image", "Model", "Sampler", "Sequence", "Step", "Token", "infer_batch", "open"]
