# SPDX-License-Identifier: MIT
"""A reply that is JSON by a schema: whatever the model knows, the program can read it.

    python3 schema.py SmolLM2-135M-Instruct.Q4_1.gguf
"""

import json
import sys

import tenon.lm

SCHEMA = {"type": "object", "additionalProperties": False, "required": ["word", "is_noun"],
          "properties": {"word": {"type": "string", "maxLength": 12}, "is_noun": {"type": "boolean"}}}

model = tenon.lm.open(sys.argv[1])
try:
    reply = model.chat("Is \"mortise\" a noun? Answer in JSON.", schema=SCHEMA)
except NotImplementedError as error:  # no token of this model is a brace
    sys.exit(f"schema.py: {error}")
print(json.dumps(json.loads(reply.read())))
