"""A node that is told to stop does so in time, whatever its threads are doing, and answers meanwhile."""

import json
import os
import signal
import tempfile
import threading
import time
import unittest

import harness
import serve_test

DRAIN_S = 2
GRACE_S = 10  # NodeStop::kGrace of cli/client/node_stop.h
SLACK_S = 10  # for a busy machine


TEMPLATE = "{% if tools %}{{ tools | length }}{% endif %}{% for m in messages %}{{ m.content }}{% endfor %}"


def model_with_tools(folder):
    return serve_test.copy_stories(folder, tokenizer_config={"chat_template": TEMPLATE})


def schema_of_itself(references):
    """A tool whose parameter is a union of references to itself: exponential if all are followed."""
    union = {"anyOf": [{"$ref": "#/$defs/a"}] * references}
    parameters = {"type": "object", "properties": {"p": {"$ref": "#/$defs/a"}}, "$defs": {"a": union}}
    return {"messages": [{"role": "user", "content": "a"}], "max_tokens": 1,
            "tools": [{"type": "function", "function": {"name": "f", "parameters": parameters}}]}


def worst_requests():
    tools = [{"type": "function", "function": {"name": f"f{i}"}} for i in range(20_000)]
    calls = [{"function": {"name": f"f{i}"}} for i in range(40_000)]
    results = [{"role": "tool", "content": "r", "tool_name": f"f{i}"} for i in reversed(range(40_000))]
    return [
        ("/v1/chat/completions", schema_of_itself(1000)),
        ("/v1/responses", {"input": [{"role": "user", "content": "a"}] * 200_000, "max_output_tokens": 1}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}], "tools": tools, "max_tokens": 1,
                                  "tool_choice": {"type": "allowed_tools", "allowed_tools": {"tools": tools}}}),
        ("/v1/responses", {"input": "a", "tools": [{"type": f"t{i}"} for i in range(60_000)]}),
        ("/api/chat", {"model": "stories260K", "messages": [{"role": "assistant", "tool_calls": calls}, *results]}),
        ("/v1/completions", {"prompt": "once " * 1_000_000, "max_tokens": 1}),
    ]


def wait_for_end(node, seconds):
    """(how long the process took to end after SIGTERM, its status)."""
    began = time.monotonic()
    node.process.send_signal(signal.SIGTERM)
    status = node.process.wait(seconds)
    return time.monotonic() - began, status


def is_running(pid):
    """Whether such a process exists and has not ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


class Stopping(unittest.TestCase):
    def ask_in_vain(self, node, path, body):
        try:
            node.request("POST", path, body)
        except OSError:  # the node exits meanwhile
            pass

    def test_the_worst_requests_are_answered_soon(self):
        with tempfile.TemporaryDirectory() as folder:
            with harness.Node("--drain", str(DRAIN_S), model=model_with_tools(folder)) as node:
                for path, body in worst_requests():
                    with self.subTest(path=path):
                        status, answer = node.request("POST", path, json.dumps(body))
                        self.assertIn(status, (200, 400, 413), answer)
                self.assertEqual(node.request("GET", "/health")[0], 200)

    def test_a_node_ends_in_time_while_it_reads_the_worst_requests(self):
        with tempfile.TemporaryDirectory() as folder:
            with harness.Node("--drain", str(DRAIN_S), model=model_with_tools(folder)) as node:
                workers = harness.children(node.process.pid)
                self.assertTrue(workers)
                askers = [threading.Thread(target=self.ask_in_vain, args=(node, path, json.dumps(body)))
                          for path, body in worst_requests() * 3]
                for asker in askers:
                    asker.start()
                self.ask_in_vain(node, "/v1/completions", {"prompt": "a", "max_tokens": 1})
                took, status = wait_for_end(node, harness.PATIENCE_S)
                self.assertLess(took, DRAIN_S + SLACK_S)
                self.assertEqual(status, 0)
                for asker in askers:
                    asker.join()
                harness.wait_until(lambda: not any(map(is_running, workers)), SLACK_S, "the workers' end")

    def test_a_node_whose_threads_hang_is_ended_by_force_and_its_workers_with_it(self):
        library = os.environ.get("HANGING_JOIN", "")
        if not os.path.exists(library):
            self.skipTest("no library that makes threads hang")
        with tempfile.TemporaryDirectory() as folder:
            hang = os.path.join(folder, "hang")
            with harness.Node("--drain", str(DRAIN_S), env={"LD_PRELOAD": library, "HANG_WHEN": hang}) as node:
                workers = harness.children(node.process.pid)
                self.assertTrue(workers)
                with open(hang, "w", encoding="utf-8"):
                    pass
                took, status = wait_for_end(node, harness.PATIENCE_S)
                self.assertGreaterEqual(took, GRACE_S)
                self.assertLess(took, DRAIN_S + GRACE_S + SLACK_S)
                self.assertEqual(status, 1)
                node.said.seek(0)
                self.assertIn("does not end in time", node.said.read())
                harness.wait_until(lambda: not any(map(is_running, workers)), SLACK_S, "the workers' end")


if __name__ == "__main__":
    harness.main()
