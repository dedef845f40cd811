"""What the processes of a node reveal: environment secrets to its workers, core dumps, its memory to other processes of
the same user, and secrets that it reads from files. Linux (/proc)."""

import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "cluster"))
import harness

SECRETS = {"HF_TOKEN": "secret-of-a-hub", "HUGGING_FACE_HUB_TOKEN": "older-secret-of-a-hub", "LOCKSTEP_TOKEN": "secret-of-a-cluster",
           "LOCKSTEP_API_KEY": "lk-secret", "OPENAI_API_KEY": "sk-secret", "SOMETHING_ELSE": "nobody-asked-for-it"}
NOBODY = 65534
IS_ROOT = os.geteuid() == 0
# Another process of the same user reads nothing of one that forbids core dumps; root does.
READABLE = () if IS_ROOT else ("--core-dumps",)


def environment_of(pid):
    with open(f"/proc/{pid}/environ", "rb") as file:
        return dict(entry.decode(errors="replace").partition("=")[::2] for entry in file.read().split(b"\0") if entry)


def core_limits(pid):
    with open(f"/proc/{pid}/limits", encoding="ascii") as file:
        return re.search(r"^Max core file size +(\S+) +(\S+)", file.read(), re.MULTILINE).groups()


def is_closed_to_its_user(pid):
    """The files of /proc that expose a process's memory belong to root if it has made itself undumpable."""
    return os.stat(f"/proc/{pid}/environ").st_uid == 0


@unittest.skipUnless(sys.platform.startswith("linux"), "this needs /proc of Linux")
class Processes(unittest.TestCase):
    def test_workers_see_no_secrets_of_the_environment(self):
        with harness.Node("--ranks", "2", *READABLE, env={**SECRETS, "LC_ALL": "C", "LOCKSTEP_ISA": "scalar"}) as node:
            workers = node.worker_pids()
            self.assertEqual(len(workers), 2)
            self.assertEqual(sorted(workers), harness.children(node.process.pid))
            for pid in workers:
                seen = environment_of(pid)
                self.assertFalse(set(seen) & set(SECRETS), "a worker has variables that it does not need")
                self.assertFalse(set(seen.values()) & set(SECRETS.values()))
                self.assertEqual((seen["PATH"], seen["LC_ALL"], seen["LOCKSTEP_ISA"]), (os.environ["PATH"], "C", "scalar"))

    def test_a_node_and_its_workers_leave_no_core_dumps(self):
        with harness.Node("--ranks", "2") as node:
            for pid in (node.process.pid, *node.worker_pids()):
                self.assertEqual(core_limits(pid), ("0", "0"))

    def test_core_dumps_are_allowed_by_a_flag_and_by_a_variable(self):
        own = core_limits("self")[1]
        for arguments, env in ((["--core-dumps"], {}), ([], {"LOCKSTEP_CORE_DUMPS": "1"})):
            with harness.Node("--ranks", "1", *arguments, env=env) as node:
                for pid in (node.process.pid, *node.worker_pids()):
                    self.assertEqual(core_limits(pid), (own, own))
                    self.assertEqual(is_closed_to_its_user(pid), IS_ROOT)

    @unittest.skipUnless(IS_ROOT, "only root can start a node of another user")
    def test_other_processes_of_its_user_cannot_look_into_a_node_or_a_worker(self):
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            program = shutil.copy(harness.PROGRAM, os.path.join(folder, "lockstep"))
            model = shutil.copytree(harness.STORIES, os.path.join(folder, "stories260K"))
            home = os.path.join(folder, "home")
            os.mkdir(home, 0o700)
            os.chown(home, NOBODY, NOBODY)
            for arguments, closed in (([], True), (["--core-dumps"], False)):
                command = [program, "serve", model, "--alone", "--port", "0", "--cache-disk", "0", "--ranks", "1", *arguments]
                node = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, user=NOBODY,
                                        group=NOBODY, extra_groups=[], env={"PATH": os.environ["PATH"], "LOCKSTEP_HOME": home})
                try:
                    next(line for line in node.stdout if "http://" in line)
                    for pid in (node.pid, *harness.children(node.pid)):
                        with self.subTest(arguments=arguments, pid=pid):
                            self.assertEqual(is_closed_to_its_user(pid), closed)
                            read = subprocess.run(["cat", f"/proc/{pid}/environ"], capture_output=True, timeout=60,
                                                  user=NOBODY, group=NOBODY, extra_groups=[], check=False)
                            self.assertEqual(read.returncode == 0, not closed)
                finally:
                    node.send_signal(signal.SIGTERM)
                    node.wait(harness.PATIENCE_S)
                    node.stdout.close()

    def test_a_router_leaves_no_core_dumps(self):
        home = tempfile.TemporaryDirectory()
        self.addCleanup(home.cleanup)
        router = subprocess.Popen([harness.PROGRAM, "router", "--to", "http://127.0.0.1:9", "--port", "0"],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                  env={**os.environ, "LOCKSTEP_HOME": os.path.join(home.name, "router")})
        try:
            next(line for line in router.stdout if "Routing" in line)
            self.assertEqual(core_limits(router.pid), ("0", "0"))
        finally:
            router.send_signal(signal.SIGTERM)
            router.wait(harness.PATIENCE_S)
            router.stdout.close()


