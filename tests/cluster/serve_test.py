"""A served model over HTTP, in normal operation and when workers die or hang or clients leave."""

import collections
import http.client
import json
import os
import re
import shutil
import signal
import socket
import tempfile
import time
import unittest

import harness

LOSS_LIMIT_S = 2.0
RECOVERY_LIMIT_S = 5.0  # the pause that a client sees when a worker is lost
# A token takes about twelve messages between ranks, so that these 400 take five seconds on the fastest machine: long
# enough to act on them meanwhile.
SLOW = ("--ranks", "2", "--link", "tcp", "--link-delay-us", "1000")
LONG = {"prompt": "Lily and Tom", "temperature": 0.9, "seed": 0, "max_tokens": 400}

# As in instruction-tuned models: a token at the beginning, markers around messages, a rule.
TEMPLATE = ("{{ bos_token }}{% for m in messages %}{% if m.content == 'Hush' %}"
            "{{ raise_exception('Nobody may say Hush') }}{% endif %}{{ m.content }}{{ eos_token }}{% endfor %}"
            "{% if add_generation_prompt %}Once{% endif %}")


def copy_stories(folder, **files):
    """A copy of the shipped model in which these JSON files have these additional fields."""
    model = os.path.join(folder, "stories260K")
    shutil.copytree(harness.STORIES, model)
    for name, fields in files.items():
        path = os.path.join(model, f"{name}.json")
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
        with open(path, "w", encoding="utf-8") as file:
            json.dump({**content, **fields}, file)
    return model


def chat(node, *texts, **options):
    roles = ("user", "assistant")
    messages = [{"role": roles[i % 2], "content": text} for i, text in enumerate(texts)]
    return node.request("POST", "/v1/chat/completions",
                        {"messages": messages, "temperature": 0, "max_tokens": 20, **options})


