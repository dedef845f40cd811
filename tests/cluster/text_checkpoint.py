"""Golden cases of other families as models that read and write text: with the tokenizer of stories260K, for which their
embeddings and heads get more rows. Their text means nothing, and is the same in every run."""

import json
import os
import shutil
import struct

from harness import GOLDEN, STORIES
from random_checkpoint import random_numbers, safetensors_head

# One for each kind of state that a layer keeps of a sequence.
KINDS = {
    "keys and values": "qwen3moe-bf16",
    "windows": "gemma4-dense-bf16",
    "a latent": "deepseekv3-bf16",
    "a latent and an index": "mtp-glmdsa-bf16",
    "a recurrent state": "mtp-qwen35-bf16",
    "recurrent states, pools and streams": "glm5next-bf16",
    "windows and entries": "deepseekv4-bf16",
    "n-grams and blocks": "qwen4exp-bf16",
}


END_OF_STORIES = 2  # of n-grams too, which need an end


def read_tensors(path):
    """name -> (dtype, shape, bytes)."""
    with open(path, "rb") as file:
        data = file.read()
    end = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:end])
    header.pop("__metadata__", None)
    return {name: (of["dtype"], of["shape"], data[end + of["data_offsets"][0]:end + of["data_offsets"][1]])
            for name, of in header.items()}


def write_tensors(path, tensors):
    head, _ = safetensors_head({name: (dtype, shape, len(data)) for name, (dtype, shape, data) in tensors.items()})
    with open(path, "wb") as file:
        file.write(head)
        for _, _, data in tensors.values():
            file.write(data)


def with_rows(tensor, rows):
    dtype, (own, columns), data = tensor
    assert dtype == "BF16", dtype
    return dtype, [rows, columns], bytes(data) + bytes(random_numbers((rows - own) * columns))


def with_repeated_rows(tensor, rows):
    dtype, (own, columns), data = tensor
    return dtype, [rows, columns], (bytes(data) * (rows // own + 1))[:len(data) // own * rows]


def write_text_checkpoint(case, folder):
    """Writes the golden case `case` as a model of text to `folder`."""
    os.makedirs(folder)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(os.path.join(STORIES, name), folder)
    with open(os.path.join(STORIES, "config.json"), encoding="utf-8") as file:
        tokens = json.load(file)["vocab_size"]
    with open(os.path.join(GOLDEN, case, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    for part in (config, config.get("text_config", {})):
        part.pop("eos_token_id", None)
        if "vocab_size" in part:
            part["vocab_size"] = tokens
        if "ngram_size" in part:
            part["eos_token_id"] = END_OF_STORIES
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file)
    tensors = read_tensors(os.path.join(GOLDEN, case, "model.safetensors"))
    for name in tensors:
        if name.endswith(("embed_tokens.weight", "lm_head.weight")) or name in ("embed.weight", "head.weight"):
            tensors[name] = with_rows(tensors[name], tokens)
        elif name.endswith(".tid2eid"):
            tensors[name] = with_repeated_rows(tensors[name], tokens)
    write_tensors(os.path.join(folder, "model.safetensors"), tensors)
