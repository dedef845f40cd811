"""A model whose weights hold a few texts: each token has a fixed successor, whatever came before. It is a real
checkpoint of a Llama with one layer, so that everything in a server is tested except meaningful arithmetic: agents that
need a model that calls their tools get one in a few milliseconds, always the same.

The chat template chooses the text by the request: the call of an offered tool, the last words once a tool's result is
there, otherwise some words.
"""

import json
import os
import struct
from array import array

HIDDEN = 512  # orthogonal codes: one for all bytes, one for each special token and piece of a text
GAIN = 64.0  # of the successor's logit: no temperature chooses another token
CONTEXT = 131_072
PIECE = 7  # characters of a text per token, or more if a piece would occur twice

PLAIN = "I am a scripted model, and this is all I say."
DONE = "The tool has answered, and the task is done."


def byte_characters():
    """The characters that stand for bytes in byte-level vocabularies."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    characters, extra = {}, 0
    for byte in range(256):
        if byte in plain:
            characters[byte] = chr(byte)
        else:
            characters[byte] = chr(256 + extra)
            extra += 1
    return characters


BYTES = byte_characters()


def spelled(text):
    return "".join(BYTES[byte] for byte in text.encode())


def call_text(name, arguments):
    return "<tool_call>\n" + json.dumps({"name": name, "arguments": arguments}) + "\n</tool_call>"


class Vocabulary:
    """Ids of bytes, special tokens and pieces, and their successors."""

    def __init__(self, texts):
        self.ids = {BYTES[byte]: byte for byte in range(256)}
        self.special = []
        self.follows = {}  # token -> its successor; all bytes count as one token
        self.end = self.add_special("<|im_end|>")
        self.begin = self.add_special("<|im_start|>")
        self.starts = {}
        for name, text in texts.items():
            self.starts[name] = self.add_special(f"<|say_{name}|>")
            last = self.starts[name]
            for piece in self.pieces(text):
                self.ids[piece] = self.follows[last] = len(self.ids)
                last = self.follows[last]
            self.follows[last] = self.end
        self.follows[self.end] = self.end
        self.follows[self.begin] = self.end
        self.follows[0] = self.follows[self.starts["plain"]]

    def add_special(self, text):
        self.ids[text] = len(self.ids)
        self.special.append(text)
        return self.ids[text]

    def pieces(self, text):
        """The text in pieces that are unique tokens."""
        found, text = [], spelled(text)
        while text:
            length = min(PIECE, len(text))
            while length < len(text) and (text[:length] in self.ids or text[:length] in found):
                length += 1
            if text[:length] in self.ids or text[:length] in found:  # the end of it: joined with the previous piece
                text = found.pop() + text
                length = len(text)
            found.append(text[:length])
            text = text[length:]
        return found


def code_of(index):
    """A row of Sylvester's matrix: of +1 and -1, orthogonal to all others."""
    return array("f", (1.0 - 2.0 * ((index & i).bit_count() & 1) for i in range(HIDDEN)))


def weights_of(vocabulary):
    """Tensors by name: (shape, floats)."""
    size = len(vocabulary.ids)
    codes = [code_of(0)] * 256 + [code_of(1 + i) for i in range(size - 256)]
    head = [array("f", bytes(4 * HIDDEN)) for _ in range(size)]
    for token, following in vocabulary.follows.items():
        for i, sign in enumerate(codes[token]):
            head[following][i] += sign * GAIN / HIDDEN
    zeros = lambda *shape: (shape, array("f", bytes(4 * shape[0] * (shape[1] if len(shape) > 1 else 1))))
    ones = lambda: ((HIDDEN,), array("f", [1.0]) * HIDDEN)
    flat = lambda rows: array("f", b"".join(row.tobytes() for row in rows))
    layer = "model.layers.0."
    return {
        "model.embed_tokens.weight": ((size, HIDDEN), flat(codes)), "lm_head.weight": ((size, HIDDEN), flat(head)),
        "model.norm.weight": ones(), layer + "input_layernorm.weight": ones(),
        layer + "post_attention_layernorm.weight": ones(),
        layer + "self_attn.q_proj.weight": zeros(32, HIDDEN), layer + "self_attn.k_proj.weight": zeros(16, HIDDEN),
        layer + "self_attn.v_proj.weight": zeros(16, HIDDEN), layer + "self_attn.o_proj.weight": zeros(HIDDEN, 32),
        layer + "mlp.gate_proj.weight": zeros(64, HIDDEN), layer + "mlp.up_proj.weight": zeros(64, HIDDEN),
        layer + "mlp.down_proj.weight": zeros(HIDDEN, 64)}


