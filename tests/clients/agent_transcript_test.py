"""An agent's conversation of twenty turns, with tool calls and their results: each turn computes its new tokens and at
most one page of the earlier ones, even after its node was stopped, killed, or cut differently."""

import json
import os
import shutil
import signal
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cluster"))

import harness  # noqa: E402

PAGE = 64
CONTEXT = 16_384
TURNS = 20

# Every message ends with a token that no text can contain, so that a conversation begins with the previous
# one.
TEMPLATE = """{{- bos_token }}{%- for message in messages %}{{- message.role }}{{- eos_token }}
{%- if message.content %}{{- message.content }}{%- endif %}
{%- for call in message.tool_calls or [] %}{{- call.function.name }}{{- call.function.arguments | tojson }}{%- endfor %}
{{- eos_token }}{%- endfor %}{%- if add_generation_prompt %}assistant{{- eos_token }}{%- endif %}"""


def write_model(folder):
    """The shipped model with a template and enough positions for a long conversation, which it does not understand."""
    model = os.path.join(folder, "stories260K")
    shutil.copytree(harness.STORIES, model)
    for name, field, value in (("config", "max_position_embeddings", CONTEXT),
                               ("tokenizer_config", "chat_template", TEMPLATE)):
        path = os.path.join(model, f"{name}.json")
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
        with open(path, "w", encoding="utf-8") as file:
            json.dump({**content, field: value}, file)
    return model


def transcript():
    """Messages, and for each turn the number of them after which the model is asked."""
    messages = [{"role": "system", "content": "You keep the books of a shop. The tool look(shelf) tells what lies on a "
                                              "shelf, and write(line) adds a line to the book."}]
    asked = []
    for task in range(TURNS // 2):
        messages.append({"role": "user", "content": f"What lies on shelf {task}, and is it as much as last week?"})
        asked.append(len(messages))
        call = {"id": f"call_{task}", "type": "function",
                "function": {"name": "look", "arguments": json.dumps({"shelf": task, "week": 30 + task})}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        found = ", ".join(f"{thing} {7 * task + i}" for i, thing in enumerate(("apples", "candles", "rope", "tea")))
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": f"There are {found}."})
        asked.append(len(messages))
        messages.append({"role": "assistant", "content": f"On shelf {task} there are {found}; that is {task} more."})
    return messages, asked


class Agent:
    """The client's side: the answers, and the length of the last turn's prompt."""

    def __init__(self, test):
        self.test = test
        self.messages, self.asked = transcript()
        self.turn = 0
        self.prompt_tokens = 0
        self.answers = []

    def play(self, node, turns):
        """The next turns; returns how many tokens of their prompts were computed beyond the new ones."""
        beyond = []
        for _ in range(turns):
            # One token: its state is never computed, so the existing pages are only those of the conversation.
            body = {"messages": self.messages[:self.asked[self.turn]], "temperature": 0, "max_tokens": 1,
                    "logprobs": True}
            status, answer = node.request("POST", "/v1/chat/completions", body)
            self.test.assertEqual(status, 200, answer)
            usage = answer["usage"]
            new = usage["prompt_tokens"] - self.prompt_tokens
            cached = usage["prompt_tokens_details"]["cached_tokens"]
            beyond.append(usage["prompt_tokens"] - cached - new)
            self.prompt_tokens = usage["prompt_tokens"]
            said = answer["choices"][0]["logprobs"]["content"][0]
            self.answers.append((said["token"], said["logprob"]))  # to the bit
            self.turn += 1
        return beyond


def metric(node, name):
    return harness.metric_sum(node.request("GET", "/metrics")[1], name)


def page_files(home):
    return [name for _, _, names in os.walk(os.path.join(home, "pages")) for name in names if name.count(".") == 2]


class AgentTranscript(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.model = write_model(folder.name)
        self.home = os.path.join(folder.name, "home")

    def node(self, ranks, gib):
        return harness.Node("--ranks", ranks, "--cache-disk", gib, model=self.model,
                            env={"LOCKSTEP_HOME": self.home})

    def check_turns(self, beyond):
        for tokens in beyond:
            self.assertTrue(0 <= tokens <= PAGE, beyond)

    def wait_until_kept(self, node, agent, ranks):
        pages = agent.prompt_tokens // PAGE
        harness.wait_until(lambda: metric(node, "lockstep_page_store_pages") >= pages, harness.PATIENCE_S,
                           f"{pages} pages on the disk")
        harness.wait_until(lambda: len(page_files(self.home)) >= ranks * pages, harness.PATIENCE_S,
                           f"{ranks} files of each")

    def answers_without_a_cache(self):
        agent = Agent(self)
        with self.node("1", "0") as node:
            agent.play(node, TURNS)
            self.assertEqual(metric(node, "lockstep_page_store_pages"), 0)
        self.assertEqual(page_files(self.home), [])
        return agent.answers

    def test_each_turn_computes_what_is_new(self):
        agent = Agent(self)
        with self.node("2", "0") as node:
            self.check_turns(agent.play(node, TURNS)[1:])
        self.assertGreater(agent.prompt_tokens, 20 * PAGE)

    def test_even_after_its_node_was_stopped_and_killed(self):
        expected = self.answers_without_a_cache()
        agent = Agent(self)
        with self.node("2", "0.1") as node:
            self.check_turns(agent.play(node, 7)[1:])
        with self.node("2", "0.1") as node:
            self.check_turns(agent.play(node, 7))
            self.wait_until_kept(node, agent, 2)
            self.assertGreater(metric(node, "lockstep_page_store_loaded_total"), 0)
            node.process.send_signal(signal.SIGKILL)
            node.process.wait(harness.PATIENCE_S)
        with self.node("1", "0.1") as node:  # uses the pages of two ranks
            self.check_turns(agent.play(node, 6))
            self.assertEqual(metric(node, "lockstep_page_store_dropped_total"), 0)
        self.assertEqual(agent.answers, expected)
        self.assertEqual(os.stat(os.path.join(self.home, "pages")).st_mode & 0o777, 0o700)


if __name__ == "__main__":
    harness.main()
