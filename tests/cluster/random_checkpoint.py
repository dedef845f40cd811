"""Llama checkpoints of random BF16 weights, as small or large as a test wants them."""

import json
import os
import random
import shutil
import struct
import zlib

from harness import STORIES

HEAD = 64
HIGH_BYTES = bytes(0x3c | (i & 0x80) for i in range(256))  # of a BF16 number between 2^-7 and 2^-5 or its negative


def shapes_of(config):
    hidden, inner, vocabulary = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    keys = config["num_key_value_heads"] * HEAD
    shapes = {"model.embed_tokens.weight": (vocabulary, hidden), "model.norm.weight": (hidden,)}
    for layer in range(config["num_hidden_layers"]):
        for name, shape in {
                "input_layernorm": (hidden,), "post_attention_layernorm": (hidden,),
                "self_attn.q_proj": (hidden, hidden), "self_attn.k_proj": (keys, hidden),
                "self_attn.v_proj": (keys, hidden), "self_attn.o_proj": (hidden, hidden),
                "mlp.gate_proj": (inner, hidden), "mlp.up_proj": (inner, hidden), "mlp.down_proj": (hidden, inner)}.items():
            shapes[f"model.layers.{layer}.{name}.weight"] = shape
    return shapes


def count_of(shape):
    return shape[0] if len(shape) == 1 else shape[0] * shape[1]


def random_numbers(count):
    noise = random.Random(count).randbytes(2 * count)
    numbers = bytearray(2 * count)
    numbers[0::2] = noise[0::2]
    numbers[1::2] = noise[1::2].translate(HIGH_BYTES)
    return numbers


def safetensors_head(tensors):
    """(the bytes before the tensors, the bytes of these) of a file with such tensors: name -> (dtype, shape, bytes)."""
    header, at = {}, 0
    for name, (dtype, shape, size) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text, at


def write_file(path, shapes, is_hollow):
    """One safetensors file; the bytes of its tensors."""
    head, size = safetensors_head({name: ("BF16", shape, 2 * count_of(shape)) for name, shape in shapes.items()})
    with open(path, "wb") as file:
        file.write(head)
        if is_hollow:
            file.truncate(len(head) + size)
            return size
        block = random_numbers(1 << 20)  # every tensor starts at another offset of it
        for name, shape in shapes.items():
            left, begin = 2 * count_of(shape), 2 * (zlib.crc32(name.encode()) % 4096)
            while left > 0:
                piece = block[begin:begin + left]
                file.write(piece)
                left, begin = left - len(piece), 0
    return size


def write_checkpoint(folder, layers, hidden=2048, inner=5632, is_hollow=False, shards=1):
    """A model with the tokenizer of stories260K; the bytes of its weights. A hollow one has zeros that take no disk."""
    os.makedirs(folder)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(os.path.join(STORIES, name), folder)
    with open(os.path.join(STORIES, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    config |= {"hidden_size": hidden, "intermediate_size": inner, "num_hidden_layers": layers, "head_dim": HEAD,
               "num_attention_heads": hidden // HEAD, "num_key_value_heads": hidden // HEAD // 4, "torch_dtype": "bfloat16"}
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file)
    shapes = shapes_of(config)
    if shards == 1:
        return write_file(os.path.join(folder, "model.safetensors"), shapes, is_hollow)
    names, written, weight_map = list(shapes), 0, {}
    for number in range(shards):
        file = f"model-{number + 1:05}-of-{shards:05}.safetensors"
        own = names[len(names) * number // shards:len(names) * (number + 1) // shards]
        weight_map |= {name: file for name in own}
        written += write_file(os.path.join(folder, file), {name: shapes[name] for name in own}, is_hollow)
    with open(os.path.join(folder, "model.safetensors.index.json"), "w", encoding="utf-8") as file:
        json.dump({"weight_map": weight_map}, file)
    return written
