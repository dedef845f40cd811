#!/usr/bin/python3
"""The first process of a played machine (played_machine.py), which has no systemd and no launchd: it starts services by
their real units and property lists, as far as lockstep's use them, and reaps what ends.

  played_init.py serve             in the machine, as process 1
  systemctl ..., launchctl ...     the same file under these names asks it

systemctl: daemon-reload, enable, disable, is-active, is-enabled, show, start, stop, restart, try-restart.
launchctl: bootstrap system FILE, bootout system/LABEL, print system/LABEL.
"""

import json
import os
import plistlib
import pwd
import shlex
import signal
import socket
import subprocess
import sys

SOCKET = "/run/played_init.sock"
CALLS = "/var/log/played_init.calls"
UNIT_FOLDERS = ("/etc/systemd/system", "/usr/lib/systemd/system")
STOP_S = 30
OUTPUT_ENV = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}


def unit_path(unit):
    name = unit if unit.endswith(".service") else unit + ".service"
    return next((path for path in (f"{folder}/{name}" for folder in UNIT_FOLDERS) if os.path.exists(path)), None)


def unit_keys(path):
    """{key: [values]} of [Service]."""
    keys, section = {}, None
    with open(path, encoding="utf-8") as file:
        for line in map(str.strip, file):
            if line.startswith("["):
                section = line
            elif section == "[Service]" and "=" in line and not line.startswith("#"):
                key, _, value = line.partition("=")
                keys.setdefault(key, []).append(value)
    return keys


def own(path, user, mode):
    os.makedirs(path, exist_ok=True)
    os.chown(path, user.pw_uid, user.pw_gid)
    os.chmod(path, mode)


class Service:
    def __init__(self, argv, env, user, folder, umask, log):
        with open(log, "ab") as file:
            os.fchown(file.fileno(), user.pw_uid, user.pw_gid)
            self.process = subprocess.Popen(argv, env=env, cwd=folder, user=user.pw_uid, group=user.pw_gid, extra_groups=[],
                                            umask=umask, stdin=subprocess.DEVNULL, stdout=file, stderr=file)

    def runs(self):
        return self.process.poll() is None

    def stop(self):
        if self.runs():
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


def of_unit(path):
    """As systemd.exec(5) and systemd.service(5) describe the keys."""
    keys = unit_keys(path)
    user = pwd.getpwnam(keys["User"][0])
    env = dict(OUTPUT_ENV)
    for value in keys.get("Environment", []):
        env.update(word.split("=", 1) for word in shlex.split(value))
    for value in keys.get("EnvironmentFile", []):
        if os.path.exists(value.lstrip("-")):
            with open(value.lstrip("-"), encoding="utf-8") as file:
                env.update(shlex.split(line)[0].split("=", 1) for line in file if "=" in line and not line.startswith("#"))
    for value in keys.get("StateDirectory", []):
        own(f"/var/lib/{value}", user, int(keys["StateDirectoryMode"][0], 8))
    credentials = f"/run/credentials/{os.path.basename(path)}"
    own(credentials, user, 0o700)
    for name in keys.get("LoadCredential", []):
        source, copy = f"/etc/credstore/{name}", f"{credentials}/{name}"
        if os.path.exists(copy):
            os.remove(copy)
        if os.path.exists(source):
            with open(source, "rb") as file, open(os.open(copy, os.O_WRONLY | os.O_CREAT, 0o400), "wb") as to:
                os.fchown(to.fileno(), user.pw_uid, user.pw_gid)
                to.write(file.read())
    env["CREDENTIALS_DIRECTORY"] = credentials
    argv = []
    for word in keys["ExecStart"][0].split():
        argv += env.get(word[1:], "").split() if word.startswith("$") else [word]
    return Service(argv, env, user, keys["WorkingDirectory"][0], int(keys["UMask"][0], 8), "/var/log/lockstep.log")


def of_list(path):
    """As launchd.plist(5) describes the keys."""
    with open(path, "rb") as file:
        content = plistlib.load(file)
    return content["Label"], Service(content["ProgramArguments"], {**OUTPUT_ENV, **content["EnvironmentVariables"]},
                                     pwd.getpwnam(content["UserName"]), content["WorkingDirectory"], content["Umask"],
                                     content["StandardOutPath"])


