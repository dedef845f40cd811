"""Coding agents, each given one task non-interactively: the model calls the tool with which the agent runs commands,
the agent runs it and sends the result, the model sends its last words. Everything but the weights is real: the agent,
its prompts and tools, the server. See scripted_model.py."""

import json
import os
import secrets
import signal
import subprocess

from recording_proxy import RecordingProxy
from scripted_model import DONE

TIMEOUT_S = 180
COMMAND = "cat secret.txt"
MODEL = "scripted"
PROMPT = "Run the command that shows secret.txt."


class Agent:
    """`package` is the folder below build/clients, `tool` the tool that the model calls and its arguments."""

    name = package = program = ""
    tool = ""
    arguments = {"command": COMMAND}

    def environment(self, base):
        return {}

    def prepare(self, home, base):
        pass

    def command(self, program, base):
        raise NotImplementedError


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


class OpenCode(Agent):
    name, package, program = "opencode-ai", "opencode", "opencode"
    tool = "bash"

    def prepare(self, home, base):
        write(os.path.join(home, ".config/opencode/opencode.json"), json.dumps({
            "autoupdate": False, "share": "disabled", "permission": "allow",
            "model": f"lockstep/{MODEL}", "small_model": f"lockstep/{MODEL}",
            "provider": {"lockstep": {
                "npm": "@ai-sdk/openai-compatible", "name": "lockstep", "options": {"baseURL": f"{base}/v1"},
                "models": {MODEL: {"name": MODEL, "tool_call": True, "limit": {"context": 131072, "output": 4096}}}}}}))

    def environment(self, base):
        return {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1",
                "OPENCODE_DISABLE_LSP_DOWNLOAD": "1", "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1"}

    def command(self, program, base):
        return [program, "run", PROMPT]


class Codex(Agent):
    name, package, program = "@openai/codex", "codex", "codex"
    tool, arguments = "exec_command", {"cmd": COMMAND}

    def prepare(self, home, base):
        write(os.path.join(home, ".codex/config.toml"), f'''
model = "{MODEL}"
model_provider = "lockstep"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
[analytics]
enabled = false
[otel]
exporter = "none"
[model_providers.lockstep]
name = "lockstep"
base_url = "{base}/v1"
wire_api = "responses"
''')

    def command(self, program, base):
        return [program, "exec", "--skip-git-repo-check", PROMPT]


class ClaudeCode(Agent):
    name, package, program = "@anthropic-ai/claude-code", "claude", "claude"
    tool = "Bash"

    def environment(self, base):
        return {"ANTHROPIC_BASE_URL": base, "ANTHROPIC_AUTH_TOKEN": "none", "ANTHROPIC_MODEL": MODEL,
                "ANTHROPIC_SMALL_FAST_MODEL": MODEL, "ANTHROPIC_DEFAULT_HAIKU_MODEL": MODEL,
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1",
                "DISABLE_ERROR_REPORTING": "1", "IS_SANDBOX": "1"}

    def command(self, program, base):
        return [program, "-p", PROMPT, "--allowedTools", "Bash"]


class QwenCode(Agent):
    name, package, program = "@qwen-code/qwen-code", "qwen", "qwen"
    tool, arguments = "run_shell_command", {"command": COMMAND, "is_background": False}

    def environment(self, base):
        return {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": f"{base}/v1", "OPENAI_MODEL": MODEL,
                "QWEN_TELEMETRY_ENABLED": "false"}

    def prepare(self, home, base):
        # Without a terminal it considers a command done when its process ends, though its pipe may not have been read
        # yet: if another child ends at that moment, the output of a command is "(empty)".
        write(os.path.join(home, ".qwen/settings.json"), json.dumps({
            "security": {"auth": {"selectedType": "openai"}}, "telemetry": {"enabled": False},
            "tools": {"shell": {"enableInteractiveShell": True}},
            "privacy": {"usageStatisticsEnabled": False}, "general": {"enableAutoUpdate": False}}))

    def command(self, program, base):
        return [program, "--yolo", "-p", PROMPT]


