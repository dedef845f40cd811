"""Requests that are as expensive as we know how to make them, for tests of how much one hostile client slows down the others."""

import http.client
import itertools
import json
import os
import socket
import string
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cluster"))

import harness  # noqa: E402

TEMPLATE = os.path.join(harness.SOURCE, "tests/data/templates/Qwen-Qwen2.5-7B-Instruct.jinja")
MODEL = "stories260K"
SAY = [{"role": "user", "content": "a"}]
# On a busy machine a refusal or an answer may be slow, but nothing may take for ever.
PATIENCE_S = 120
SILENCE_S = 1  # after this an incomplete request counts as unanswered
READ_MAX = 64 << 20


def function(name, parameters):
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


def chat(**fields):
    return {"model": MODEL, "messages": SAY, "max_tokens": 4, **fields}


def schema_of_itself(width):
    """A parameter whose type is a union of itself, `width` times."""
    itself = {"anyOf": [{"$ref": "#/$defs/a"}] * width}
    return {"type": "object", "properties": {"p": {"$ref": "#/$defs/a"}}, "$defs": {"a": itself}}


def answer_schema(schema):
    return {"type": "json_schema", "json_schema": {"name": "s", "schema": schema}}


def wide_objects(count, keys):
    return {"oneOf": [{"type": "object", "properties": {f"k{at}_{i}": {"type": "string"} for i in range(keys)}} for at in range(count)]}


def calls_and_results(count):
    calls = [{"role": "assistant", "tool_calls": [{"function": {"name": f"f{i}", "arguments": {}}}]} for i in range(count)]
    return [*calls, *({"role": "tool", "tool_name": f"f{i}", "content": "x"} for i in reversed(range(count)))]


MASK = (1 << 64) - 1
# Boost.JSON's FNV-1a over a salt whose lowest 12 bits are known: a mapping of the C library, after its head.
FNV_START, FNV_PRIME, TABLE_SALT = 0xcbf29ce484222325, 0x100000001b3, 16
LETTERS = string.digits + string.ascii_letters


def fnv_step(value, letter):
    return ((ord(letter) ^ value) * FNV_PRIME) & MASK


def json_collisions(count):
    """Keys whose hashes in a JSON object agree in the lowest 12 bits."""
    found = []
    for number in itertools.count():
        begin = f"k{number:x}_"
        value = FNV_START + TABLE_SALT
        for letter in begin:
            value = fnv_step(value, letter)
        for letter in LETTERS:
            after = fnv_step(value, letter) & 0xfff
            if after < 0x100 and chr(after) in LETTERS:  # one more letter makes it zero
                found.append(begin + letter + chr(after))
        if len(found) >= count:
            return found[:count]


def murmur_collisions(count):
    """Texts with the same std::hash in libstdc++ (tests/support/colliding_keys.h)."""
    blocks = "it;`zmt4" * 2, "it~F\u07c7\u0325" * 2
    return ["".join(blocks[number >> bit & 1] for bit in range((count - 1).bit_length())) for number in range(count)]


def colliding_calls(count):
    names = murmur_collisions(count)
    return [{"role": "assistant", "tool_calls": [{"id": name, "function": {"name": name, "arguments": {}}} for name in names]}]


def worst_inputs():
    """(name, path, body) for each."""
    names = [f"tool_{i}" for i in range(12_000)]
    letters = [chr(0x4E00 + i) for i in range(9_000)]
    return [
        ("types of a schema of itself", "/v1/chat/completions", chat(tools=[function("f", schema_of_itself(1000))])),
        ("allowed tools of many tools", "/v1/chat/completions", chat(
            tools=[function(name, {}) for name in names],
            tool_choice={"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [
                {"type": "function", "function": {"name": name}} for name in reversed(names)]}})),
        ("an enum in many allOf", "/v1/chat/completions", chat(
            response_format=answer_schema({"type": "string", "enum": letters, "allOf": [{"enum": letters[:60]}] * 240}))),
        ("wide objects", "/v1/chat/completions", chat(response_format=answer_schema(wide_objects(6, 20_000)))),
        ("pieces of a large text", "/tokenize", {"model": MODEL, "content": "a b " * (3 << 20), "with_pieces": True}),
        ("one long word", "/v1/completions", {"model": MODEL, "prompt": "a" * (8 << 20), "max_tokens": 1}),
        ("one long prompt", "/v1/completions", {"model": MODEL, "prompt": "once upon " * (1 << 20), "max_tokens": 1}),
        ("items of one role", "/v1/responses", {"model": MODEL, "max_output_tokens": 1, "input": [
            {"role": "user", "content": "x" * 40} for _ in range(60_000)]}),
        ("blocks of one message", "/v1/messages", {"model": MODEL, "max_tokens": 1, "messages": [
            {"role": "user", "content": [{"type": "text", "text": "x" * 20}] * 100_000}]}),
        ("tools of unknown kinds", "/v1/responses", {"model": MODEL, "input": "a", "max_output_tokens": 1, "tools": [
            {"type": f"kind_{i}"} for i in range(50_000)]}),
        ("calls and results in reverse", "/api/chat", {"model": MODEL, "stream": False, "messages": calls_and_results(20_000)}),
        ("many messages", "/v1/chat/completions", chat(messages=SAY * 200_000)),
        ("deep brackets", "/v1/chat/completions", '{"messages":' + "[" * 500_000),
        ("a regex that multiplies", "/v1/completions", {"model": MODEL, "prompt": "a", "max_tokens": 4, "guided_regex": "((a{1,99}){1,99}){1,99}"}),
        ("many prompts", "/v1/completions", {"model": MODEL, "prompt": ["a"] * 100_000, "max_tokens": 1}),
        ("many inputs", "/v1/embeddings", {"model": MODEL, "input": ["a"] * 200_000}),
        ("many stops", "/v1/completions", {"model": MODEL, "prompt": "a", "stop": ["x" * 100] * 50_000, "max_tokens": 4}),
        ("many biases", "/v1/completions", {"model": MODEL, "prompt": "a", "max_tokens": 4, "logit_bias": {str(i): 1 for i in range(200_000)}}),
        ("fields whose hashes collide", "/v1/completions", {"model": MODEL, "prompt": "a", "x": dict.fromkeys(json_collisions(65_536), 1)}),
        ("objects whose fields collide", "/v1/completions", {"model": MODEL, "prompt": "a", "max_tokens": 1, "x": [
            dict.fromkeys(json_collisions(4096), 1)] * 4}),
        ("ids that collide", "/api/chat", {"model": MODEL, "stream": False, "messages": colliding_calls(16_384)}),
        ("keys of a schema that collide", "/v1/chat/completions", chat(response_format=answer_schema(
            {"type": "object", "properties": dict.fromkeys(murmur_collisions(4000), {})}))),
        ("arguments of many values", "/v1/chat/completions", chat(messages=[*SAY, {"role": "assistant", "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"a":[' + "0," * (6 << 20) + "0]}"}}]},
            {"role": "tool", "tool_call_id": "a", "content": "x"}])),
        ("many unknown fields", "/v1/completions", {"model": MODEL, "prompt": "a", "max_tokens": 1, **{f"x{i}": 1 for i in range(100_000)}}),
    ]