class Serving(unittest.TestCase):
    undisturbed = {}  # the texts of the streams of lose_worker()

    def test_a_chat_is_what_its_template_writes(self):
        plain = harness.run_json("tokenize", harness.STORIES, stdin="A</s>B")["ids"]
        self.assertNotIn(2, plain)
        opening = harness.run_json("tokenize", harness.STORIES, stdin="Once")["ids"]
        expected_ids = [1, *plain, 2, *opening]
        with tempfile.TemporaryDirectory() as folder:
            model = copy_stories(folder, tokenizer_config={"chat_template": TEMPLATE})
            with harness.Node("--ranks", "2", model=model) as node:
                expected = node.complete(expected_ids)[1]
                status, answer = chat(node, "A</s>B")
                self.assertEqual(status, 200, answer)
                self.assertEqual(answer["usage"], expected["usage"])
                self.assertEqual(answer["choices"][0]["message"]["content"].lstrip(),
                                 expected["choices"][0]["text"].lstrip())
                status, answer = chat(node, "Hi", "Hello", "Hush")
                self.assertEqual((status, answer["error"]["message"]), (400, "Nobody may say Hush"))
            said = harness.run_json("run", model, "A</s>B", "--temperature", 0, "-n", 20, "--json")
            self.assertEqual(said["prompt_tokens"], len(expected_ids))
            self.assertEqual(said["text"].lstrip(), expected["choices"][0]["text"].lstrip())
            raw = harness.run_json("run", model, "A</s>B", "--raw", "--temperature", 0, "-n", 20, "--json")
            self.assertEqual(raw["prompt_tokens"], len(plain) + 1)

    def test_without_a_template_messages_are_one_text(self):
        with harness.Node() as node:
            expected = node.complete("Once upon a time\nthere was\na cat")[1]
            status, answer = chat(node, "Once upon a time", "there was", "a cat")
            self.assertEqual(status, 200, answer)
            self.assertEqual(answer["usage"], expected["usage"])
            self.assertEqual(answer["choices"][0]["message"]["content"].lstrip(),
                             expected["choices"][0]["text"].lstrip())

    def test_a_run_tells_reasoning_apart(self):
        template = "{% for m in messages %}{{ m.content }}{% endfor %}{% if add_generation_prompt %}<think>{% endif %}"
        arguments = ("Once", "--temperature", "0", "-n", "8")
        with tempfile.TemporaryDirectory() as folder:
            model = copy_stories(folder, tokenizer_config={"chat_template": template})
            answer = harness.run_json("run", model, *arguments, "--json")
            printed = harness.run("run", model, *arguments)
        self.assertEqual(answer["text"], "")
        self.assertNotEqual(answer["reasoning"], "")
        self.assertEqual(printed.stdout, "\n")
        self.assertIn(answer["reasoning"], printed.stderr)

    def test_messages_answer_like_a_chat(self):
        question = {"messages": [{"role": "user", "content": "Once upon a time"}], "temperature": 0,
                    "max_tokens": 20}
        with harness.Node() as node:
            expected = chat(node, "Once upon a time")[1]
            status, message = node.request("POST", "/v1/messages?beta=true", {"model": "claude-x", **question})
            self.assertEqual(status, 200, message)
            text = expected["choices"][0]["message"]["content"]
            self.assertEqual(message["content"], [{"type": "text", "text": text}])
            self.assertEqual(message["stop_reason"], "max_tokens")
            self.assertEqual(message["usage"]["output_tokens"], 20)
            self.assertEqual(message["usage"]["input_tokens"], expected["usage"]["prompt_tokens"])
            counted = node.request("POST", "/v1/messages/count_tokens", {"messages": question["messages"]})[1]
            self.assertEqual(counted, {"input_tokens": expected["usage"]["prompt_tokens"]})
            connection = node.connect()
            connection.request("POST", "/v1/messages", json.dumps({**question, "stream": True}))
            told = list(harness.events(connection.getresponse()))
            connection.close()
            self.assertEqual([told[0]["type"], told[-1]["type"]], ["message_start", "message_stop"])
            self.assertEqual("".join(e["delta"]["text"] for e in told if e["type"] == "content_block_delta"), text)

    def test_responses_answer_like_a_chat(self):
        question = {"input": "Once upon a time", "temperature": 0, "max_output_tokens": 20}
        with harness.Node() as node:
            text = chat(node, "Once upon a time")[1]["choices"][0]["message"]["content"]
            status, response = node.request("POST", "/v1/responses", question)
            self.assertEqual(status, 200, response)
            self.assertEqual(response["status"], "incomplete")
            self.assertEqual(response["output"][0]["content"][0]["text"], text)
            connection = node.connect()
            connection.request("POST", "/v1/responses", json.dumps({**question, "stream": True}))
            told = list(harness.events(connection.getresponse()))
            connection.close()
            self.assertEqual([e["sequence_number"] for e in told], list(range(len(told))))
            self.assertEqual(told[-1]["type"], "response.incomplete")
            self.assertEqual("".join(e["delta"] for e in told if e["type"].endswith(".delta")), text)

    def test_every_end_token_ends_a_text_and_is_not_part_of_it(self):
        told = harness.run_json("run", harness.STORIES, "Once upon a time", "--temperature", 0, "-n", 20, "--json")
        length = 6
        end = told["tokens"][length]
        self.assertNotIn(end, told["tokens"][:length])
        for files in ({"generation_config": {"eos_token_id": [2, end]}}, {"config": {"eos_token_id": end}}):
            with self.subTest(files=files), tempfile.TemporaryDirectory() as folder:
                with harness.Node(model=copy_stories(folder, **files)) as node:
                    answer = node.complete()[1]
                    self.assertEqual(answer["choices"][0]["finish_reason"], "stop")
                    self.assertEqual(answer["usage"]["completion_tokens"], length)
                    self.assertTrue(told["text"].startswith(answer["choices"][0]["text"]))

    def test_two_ranks_answer_like_one_rank(self):
        expected = harness.run_json("run", harness.STORIES, "Once upon a time", "--temperature", 0,
                                    "--max-tokens", 20, "--json")["text"]
        for link in ("shm", "tcp"):
            with harness.Node("--ranks", "2", "--link", link) as node:
                status, answer = node.complete()
                self.assertEqual(status, 200)
                self.assertEqual(answer["choices"][0]["text"], expected)
                connection, response = node.stream({"prompt": "Once upon a time", "temperature": 0,
                                                    "max_tokens": 20})
                pieces = list(harness.events(response))
                connection.close()
                self.assertEqual(pieces[-1], "[DONE]")
                self.assertEqual("".join(p["choices"][0]["text"] for p in pieces[:-1]), expected)

    def test_embeddings_are_the_same_bytes_on_any_ranks(self):
        texts = ["Once upon a time", "A dog"] + [f"text {i}" for i in range(40)]
        answers = []
        for flags in ((), ("--ranks", "2"), ("--shares", "3:1", "--link", "tcp")):
            with harness.Node(*flags) as node:
                status, answer = node.request("POST", "/v1/embeddings",
                                              {"input": texts, "encoding_format": "base64"})
                self.assertEqual(status, 200)
                self.assertEqual([entry["index"] for entry in answer["data"]], list(range(len(texts))))
                answers.append([entry["embedding"] for entry in answer["data"]])
                status, plain = node.request("POST", "/v1/embeddings", {"input": "A dog"})
                self.assertAlmostEqual(sum(x * x for x in plain["data"][0]["embedding"]), 1, 5)
                status, answer = node.request("POST", "/v1/embeddings", {"input": "A dog", "dimensions": 60000})
                self.assertEqual((status, answer["error"]["param"]), (400, "dimensions"))
        self.assertEqual(answers[1], answers[0])
        self.assertEqual(answers[2], answers[0])
        self.assertNotEqual(answers[0][0], answers[0][1])

    def test_page_health_and_models_answer(self):
        with harness.Node() as node:
            self.assertEqual(node.request("GET", "/health"), (200, {"status": "ok"}))
            self.assertEqual(node.request("GET", "/v1/models")[1]["data"][0]["id"], "stories260K")
            status, page = node.request("GET", "/")
            self.assertEqual(status, 200)
            self.assertIn("lockstep", page)

    def test_bad_requests_get_a_sentence_and_the_right_status(self):
        with harness.Node() as node:
            cases = [("POST", "/v1/completions", "{", 400), ("POST", "/v1/completions", b"\xff\xfe{}", 400),
                     ("POST", "/v1/completions", {"model": "gpt-5", "prompt": "x"}, 404),
                     ("POST", "/v1/completions", {"model": "stories260K", "prompt": 7}, 400),
                     ("POST", "/v1/completions", {"model": "stories260K", "prompt": "x" * 20000}, 400),
                     ("GET", "/v1/nothing", None, 404), ("PUT", "/v1/models", None, 405)]
            for method, path, body, expected in cases:
                with self.subTest(path=path, body=str(body)[:40]):
                    status, answer = node.request(method, path, body)
                    self.assertEqual(status, expected)
                    self.assertGreater(len(answer["error"]["message"]), 10)
            # The server answers before an oversize body is sent; it must not read the body to its
            # end.
            with socket.create_connection(("localhost", node.port), timeout=harness.PATIENCE_S) as raw:
                raw.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n")
                self.assertIn(b" 413 ", raw.recv(4096))
            self.assertEqual(node.complete()[0], 200)

    def test_logits_that_are_no_numbers_are_an_error_of_the_server(self):
        with tempfile.TemporaryDirectory() as work:
            folder = os.path.join(work, "broken")
            harness.copy_with_nan(harness.STORIES, folder, "model.norm.weight")
            with harness.Node("--ranks", "2", model=folder) as node:
                for path, body in (("/v1/completions", {"prompt": "Once", "max_tokens": 4}),
                                   ("/v1/completions", {"prompt": "Once", "max_tokens": 4, "temperature": 1, "top_p": 0.5}),
                                   ("/v1/embeddings", {"input": "Once"})):
                    status, answer = node.request("POST", path, {"model": "broken", **body})
                    self.assertEqual(status, 500, answer)
                    self.assertEqual(answer["error"]["type"], "server_error")
                    self.assertRegex(answer["error"]["message"], r"after \d+ tokens? are not numbers")
                self.assertEqual(node.status()["restarts"], 0)

    def test_a_client_that_leaves_ends_its_request(self):
        with harness.Node(*SLOW) as node:
            connection, response = node.stream(LONG)
            next(harness.events(response))
            response.close()
            connection.close()
            left = time.monotonic()
            harness.wait_until(lambda: node.status()["running"] == 0, harness.PATIENCE_S, "the end of the request")
            print(f"the request ended {time.monotonic() - left:.3f} s after its client left", flush=True)
            told = node.request("GET", "/metrics")[1]
            self.assertIn('lockstep_requests_total{model="stories260K",outcome="cancelled"} 1\n', told)
            # Its text was not generated to the end for no client.
            generated, = re.findall(r"^lockstep_generated_tokens_total\{.*\} (\d+)$", told, re.MULTILINE)
            self.assertLess(int(generated), 400)

    def end_while_streaming(self, node):
        """A running stream at a node that takes no other requests any more."""
        connection, response = node.stream(LONG)
        pieces = harness.events(response)
        text = next(pieces)["choices"][0]["text"]
        node.process.send_signal(signal.SIGTERM)

        def is_refused():
            other = node.connect()
            other.request("POST", "/v1/completions", json.dumps({"prompt": "x", "max_tokens": 1}))
            answer = other.getresponse()
            body = answer.read()
            other.close()
            if answer.status != 503:
                return False
            self.assertIsNotNone(answer.getheader("Retry-After"))
            self.assertIn("about to stop", json.loads(body)["error"]["message"])
            return True
        harness.wait_until(is_refused, harness.PATIENCE_S, "the refusal")
        return connection, pieces, text

    def test_a_node_that_is_stopped_finishes_running_requests(self):
        with harness.Node() as node:
            choice, = node.complete(**LONG)[1]["choices"]
            self.assertEqual(choice["finish_reason"], "length")
        with harness.Node(*SLOW, "--drain", "600") as node:
            connection, pieces, text = self.end_while_streaming(node)
            text += "".join(piece["choices"][0]["text"] for piece in pieces if piece != "[DONE]")
            connection.close()
            self.assertEqual(text, choice["text"])
            self.assertEqual(node.process.wait(harness.PATIENCE_S), 0)

    def test_the_end_has_a_limit_and_a_second_signal_is_at_once(self):
        with harness.Node(*SLOW, "--drain", "0") as node:
            connection, response = node.stream(LONG)
            pieces = harness.events(response)
            next(pieces)
            node.process.send_signal(signal.SIGTERM)
            self.assertEqual(node.process.wait(harness.PATIENCE_S), 0)
            self.check_cut_off(pieces)
            connection.close()
        with harness.Node(*SLOW, "--drain", "86400") as node:
            connection, pieces, _ = self.end_while_streaming(node)
            began = time.monotonic()
            node.process.send_signal(signal.SIGINT)
            self.assertEqual(node.process.wait(harness.PATIENCE_S), 0)
            print(f"ended {time.monotonic() - began:.3f} s after the second signal", flush=True)
            self.check_cut_off(pieces)
            connection.close()

    def check_cut_off(self, pieces):
        """The rest of a stream whose node did not wait for it."""
        try:
            rest = list(pieces)
        except (OSError, http.client.HTTPException):
            return
        self.assertEqual([piece for piece in rest if "choices" in piece and piece["choices"][0]["finish_reason"]], [])

    def lose_worker(self, link, rank, signal_number, reason, group=("--ranks", "2")):
        # Eight streams in one request, which last at least three seconds: they are running when the signal
        # arrives.
        body = {"prompt": "Lily", "max_tokens": 505, "temperature": 1, "n": 8, "seed": 11}
        if not self.undisturbed:
            with harness.Node() as node:
                self.undisturbed.update({each["index"]: each["text"] for each in node.complete(**body)[1]["choices"]})
        with harness.Node(*group, "--link", link, "--link-delay-us", "500") as node:
            pids = node.worker_pids()
            connection, response = node.stream(body)
            texts, finished = collections.defaultdict(str), 0
            first_event, longest_pause = True, 0
            for event in harness.events(response):
                if event == "[DONE]":
                    break
                now = time.monotonic()
                self.assertNotIn("error", event)
                if first_event:
                    os.kill(pids[rank], signal_number)
                else:
                    longest_pause = max(longest_pause, now - before)
                first_event, before = False, now
                for choice in event["choices"]:
                    texts[choice["index"]] += choice["text"]
                    finished += choice["finish_reason"] is not None
            response.close()
            connection.close()
            self.assertEqual(finished, 8)
            self.assertEqual(dict(texts), self.undisturbed)
            print(f"{link}, rank {rank}, signal {signal_number}: a pause of {longest_pause:.3f} s", flush=True)
            self.assertLess(longest_pause, RECOVERY_LIMIT_S)
            status = node.status()
            self.assertEqual(status["restarts"], 1)
            self.assertIn(f"rank {rank} (pid {pids[rank]})", status["last_error"])
            self.assertIn(reason, status["last_error"])
            # Only the lost rank's process was replaced.
            self.assertEqual([old == new for old, new in zip(pids, node.worker_pids())],
                             [each != rank for each in range(len(pids))])
            self.assertEqual(status["epoch"], 2)

    def test_a_stream_tells_where_a_rank_was_lost(self):
        with harness.Node("--ranks", "2", "--link-delay-us", "1000") as node:
            connection, response = node.stream(
                {**LONG, "stream_options": {"include_events": True, "include_timings": True}})
            text, seams, last = "", [], None
            for event in harness.events(response):
                if event == "[DONE]":
                    break
                seam = event.get("lockstep", {}).get("event")
                if seam:
                    seams.append((len(text), seam))
                if not text and event["choices"]:
                    os.kill(node.worker_pids()[1], signal.SIGKILL)
                text += "".join(choice["text"] for choice in event["choices"])
                last = event
            connection.close()
            self.assertEqual([seam["kind"] for _, seam in seams], ["pause", "resume"])
            (paused_at, pause), (resumed_at, resume) = seams
            self.assertEqual(paused_at, resumed_at)
            self.assertGreater(len(text), resumed_at)
            self.assertIn("rank 1", pause["reason"])
            self.assertGreater(resume["after_s"], 0)
            self.assertLess(resume["after_s"], RECOVERY_LIMIT_S)
            self.assertGreater(resume["recomputed_tokens"], 0)
            self.assertEqual(last["lockstep"]["machines"], 1)
            self.assertEqual(last["timings"]["predicted_n"], LONG["max_tokens"])
        with harness.Node() as node:
            self.assertEqual(node.complete(**LONG)[1]["choices"][0]["text"], text)

    def receipted(self, node, body):
        """The answer's claim for /v1/verify."""
        connection, response = node.stream({**body, "stream_options": {"include_receipt": True}})
        last = [event for event in harness.events(response) if event != "[DONE]"][-1]
        connection.close()
        own = last["lockstep"]
        return {"model": "stories260K", **body, "route": "completions", "receipt": own["receipt"],
                "answer_ids": own["answer_ids"]}

    def verified(self, node, claim):
        status, answer = node.request("POST", "/v1/verify", claim)
        self.assertEqual(status, 200, answer)
        return answer

    def test_an_answer_is_verified_on_other_ranks(self):
        bodies = [
            {**LONG, "max_tokens": 200},
            {"prompt": "Once upon a time", "temperature": 0, "max_tokens": 300},
            {"prompt": "Tom", "temperature": 1, "top_p": 0.9, "min_p": 0.01, "max_tokens": 150, "repetition_penalty": 1.2,
             "presence_penalty": 0.3, "dry_multiplier": 0.8, "logit_bias": {"400": 1.5}},
            {"prompt": "Lily", "temperature": 1, "seed": 4, "max_tokens": 150, "guided_regex": "( [a-z]{1,7}){30}"},
        ]
        claims = []
        for ranks, others in ((2, 1), (1, 2)):
            with harness.Node("--ranks", str(ranks)) as node:
                claims = [self.receipted(node, body) for body in bodies]
                self.assertTrue(self.verified(node, claims[0])["same"])
            with harness.Node("--ranks", str(others)) as node:
                for claim in claims:
                    size = len(claim["answer_ids"])
                    self.assertGreater(size, 30)
                    answer = self.verified(node, claim)
                    self.assertEqual((answer["same"], answer["ranks"]), (True, others), answer)
                    print(f"{size} tokens of {ranks} ranks verified on {others} in {answer['seconds']:.3f} s", flush=True)
                    for at in (0, size // 2, size - 1):
                        changed = [id + (i == at) for i, id in enumerate(claim["answer_ids"])]
                        told = self.verified(node, {**claim, "answer_ids": changed})
                        self.assertEqual((told["same"], told["first_difference"]), (False, at), told)
        with tempfile.TemporaryDirectory() as folder:
            model = copy_stories(folder, config={"rope_theta": 10001.0})
            with harness.Node(model=model) as node:
                status, answer = node.request("POST", "/v1/verify", claims[0])
                self.assertEqual((status, answer["error"]["code"]), (409, "other_model"))

    def test_a_killed_worker_is_named_and_replaced(self):
        for link in ("shm", "tcp"):
            for rank in (0, 1):
                with self.subTest(link=link, rank=rank):
                    self.lose_worker(link, rank, signal.SIGKILL, "SIGKILL")

    def test_a_plug_that_is_pulled_in_a_demo_changes_no_byte(self):
        body = {**LONG, "max_tokens": 200}
        with harness.Node("--ranks", "2", "--link-delay-us", "2000", "--demo") as node:
            self.assertTrue(node.request("GET", "/v1/session")[1]["demo"])
            undisturbed = node.complete(**body)[1]["choices"][0]["text"]
            for rank in (1, 0):
                with self.subTest(rank=rank):
                    pids = node.worker_pids()
                    connection, response = node.stream(body)
                    text, answer = "", None
                    for event in harness.events(response):
                        if event == "[DONE]":
                            break
                        self.assertNotIn("error", event)
                        text += event["choices"][0]["text"]
                        if answer is None:
                            answer = node.request("POST", "/demo/kill", {"rank": rank})
                            early = node.request("POST", "/demo/kill", {"rank": rank})
                    response.close()
                    connection.close()
                    self.assertEqual(answer, (200, {"rank": rank, "pid": pids[rank]}))
                    self.assertEqual(early[0], 429)
                    self.assertEqual(text, undisturbed)
                    self.assertEqual([old == new for old, new in zip(pids, node.worker_pids())], [each != rank for each in (0, 1)])
            self.assertEqual(node.status()["restarts"], 2)
            self.assertEqual(node.request("POST", "/demo/kill", {"rank": 2})[0], 404)

    def test_a_node_that_is_no_demo_kills_no_worker(self):
        with harness.Node("--ranks", "2") as node:
            pids = node.worker_pids()
            status, answer = node.request("POST", "/demo/kill", {"rank": 0})
            self.assertEqual(status, 404)
            self.assertIn("--demo", answer["error"]["message"])
            self.assertEqual(node.worker_pids(), pids)

    def test_a_stopped_worker_is_named_and_replaced(self):
        for link in ("shm", "tcp"):
            for rank in (0, 1):
                with self.subTest(link=link, rank=rank):
                    self.lose_worker(link, rank, signal.SIGSTOP, "has not answered")

    def test_a_lost_worker_of_any_stage_is_named_and_replaced(self):
        group = ("--ranks", "4", "--stages", "2")
        for link, rank, signal_number, reason in (("shm", 1, signal.SIGKILL, "SIGKILL"),
                                                  ("shm", 2, signal.SIGSTOP, "has not answered"),
                                                  ("tcp", 3, signal.SIGKILL, "SIGKILL")):
            with self.subTest(link=link, rank=rank):
                self.lose_worker(link, rank, signal_number, reason, group)

    def test_stages_answer_like_one_rank(self):
        body = {"prompt": "Lily", "max_tokens": 60, "temperature": 1, "seed": 4, "n": 8}
        with harness.Node() as node:
            expected = node.complete(**body)[1]["choices"]
        with harness.Node("--ranks", "3", "--parallel", "pipeline") as node:
            self.assertEqual(node.status()["stages"], 3)
            self.assertEqual(node.complete(**body)[1]["choices"], expected)

    def test_workers_end_with_their_node(self):
        node = harness.Node("--ranks", "2")
        pids = node.worker_pids()
        node.process.kill()
        node.process.wait()

        def is_gone(pid):
            try:
                with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                    return file.read().rsplit(")", 1)[1].split()[0] == "Z"
            except FileNotFoundError:
                return True
        harness.wait_until(lambda: all(map(is_gone, pids)), LOSS_LIMIT_S, "the end of the workers")
        node.__exit__()

    def test_sigterm_ends_everything_in_order(self):
        with harness.Node("--ranks", "2") as node:
            node.process.send_signal(signal.SIGTERM)
            self.assertEqual(node.process.wait(harness.PATIENCE_S), 0)


if __name__ == "__main__":
    harness.main()
