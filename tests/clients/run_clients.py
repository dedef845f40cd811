"""Real clients against `lockstep serve`: npm packages and coding agents that tools/test_clients.sh has installed.

run_clients.py FOLDER [NAME...]: FOLDER holds the installed packages; NAMEs choose suites. A package that is not there is
skipped with a message. Exit status 1 if anything failed."""

import json
import os
import re
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(HERE, "..", "cluster"))
sys.path.insert(0, HERE)

import agents  # noqa: E402
import harness  # noqa: E402
import scripted_model  # noqa: E402

SUITES = ["openai", "openai_responses", "anthropic", "ollama", "ai_sdk"]
SUITE_TIMEOUT_S = 300
WALKS_TIMEOUT_S = 1200
CHAT_CONTEXT = 4096

CHAT_TEMPLATE = """{%- for tool in tools or [] %}{{- tool | tojson }}{{- '\\n' }}{%- endfor %}
{%- for message in messages %}{{- message.role + ': ' + (message.content or '') + '\\n' }}
{%- for call in message.tool_calls or [] %}
{{- '<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' }}{{- call.function.arguments | tojson }}
{{- '}\\n</tool_call>\\n' }}{%- endfor %}{%- endfor %}
{%- if add_generation_prompt %}{{- 'assistant: <think>\\n\\n</think>\\n\\n' }}{%- endif %}"""


def write_stories_chat(folder):
    """stories260K with a chat template and more positions than it was trained for. Its reasoning is closed when an
    answer begins: nothing would end it."""
    shutil.copytree(harness.STORIES, folder)
    agents.write(os.path.join(folder, "chat_template.jinja"), CHAT_TEMPLATE)
    path = os.path.join(folder, "config.json")
    with open(path, encoding="utf-8") as file:
        config = json.load(file)
    config["max_position_embeddings"] = CHAT_CONTEXT
    agents.write(path, json.dumps(config))
    return folder


def node_program(packages):
    found = [os.path.join(folder, "node") for folder, _, files in os.walk(os.path.join(packages, "node"))
             if "node" in files and os.path.basename(folder) == "bin"]
    return found[0] if found else shutil.which("node")


def run_suite(name, packages, node, port):
    """The failure, or None, and a note on what ran."""
    folder = os.path.join(packages, "sdk", "suites")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(os.path.join(HERE, "suites"), folder)  # packages are found in folders above a source
    process = subprocess.run(
        [node, "--test", "--test-reporter=tap", os.path.join(folder, f"{name}.test.mjs")], capture_output=True, text=True,
        timeout=SUITE_TIMEOUT_S, check=False, env={**os.environ, "LOCKSTEP_BASE": f"http://localhost:{port}"})
    counts = {key: int(value) for key, value in re.findall(r"^# (tests|pass|fail) (\d+)$", process.stdout, re.MULTILINE)}
    passed, total = counts.get("pass", 0), counts.get("tests", 0)
    if process.returncode == 0 and total > 0:
        return None, f"{passed} tests"
    return process.stdout + process.stderr, f"{total - passed} of {total} tests failed"


def failures_of(tap):
    """The failed tests of a suite, each with the first lines of its error."""
    for found in re.finditer(r"^not ok \d+ - (.*)\n((?:  .*\n)*)", tap, re.MULTILINE):
        detail = re.search(r"error: (?:\|-\n)?((?:.*\n){1,4})", found.group(2))
        yield f"{found.group(1)}: {' '.join(detail.group(1).split())[:300] if detail else ''}"


def run_suites(names, packages, node, port):
    for name in names:
        if not os.path.isdir(os.path.join(packages, "sdk", "node_modules")):
            yield name, "skipped", "the packages are not installed"
            continue
        output, word = run_suite(name, packages, node, port)
        for failure in failures_of(output or ""):
            print(f"  {name}: {failure}", flush=True)
        yield name, "failed" if output else "passed", word


def run_agents(chosen, packages, node, port, work):
    for agent in chosen:
        program = os.path.join(packages, agent.package, "node_modules/.bin", agent.program)
        if not os.path.exists(program):
            yield agent.name, "skipped", "the package is not installed"
            continue
        folder = os.path.join(work, agent.package)
        began = time.monotonic()
        problem = agents.run_agent(agent, program, os.path.dirname(node), port, folder)
        word = problem or "a call, its result and the last words"
        yield agent.name, "failed" if problem else "passed", f"{word} ({time.monotonic() - began:.0f} s)"


def judge_calls(packages, node):
    """Random answers under the constraints of all families, judged by ajv: see judge_calls.mjs."""
    folder, judge = os.path.join(packages, "ajv"), os.path.join(packages, "ajv", "judge_calls.mjs")
    if not os.path.isdir(os.path.join(folder, "node_modules", "ajv-formats")):
        return "ajv", "skipped", "ajv is not installed"
    shutil.copy(os.path.join(HERE, "judge_calls.mjs"), judge)  # packages are found in folders above a source
    lines = os.path.join(folder, "answers")
    walks = [sys.executable, os.path.join(SOURCE, "tests", "grammar", "validate_calls.py")]
    subprocess.run([*walks, os.path.join(SOURCE, "build", "release", "call_walks"), SOURCE, "--lines", lines],
                   timeout=WALKS_TIMEOUT_S, check=True)
    with open(lines, "rb") as answers:
        process = subprocess.run([node, judge], stdin=answers, capture_output=True, text=True, timeout=WALKS_TIMEOUT_S,
                                 check=False)
    print(process.stdout + process.stderr, end="", flush=True)
    said = process.stdout.strip().splitlines()
    return "ajv", "failed" if process.returncode else "passed", said[-1] if said else "it said nothing"


def main():
    packages, wanted = os.path.abspath(sys.argv[1]), sys.argv[2:]
    node = node_program(packages)
    if node is None:
        print("clients: skipped, there is no node")
        return 0
    work = os.path.join(packages, "work")
    shutil.rmtree(work, ignore_errors=True)
    models = [write_stories_chat(os.path.join(work, "models", "stories-chat"))]
    calls = {"read_note": {"path": "note.txt"}} | {agent.tool: agent.arguments for agent in agents.AGENTS}
    models.append(scripted_model.write_scripted_model(os.path.join(work, "models", "scripted"), calls))
    unknown = set(wanted) - set(SUITES) - {"ajv"} - {agent.package for agent in agents.AGENTS}
    if unknown:
        print(f"clients: there is no {', '.join(sorted(unknown))}; there are "
              f"{', '.join([*SUITES, 'ajv', *(agent.package for agent in agents.AGENTS)])}")
        return 2
    results = []
    suites = [name for name in SUITES if not wanted or name in wanted]
    if suites:
        with harness.Node(*models, "--ranks", "1", model=harness.STORIES) as server:
            for result in run_suites(suites, packages, node, server.port):
                results.append(result)
    chosen = [agent for agent in agents.AGENTS if not wanted or agent.package in wanted]
    if chosen:
        with harness.Node("--ranks", "1", "--context", str(scripted_model.CONTEXT), model=models[-1]) as server:
            for result in run_agents(chosen, packages, node, server.port, work):
                results.append(result)
                print("  {}: {}: {}".format(*result), flush=True)
    if not wanted or "ajv" in wanted:
        results.append(judge_calls(packages, node))
    print("\nclients of lockstep")
    for name, outcome, word in results:
        print(f"  {outcome:8} {name:28} {word}")
    return 1 if any(outcome == "failed" for _, outcome, _ in results) else 0


if __name__ == "__main__":
    sys.exit(main())
