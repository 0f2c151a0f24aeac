# SPDX-License-Identifier: MIT
"""A conversation with a language model, SmolLM2 say: each line is a message, and the reply appears as it is written. Ctrl-C ends a
reply, Ctrl-D the program.

    python3 chat.py SmolLM2-135M-Instruct.Q4_1.gguf
"""

import os
import sys

import tenon.lm

MOST = int(os.environ.get("EXAMPLE_TOKENS", 500))  # of a reply

model = tenon.lm.open(sys.argv[1])
messages = []
for line in sys.stdin:
    messages.append({"role": "user", "content": line.strip()})
    reply = model.chat(messages, max_tokens=MOST, temperature=0.6, top_p=0.9, repetition_penalty=1.1)
    try:
        for text in reply:
            print(text, end="", flush=True)
    except KeyboardInterrupt:
        pass
    print()
    messages.append({"role": "assistant", "content": reply.text})