def write_safetensors(path, tensors):
    header, at = {}, 0
    for name, (shape, floats) in tensors.items():
        end = at + 4 * len(floats)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, end]}
        at = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, floats in tensors.values():
            file.write(floats.tobytes())


TEMPLATE = """{%- if tools %}{{- '<|im_start|>system\\nFunctions, as JSON:\\n' }}
{%- for tool in tools %}{{- tool | tojson }}{{- '\\n' }}{%- endfor %}
{{- 'A call is <tool_call>\\n{"name": NAME, "arguments": {}}\\n</tool_call><|im_end|>\\n' }}{%- endif %}
{%- set ns = namespace(has_result=false) %}
{%- for message in messages %}
{{- '<|im_start|>' + message.role + '\\n' }}{%- if message.content %}{{- message.content }}{%- endif %}
{%- for call in message.tool_calls or [] %}
{{- '\\n<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' }}{{- call.function.arguments | tojson }}
{{- '}\\n</tool_call>' }}{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- if message.role == 'tool' %}{%- set ns.has_result = true %}{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}
{%- set ns.chosen = '' %}{%- if ns.has_result %}{%- set ns.chosen = 'done' %}{%- endif %}
CHOICE
{%- if ns.chosen == '' %}{{- '<|say_plain|>' }}{%- elif ns.chosen == 'done' %}{{- '<|say_done|>' }}{%- endif %}
{%- endif %}"""


def template_for(tools):
    lines = []
    for name in tools:
        lines.append("{%- if ns.chosen == '' %}{%- for tool in tools or [] %}{%- if ns.chosen == '' and "
                     f"tool.function.name == '{name}' %}}"
                     "{%- set ns.chosen = 'call' %}" f"{{{{- '<|say_call_{name}|>' }}}}"
                     "{%- endif %}{%- endfor %}{%- endif %}")
    return TEMPLATE.replace("CHOICE", "\n".join(lines))


def write_scripted_model(folder, calls):
    """`calls`: the arguments with which the model calls a tool, by the tool's name; the first one that is offered."""
    texts = {"plain": PLAIN, "done": DONE}
    texts |= {f"call_{name}": call_text(name, arguments) for name, arguments in calls.items()}
    vocabulary = Vocabulary(texts)
    assert len(vocabulary.ids) - 256 < HIDDEN, "the texts are too long: give the model a larger HIDDEN"
    os.makedirs(folder)
    special = [{"id": vocabulary.ids[text], "content": text, "single_word": False, "lstrip": False, "rstrip": False,
                "normalized": False, "special": True} for text in vocabulary.special]
    files = {
        "config.json": {
            "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": len(vocabulary.ids),
            "hidden_size": HIDDEN, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2,
            "num_key_value_heads": 1, "head_dim": 16, "max_position_embeddings": CONTEXT, "rms_norm_eps": 1e-6,
            "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": False, "torch_dtype": "float32",
            "eos_token_id": vocabulary.end},
        "generation_config.json": {"eos_token_id": vocabulary.end},
        "tokenizer.json": {
            "version": "1.0", "truncation": None, "padding": None, "added_tokens": special, "normalizer": None,
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
            "post_processor": None, "decoder": {"type": "ByteLevel"},
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                      "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                      "vocab": vocabulary.ids, "merges": []}},
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|im_end|>", "model_max_length": CONTEXT,
            "clean_up_tokenization_spaces": False, "chat_template": template_for(calls)}}
    for name, value in files.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            json.dump(value, file)
    write_safetensors(os.path.join(folder, "model.safetensors"), weights_of(vocabulary))
    return folder