class SecretFiles(unittest.TestCase):
    def setUp(self):
        work = tempfile.TemporaryDirectory()
        self.addCleanup(work.cleanup)
        self.work = work.name

    def write(self, name, text, mode):
        path = os.path.join(self.work, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def home(self, name):
        return os.path.join(self.work, name)

    def founder(self):
        node = subprocess.Popen(
            [harness.PROGRAM, "serve", "--port", "0", "--control-port", "0", "--no-beacon", "--json"], stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True, env={**os.environ, "LOCKSTEP_HOME": self.home("founder")})
        self.addCleanup(self.end, node)
        said = node.stdout.readline()
        return int(re.search(r'"port": ?(\d+)', said)[1]), int(re.search(r'"control_port": ?(\d+)', said)[1])

    def end(self, node):
        node.send_signal(signal.SIGTERM)
        node.wait(harness.PATIENCE_S)
        node.stdout.close()

    def cluster_key(self, name):
        with open(os.path.join(self.home(name), "cluster_key"), encoding="ascii") as file:
            return file.read()

    def join(self, name, control_port, *arguments, **env):
        """Starts a node that joins, and ends it."""
        node = subprocess.Popen(
            [harness.PROGRAM, "serve", "--port", "0", "--control-port", "0", "--no-beacon", "--json", "--join",
             f"127.0.0.1:{control_port}", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "LOCKSTEP_HOME": self.home(name), **env})
        said = node.stdout.readline()
        if not said:
            raise AssertionError(node.communicate()[1])
        node.stderr.close()
        self.end(node)

    def test_a_token_comes_from_a_file_a_variable_that_names_one_or_a_credential_of_systemd(self):
        port, control_port = self.founder()
        made = harness.run_json("cluster", "token", "--port", port, "--json",
                                env={"LOCKSTEP_HOME": self.home("founder")})
        os.mkdir(self.home("credentials"))
        file = self.write("token", made["token"] + "\n", 0o600)
        self.write("credentials/lockstep.token", made["token"], 0o440)
        self.join("a", control_port, "--token-file", file)
        self.join("b", control_port, LOCKSTEP_TOKEN_FILE=file)
        self.join("c", control_port, CREDENTIALS_DIRECTORY=self.home("credentials"))
        for name in "abc":
            self.assertEqual(self.cluster_key(name), self.cluster_key("founder"))
        os.unlink(file)
        self.join("a", control_port, "--token-file", file)  # a member needs none

    def refused(self, sentence, *arguments, **env):
        env = {"LOCKSTEP_HOME": self.home("refused"), **env}
        process = harness.run("serve", "--join", "127.0.0.1:9", "--port", "0", *arguments, env=env)
        self.assertNotEqual(process.returncode, 0)
        self.assertIn(sentence, process.stderr)

    def test_a_file_that_is_empty_or_readable_by_others_is_refused(self):
        path = self.write("token", "x", 0o604)
        self.refused(f"other users may read {path}: run chmod 600 on it", "--token-file", path)
        self.refused(f"other users may read {path}: run chmod 600 on it", LOCKSTEP_TOKEN_FILE=path)
        path = self.write("empty", "\n", 0o600)
        self.refused(f"{path} is empty: write the secret into it", "--token-file", path)
        self.refused("nowhere does not exist", "--token-file", self.home("nowhere"))
        os.mkdir(self.home("credentials"))  # without a token
        self.refused("needs a token", CREDENTIALS_DIRECTORY=self.home("credentials"))

    def test_a_router_takes_the_key_for_its_backends_from_a_file(self):
        path = self.write("key", "lk-x", 0o604)
        process = harness.run("router", "--to", "http://127.0.0.1:9", "--port", "0", "--api-key-file", path,
                              env={"LOCKSTEP_HOME": self.home("router")})
        self.assertNotEqual(process.returncode, 0)
        self.assertIn("chmod 600", process.stderr)

    @unittest.skipUnless(IS_ROOT, "only root can give a folder away")
    def test_a_folder_of_another_user_is_refused_also_for_root(self):
        os.mkdir(self.home("refused"), 0o700)
        os.chown(self.home("refused"), NOBODY, NOBODY)
        self.refused(f"belongs to user {NOBODY} and this process runs as user 0: start lockstep as that user")
        self.assertEqual(os.listdir(self.home("refused")), [])
        self.assertEqual(stat.S_IMODE(os.stat(self.home("refused")).st_mode), 0o700)


if __name__ == "__main__":
    harness.main()
