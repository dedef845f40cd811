"""Control of a real node: its user's commands and browsers have it; callers through a proxy on the same machine and
other users of the machine do not."""

import hashlib
import hmac
import http.client
import http.server
import json
import os
import re
import shutil
import socket
import socketserver
import stat
import subprocess
import tempfile
import threading
import unittest

import harness

OTHER_USER = 65534  # nobody
CHANGES = ("/cluster/token", "/cluster/load", "/cluster/unload", "/cluster/restart", "/control/page")


class Proxy(socketserver.ThreadingTCPServer):
    """Forwards everything, with header lines changed by `change`; by default none, like stunnel, socat or ssh -L."""
    allow_reuse_address = daemon_threads = True

    def __init__(self, port, change=lambda head: head, host="127.0.0.1", own_port=0):
        self.target, self.change = (host, port), change
        super().__init__(("127.0.0.1", own_port), ProxyHandler)
        self.port = self.server_address[1]
        self.thread = threading.Thread(target=self.serve_forever)
        self.thread.start()

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()
        self.thread.join()


class ProxyHandler(socketserver.BaseRequestHandler):
    def handle(self):
        sent = b""
        while b"\r\n\r\n" not in sent:
            sent += self.request.recv(1 << 16)
        head, body = sent.split(b"\r\n\r\n", 1)
        length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
        while length and len(body) < int(length[1]):
            body += self.request.recv(1 << 16)
        with socket.create_connection(self.server.target, harness.PATIENCE_S) as node:
            node.sendall(self.server.change(head) + b"\r\n\r\n" + body)
            while piece := node.recv(1 << 16):
                self.request.sendall(piece)


def with_host(host, line=b""):
    """Sets the Host that nginx and others send, and the header line that they add."""
    def change(head):
        lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"host:")]
        return b"\r\n".join([lines[0], b"Host: " + host, *([line] if line else []), *lines[1:]])
    return change


def ask(port, method, path, body=None, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=harness.PATIENCE_S)
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, None if body is None else json.dumps(body), {"Connection": "close", **headers})
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response.status, text, response.headers


def proof_header(port, secret, method, target, body=b""):
    """What a command of the node's user sends as X-Lockstep-Control with one request."""
    offer = json.loads(ask(port, "GET", "/control/proof?nonce=" + "c" * 64, Host="localhost")[1])
    body_hash = hashlib.sha256(body).hexdigest()
    said = "\n".join(["lockstep control request 1", str(port), offer["nonce"], body_hash, method, target])
    mac = hmac.new(secret.encode(), said.encode(), hashlib.sha256).hexdigest()
    return f"{offer['nonce']} {body_hash} {mac}"


class ControlTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="lockstep_control_")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.home = os.path.join(cls.folder, "home")
        cls.env = {"LOCKSTEP_HOME": cls.home}
        made = harness.run("key", "add", "laptop", env=cls.env)
        cls.key = made.stdout.strip()
        cls.node = subprocess.Popen(
            [harness.PROGRAM, "serve", "--port", "0", "--control-port", "0", "--no-beacon", "--name", "anna", "--json"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env={**os.environ, **cls.env})
        cls.addClassCleanup(cls.end)
        cls.said = cls.node.stdout.readline()
        cls.port = json.loads(cls.said)["port"]

    @classmethod
    def end(cls):
        cls.node.terminate()
        cls.node.wait(harness.PATIENCE_S)
        cls.node.stdout.close()

    def secret(self):
        with open(os.path.join(self.home, "control_secret"), encoding="ascii") as file:
            return file.read().strip()

    def check_refused(self, port, prove=None, **headers):
        for path in CHANGES:
            body = {"model": "x", "node": "anna"}
            proof = {"X_Lockstep_Control": prove("POST", path, json.dumps(body).encode())} if prove else {}
            status, text, _ = ask(port, "POST", path, body, **headers, **proof)
            self.assertEqual(status, 403, f"{path}: {text}")
        self.assertNotIn('"pins"', ask(port, "GET", "/cluster/status", **headers)[1])

    def lockstep(self, *arguments, port=None, user=None, home=None):
        """The finished process of a command."""
        command = [harness.PROGRAM, *arguments, "--port", str(port or self.port)]
        return subprocess.run(command, capture_output=True, text=True, timeout=harness.PATIENCE_S, check=False,
                              user=user, env={**os.environ, "LOCKSTEP_HOME": home or self.home})

    def test_commands_of_the_nodes_user_have_control(self):
        token = self.lockstep("cluster", "token")
        self.assertEqual(token.returncode, 0, token.stderr)
        self.assertGreater(len(token.stdout), 20)
        self.assertEqual(json.loads(self.lockstep("status", "--json").stdout)["pins"], [])
        path = os.path.join(self.home, "control_secret")
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)

    def test_local_callers_without_the_secret_have_none(self):
        self.check_refused(self.port)
        self.check_refused(self.port, Host="localhost")
        self.check_refused(self.port, Authorization="Bearer " + self.key)

    def test_a_proxy_that_passes_all_on_gives_strangers_none(self):
        with Proxy(self.port) as proxy:
            self.check_refused(proxy.port, Host="localhost")
            self.check_refused(proxy.port, Host=f"127.0.0.1:{self.port}", Authorization="Bearer " + self.key)
            status, text, _ = ask(proxy.port, "GET", "/v1/models", Host="llm.example", Authorization="Bearer " + self.key)
            self.assertEqual(status, 200, text)

    def test_a_proxy_that_names_the_node_gives_strangers_none(self):
        named = b"127.0.0.1:" + str(self.port).encode()
        for line in (b"", b"Via: 1.1 proxy", b"X-Forwarded-Proto: https", b"X-Forwarded-Host: llm.example",
                     b"CF-Connecting-IP: 203.0.113.9"):
            with self.subTest(line), Proxy(self.port, with_host(named, line)) as proxy:
                self.check_refused(proxy.port, Host="llm.example")
                if line:  # given away by it, even the proof is useless
                    self.check_refused(proxy.port, lambda *request: proof_header(self.port, self.secret(), *request))

    @unittest.skipUnless(os.geteuid() == 0, "only root can be another user")
    def test_another_user_of_the_machine_has_none_and_is_told_why(self):
        os.chmod(self.folder, 0o755)
        program = os.path.dirname(harness.PROGRAM)
        if subprocess.run(["test", "-x", harness.PROGRAM], user=OTHER_USER, check=False).returncode != 0:
            self.skipTest(f"another user cannot run {program}")
        for arguments in (("cluster", "token"), ("unload", "x"), ("page",)):
            done = self.lockstep(*arguments, user=OTHER_USER)
            self.assertNotEqual(done.returncode, 0, arguments)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertIn("run the command as the user who runs the node", done.stderr)
            self.assertIn("belongs to another user", done.stderr)
        status = self.lockstep("status", "--json", user=OTHER_USER)
        self.assertEqual(status.returncode, 0, status.stderr)
        self.assertNotIn("pins", json.loads(status.stdout))

    def test_a_program_that_took_the_nodes_port_gets_no_secret(self):
        heads = []

        class Thief(http.server.BaseHTTPRequestHandler):
            def answer(self):
                heads.append(str(self.headers))
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b'{"proof": "' + b"0" * 64 + b'", "token": "no token"}')

            do_GET = do_POST = answer

            def log_message(self, *_):
                pass

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Thief) as thief:
            thread = threading.Thread(target=thief.serve_forever)
            thread.start()
            self.lockstep("cluster", "token", port=thief.server_address[1])
            thief.shutdown()
            thread.join()
        self.assertGreater(len(heads), 1)
        with open(os.path.join(self.home, "control_secret"), encoding="ascii") as file:
            self.assertNotIn(file.read().strip(), "".join(heads))

    def test_a_program_that_relays_the_proof_gains_that_request_and_no_other(self):
        # The node listens at 127.0.0.2, and another user's program takes its port at 127.0.0.1, where commands look.
        home = os.path.join(self.folder, "elsewhere")
        node = subprocess.Popen(
            [harness.PROGRAM, "serve", "--host", "127.0.0.2", "--port", "0", "--control-port", "0", "--no-beacon", "--json"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env={**os.environ, "LOCKSTEP_HOME": home})
        self.addCleanup(node.stdout.close)
        self.addCleanup(node.wait, harness.PATIENCE_S)
        self.addCleanup(node.terminate)
        port = json.loads(node.stdout.readline())["port"]
        heads = []

        def keep(head):
            heads.append(head)
            return head

        with Proxy(port, keep, "127.0.0.2", port):
            token = self.lockstep("cluster", "token", port=port, home=home)
            self.assertEqual(token.returncode, 0, token.stderr)
            with open(os.path.join(home, "control_secret"), encoding="ascii") as file:
                secret = file.read().strip()
            seen = b"\n".join(heads).decode()
            self.assertNotIn(secret, seen)
            proofs = re.findall(r"(?i)x-lockstep-control: (.*)\r", seen + "\r")
            self.assertEqual(len(proofs), 1, seen)
            for path in CHANGES:  # neither again nor for anything else
                self.check_used_up(port, path, {}, proofs[0])
            # A proof that has not been used is for its own request only.
            fresh = proof_header(port, secret, "POST", "/cluster/load", b'{"model": "mine"}')
            self.check_used_up(port, "/cluster/unload", {"model": "mine"}, fresh)
            self.check_used_up(port, "/cluster/load", {"model": "x"}, fresh)
            self.check_used_up(port, "/cluster/load", {"model": "mine"}, fresh)

    def check_used_up(self, port, path, body, proof):
        status, text, _ = ask(port, "POST", path, body, Host="localhost", X_Lockstep_Control=proof)
        self.assertEqual(status, 403, f"{path}: {text}")

    def test_the_page_has_control_in_the_browser_that_opened_its_address(self):
        said = json.loads(self.lockstep("page", "--json").stdout)
        path = re.fullmatch(r"http://localhost:\d+(/page/[0-9a-f]{64})", said["url"])[1]
        host = f"localhost:{self.port}"
        status, _, headers = ask(self.port, "GET", path, Host=host)
        self.assertEqual((status, headers["Location"]), (303, "/"))
        cookie = headers["Set-Cookie"].split(";")[0]
        self.assertIn("HttpOnly; SameSite=Strict", headers["Set-Cookie"])
        self.assertIn('"pins"', ask(self.port, "GET", "/cluster/status", Host=host, Cookie=cookie)[1])
        origin = "http://" + host
        self.assertEqual(ask(self.port, "POST", "/cluster/token", {}, Host=host, Cookie=cookie, Origin=origin)[0], 200)
        self.assertEqual(ask(self.port, "POST", "/cluster/token", {}, Host=host, Cookie=cookie,
                             Origin="http://localhost:1")[0], 403)
        self.assertEqual(ask(self.port, "GET", path, Host=host)[0], 403)

    def test_what_a_node_prints_for_programs_has_no_code(self):
        self.assertNotIn("/page/", self.said)
        self.assertEqual(json.loads(self.said)["url"], f"http://localhost:{self.port}/")


if __name__ == "__main__":
    harness.main()