def raw_inputs():
    """(name, bytes) of requests that no HTTP library sends."""
    small = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"
    return [
        ("thousands of headers", small + b"X: a\r\n" * 9_000 + b"\r\n"),
        ("a body that never comes", b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 16777215\r\n\r\n{"),
        ("control through a proxy", b"POST /cluster/token HTTP/1.1\r\nHost: localhost\r\nVia: 1.1 x\r\nContent-Length: 2\r\n\r\n{}"),
        ("an endless head", b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * (1 << 20)),
    ]


class Attack:
    """Sends all of them in turn, repeatedly. It runs in its own process: see Attacker."""

    def __init__(self, port):
        self.port = port
        self.statuses = {}  # counts per input
        self.longest_s = {}  # per input
        bodies = [(name, path, body if isinstance(body, str) else json.dumps(body)) for name, path, body in worst_inputs()]
        self.works = [(name, lambda path=path, body=body.encode(): self.post(path, body)) for name, path, body in bodies]
        self.works += [(name, lambda data=data: self.throw(data)) for name, data in raw_inputs()]

    def send_all(self, tell):
        """Returns the violations; prints a line for each input."""
        for rounds in itertools.count():
            for name, work in self.works:
                began = time.monotonic()
                try:
                    status = work()
                except TimeoutError:
                    return f"{name}: no answer within {PATIENCE_S} s"
                except ConnectionRefusedError:
                    return f"{name}: nobody listens any more"
                except (OSError, http.client.HTTPException) as error:  # closed without an answer: allowed
                    status = type(error).__name__
                self.longest_s[name] = max(self.longest_s.get(name, 0), round(time.monotonic() - began, 2))
                counts = self.statuses.setdefault(name, {})
                counts[str(status)] = counts.get(str(status), 0) + 1
                tell(rounds)
            tell(rounds + 1)

    def post(self, path, body):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            try:
                connection.request("POST", path, body, {"Content-Type": "application/json"})
            except (BrokenPipeError, ConnectionResetError):
                pass  # refused before all was sent: the answer may have arrived
            response = connection.getresponse()
            left = READ_MAX
            while left > 0 and (piece := response.read(min(left, 1 << 20))):
                left -= len(piece)
            return response.status
        finally:
            connection.close()

    def throw(self, data):
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S) as caller:
            try:
                caller.sendall(data)
            except (BrokenPipeError, ConnectionResetError):
                pass  # as above
            caller.settimeout(SILENCE_S)
            try:
                return int((caller.recv(64).split(b" ") + [b"0", b"0"])[1])
            except TimeoutError:
                return "silent"


class Attacker:
    """An attack in its own process, so that it does not slow down this one's clients. Use as a context manager."""

    def __init__(self, port):
        self.process = subprocess.Popen([sys.executable, "-B", os.path.abspath(__file__), str(port)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.statuses, self.longest_s, self.rounds, self.problem = {}, {}, 0, None
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            said = json.loads(line)
            self.statuses, self.longest_s = said["statuses"], said["longest_s"]
            self.rounds, self.problem = said["rounds"], said["problem"]

    def is_under_way(self):
        """Nothing went wrong, but not everything has been sent yet."""
        return self.rounds == 0 and not self.problem and self.process.poll() is None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is not None and not self.problem:
            self.problem = f"the attack ended by itself: exit status {self.process.returncode}"
        self.process.kill()
        self.process.wait()
        self.reader.join()
        self.process.stdin.close()
        self.process.stdout.close()


def main():
    attack = Attack(int(sys.argv[1]))

    def tell(rounds, problem=None):
        print(json.dumps({"statuses": attack.statuses, "longest_s": attack.longest_s, "rounds": rounds,
                          "problem": problem}), flush=True)

    # Ends with its parent.
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    tell(0, attack.send_all(tell))


if __name__ == "__main__":
    main()