class Init:
    def __init__(self):
        self.services, self.enabled = {}, set()

    def runs(self, name):
        return name in self.services and self.services[name].runs()

    def start(self, name):
        if not self.runs(name):
            self.services[name] = of_unit(unit_path(name))

    def stop(self, name):
        if name in self.services:
            self.services.pop(name).stop()

    def systemctl(self, arguments):
        """(exit status, output)."""
        verb, *rest = [word for word in arguments if not word.startswith("-")]
        if verb == "daemon-reload":
            return 0, ""
        unit = rest[0]
        if verb == "show":
            known = unit_path(unit) is not None
            return 0, "".join(f"{key}={value}\n" for key, value in {
                "Id": unit, "LoadState": "loaded" if known else "not-found",
                "ActiveState": "active" if self.runs(unit) else "inactive",
                "UnitFileState": "enabled" if unit in self.enabled else "disabled"}.items())
        if verb == "is-active":
            return (0, "active\n") if self.runs(unit) else (3, "inactive\n")
        if verb == "is-enabled":
            return (0, "enabled\n") if unit in self.enabled else (1, "disabled\n")
        if unit_path(unit) is None:
            return 5, f"Unit {unit} not found.\n"
        if verb == "enable":
            self.enabled.add(unit)
        elif verb == "disable":
            self.enabled.discard(unit)
        elif verb == "start":
            self.start(unit)
        elif verb == "stop":
            self.stop(unit)
        elif verb == "restart" or (verb == "try-restart" and self.runs(unit)):
            self.stop(unit)
            self.start(unit)
        elif verb != "try-restart":
            return 1, f"the played systemctl knows no {verb}\n"
        return 0, ""

    def launchctl(self, arguments):
        verb, target, *rest = arguments
        label = target.partition("/")[2]
        if verb == "bootstrap" and target == "system":
            label, service = of_list(rest[0])
            if label in self.services:
                service.stop()
                return 5, "Bootstrap failed: 5: Input/output error\n"
            self.services[label] = service
            return 0, ""
        if label not in self.services:
            return 113, f'Could not find service "{label}" in domain for system\n'
        if verb == "bootout":
            self.stop(label)
        elif verb != "print":
            return 64, f"the played launchctl knows no {verb}\n"
        return 0, f"state = {'running' if self.runs(label) else 'not running'}\n"

    def answer(self, request):
        with open(CALLS, "a", encoding="utf-8") as file:
            file.write(" ".join([request["tool"], *request["arguments"]]) + "\n")
        try:
            return getattr(self, request["tool"])(request["arguments"])
        except (OSError, KeyError, ValueError, subprocess.SubprocessError) as error:
            return 1, f"{request['tool']}: {error!r}\n"


def reap(init):
    """Processes whose parents have ended become ours."""
    ours = {service.process.pid for service in init.services.values()}
    for pid in (entry for entry in os.listdir("/proc") if entry.isdigit()):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                state, parent = file.read().rpartition(")")[2].split()[:2]
            if state == "Z" and parent == "1" and int(pid) not in ours:
                os.waitpid(int(pid), os.WNOHANG)
        except (OSError, ChildProcessError):
            pass


def serve():
    init = Init()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(SOCKET)
    listener.listen(16)
    listener.settimeout(1)
    print("ready", flush=True)
    while True:
        try:
            caller, _ = listener.accept()
        except TimeoutError:
            reap(init)
            continue
        with caller, caller.makefile("rw", encoding="utf-8") as stream:
            status, output = init.answer(json.loads(stream.readline()))
            stream.write(json.dumps({"status": status, "output": output}) + "\n")


def ask(tool, arguments):
    caller = socket.socket(socket.AF_UNIX)
    caller.settimeout(2 * STOP_S)
    caller.connect(SOCKET)
    with caller, caller.makefile("rw", encoding="utf-8") as stream:
        stream.write(json.dumps({"tool": tool, "arguments": arguments}) + "\n")
        stream.flush()
        answer = json.loads(stream.readline())
    print(answer["output"], end="")
    return answer["status"]


if __name__ == "__main__":
    called = os.path.basename(sys.argv[0])
    sys.exit(ask(called, sys.argv[1:]) if called in ("systemctl", "launchctl") else serve())
