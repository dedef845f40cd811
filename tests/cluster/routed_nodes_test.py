"""`lockstep router` in front of two real nodes that know nothing of each other."""

import http.client
import json
import os
import re
import signal
import subprocess
import tempfile
import unittest

import harness

SLOW = ("--ranks", "2", "--link", "tcp", "--link-delay-us", "3000")  # for a stream that lasts seconds


def alone(*arguments, home):
    """A node with its own keys."""
    return harness.Node(*arguments, env={"LOCKSTEP_HOME": home})


class Router:
    """Use as a context manager: it is always ended, by its pid."""

    def __init__(self, *nodes):
        arguments = [argument for node in nodes for argument in ("--to", f"http://localhost:{node.port}")]
        self.process = subprocess.Popen([harness.PROGRAM, "router", "--port", "0", *arguments],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.port = int(re.search(r":(\d+)/", self.process.stdout.readline()).group(1))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(harness.PATIENCE_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process.stdout.close()

    def open(self, method, path, body=None):
        connection = http.client.HTTPConnection("localhost", self.port, timeout=harness.PATIENCE_S)
        connection.request(method, path, json.dumps(body) if body is not None else None)
        return connection, connection.getresponse()

    def request(self, method, path, body=None):
        connection, response = self.open(method, path, body)
        content = json.loads(response.read())
        connection.close()
        return response.status, content

    def backends(self):
        return self.request("GET", "/router/status")[1]["backends"]

    def wait_for_healthy(self, count):
        harness.wait_until(lambda: sum(backend["healthy"] for backend in self.backends()) == count,
                           harness.PATIENCE_S, f"{count} healthy backends")

    def complete(self, prompt, **options):
        body = {"model": "stories260K", "prompt": prompt, "temperature": 0, "max_tokens": 20, **options}
        return self.request("POST", "/v1/completions", body)


class Routing(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.homes = [os.path.join(folder.name, name) for name in ("first", "second")]

    def test_answers_are_those_of_a_node_and_both_nodes_give_some(self):
        with alone(home=self.homes[0]) as first, alone(home=self.homes[1]) as second, Router(first, second) as router:
            router.wait_for_healthy(2)
            for number in range(12):
                prompt = f"Once upon a time there were {number}"
                status, answer = router.complete(prompt)
                self.assertEqual(status, 200, answer)
                self.assertEqual(answer["choices"][0]["text"], first.complete(prompt)[1]["choices"][0]["text"])
            self.assertTrue(all(backend["requests"] > 0 for backend in router.backends()), router.backends())
            models = router.request("GET", "/v1/models")[1]["data"]
            self.assertEqual([model["id"] for model in models], ["stories260K"])
            self.assertEqual(router.request("POST", "/v1/completions", {"model": "none", "prompt": "a"})[0], 404)
            connection, response = router.open("POST", "/v1/completions", {
                "model": "stories260K", "prompt": "Once", "temperature": 0, "max_tokens": 20, "stream": True})
            events = list(harness.events(response))
            connection.close()
            self.assertEqual(events[-1], "[DONE]")
            text = "".join(event["choices"][0]["text"] for event in events[:-1])
            self.assertEqual(text, first.complete("Once")[1]["choices"][0]["text"])

    def test_a_node_that_dies_ends_its_streams_with_an_error_and_the_other_goes_on(self):
        with alone(*SLOW, home=self.homes[0]) as first, alone(home=self.homes[1]) as second, \
                Router(first, second) as router:
            router.wait_for_healthy(2)
            for number in range(64):  # until a conversation belongs to the first node
                connection, response = router.open("POST", "/v1/completions", {
                    "model": "stories260K", "prompt": f"Once upon a time there were {number}", "temperature": 0,
                    "max_tokens": 300, "stream": True})
                events = harness.events(response)
                next(events)
                if router.backends()[0]["running"] > 0:
                    break
                connection.close()
            else:
                self.fail("no conversation of 64 was the first node's")
            first.process.kill()
            first.process.wait()
            last = list(events)[-1]
            connection.close()
            self.assertIn("error", last)
            self.assertEqual(last["error"]["code"], "backend_lost")
            for number in range(12):
                status, answer = router.complete(f"Once upon a time there were {number}")
                self.assertEqual(status, 200, answer)
            router.wait_for_healthy(1)

    def test_a_wrong_address_is_one_sentence(self):
        for arguments in (("--to", "https://a:1"), ("--to", "a:b"), ("--to", "a", "--to", "a"), ()):
            said = harness.run("router", "--port", "0", *arguments)
            self.assertEqual(said.returncode, 2, said)
            self.assertEqual(said.stderr.count("\n"), 1, said.stderr)


if __name__ == "__main__":
    harness.main()