class Continue(Agent):
    name, package, program = "@continuedev/cli", "continue", "cn"
    tool = "Bash"

    def environment(self, base):
        return {"CONTINUE_TELEMETRY_ENABLED": "0", "CONTINUE_METRICS_ENABLED": "0"}

    def prepare(self, home, base):
        write(os.path.join(home, "config.yaml"), f'''
name: lockstep
version: 0.0.1
schema: v1
models:
  - name: {MODEL}
    provider: openai
    model: {MODEL}
    apiBase: {base}/v1
    apiKey: none
    roles: [chat]
    capabilities: [tool_use]
''')

    def command(self, program, base):
        return [program, "--config", os.path.join("..", "home", "config.yaml"), "--auto", "-p", PROMPT]


class Cline(Agent):
    name, package, program = "cline", "cline", "cline"
    tool, arguments = "run_commands", {"commands": [COMMAND]}

    def prepare(self, home, base):
        write(os.path.join(home, ".cline/data/settings/providers.json"), json.dumps({
            "version": 1, "lastUsedProvider": "openai-compatible", "modes": {}, "providers": {"openai-compatible": {
                "settings": {"provider": "openai-compatible", "apiKey": "none", "model": MODEL, "baseUrl": f"{base}/v1"},
                "updatedAt": "2026-01-01T00:00:00.000Z", "tokenSource": "manual"}}}))

    def environment(self, base):
        return {"CLINE_TELEMETRY_DISABLED": "1"}

    def command(self, program, base):
        return [program, "--provider", "openai-compatible", "--model", MODEL, "--auto-approve", "true", PROMPT]


AGENTS = [OpenCode(), Codex(), Cline(), Continue(), QwenCode(), ClaudeCode()]


def run_process(arguments, folder, environment):
    """(exit status or None if it had to be killed, its output). Its children end with it."""
    process = subprocess.Popen(arguments, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)
    try:
        said, _ = process.communicate(timeout=TIMEOUT_S)
        return process.returncode, said
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return None, process.communicate()[0]


def run_agent(agent, program, node_folder, port, folder):
    """The failure, or None; the logs are left in `folder`."""
    home, workspace, secret = os.path.join(folder, "home"), os.path.join(folder, "workspace"), secrets.token_hex(16)
    os.makedirs(home)
    write(os.path.join(workspace, "secret.txt"), secret + "\n")
    with RecordingProxy(port) as proxy:
        base = f"http://localhost:{proxy.port}"
        agent.prepare(home, base)
        environment = {"HOME": home, "PATH": f"{node_folder}:{os.environ['PATH']}", "LANG": "C.UTF-8", "CI": "1",
                       "NO_COLOR": "1", "TERM": "dumb", "DO_NOT_TRACK": "1", **agent.environment(base)}
        status, said = run_process(agent.command(program, base), workspace, environment)
        recorded = list(proxy.recorded)
    write(os.path.join(folder, "said.txt"), said)
    write(os.path.join(folder, "recorded.txt"), "".join(
        f"== {one.method} {one.path} {one.status}\n{one.body.decode(errors='replace')}\n-- answer\n"
        f"{one.answer.decode(errors='replace')}\n" for one in recorded))
    posts = [one for one in recorded if one.method == "POST"]
    if not posts:
        return f"it asked for nothing (exit status {status})"
    refused = [f"{one.path}: {one.status}" for one in posts if one.status != 200]
    if refused:
        return f"refused: {', '.join(refused[:3])}"
    if not any(secret.encode() in one.body for one in posts):
        # The model sends its last words only after a result.
        word = "came back without what its command printed" if DONE in said else "never came back"
        return f"the result of the tool {agent.tool} {word}; {folder}/recorded.txt has what was said"
    if DONE not in said:
        return "the last words of the model are not what it prints"
    if status != 0:
        return f"exit status {status}"
    return None
