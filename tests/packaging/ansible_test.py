"""The role and the playbooks of packaging/ansible: linted, and run on three machines of their own (played_machine.py): one
installs the Debian package and has a played systemd, one the archive of tools/tarball.sh, one is a Mac as far as the role
can see: a played brew, launchctl, sysadminctl and sudo. Real are Ansible, its modules, dpkg, the unit, the property list, the
nodes and their cluster. Skipped without ansible-playbook, dpkg-deb, root, network namespaces or overlayfs."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "cluster"))
import harness
import machines
from played_machine import HERE, PlayedMachine

ANSIBLE = pathlib.Path(harness.SOURCE) / "packaging/ansible"
BINARY_DIR = os.environ.get("LOCKSTEP_BINARY_DIR", os.path.join(harness.SOURCE, "build/release"))
MODEL = "/usr/share/lockstep/models/stories260K"
PLAY_S = 240
TELLING_S = 5
NEW = b"9.9.9"  # as long as the version, whose text in the program it replaces

# The commands of a Mac that the role calls. brew unpacks the archive of the version that the formula names.
PLAYED = {
    "brew": r"""
tap=/opt/homebrew/Library/Taps/lockstep/homebrew-local
formula="$tap/Formula/lockstep.rb"
offered="$(sed -n 's|.*/lockstep-\([0-9.]*\)\.tar\.gz"|\1|p' "$formula" 2>/dev/null || true)"
installed="$(cat /opt/homebrew/installed 2>/dev/null || true)"
echo "$*" >>/var/log/played_brew.calls
case "$1" in
  --repository) echo "$tap" ;;
  tap-new) mkdir -p "$tap/Formula" ;;
  outdated) if [ -n "$installed" ] && [ "$installed" != "$offered" ]; then echo lockstep/local/lockstep; fi ;;
  install | upgrade)
    if [ "$installed" = "$offered" ]; then echo "Warning: lockstep $installed is already installed" >&2; exit 0; fi
    tar -xzf "SHARED/brewed-$offered.tar.gz" -C /opt/homebrew --strip-components=1
    echo "$offered" >/opt/homebrew/installed ;;
  *) exit 64 ;;
esac
""",
    "sysadminctl": r"""
[ "$1 $3 $5" = "-addUser -UID -roleAccount" ]
exec useradd --system --uid "$4" --home-dir "$7" --no-create-home "$2"
""",
    "sudo": r"""
[ "$1" = -u ]
user="$2"
shift 2
exec runuser -u "$user" -- "$@"
""",
}


def run(*command, check=True, **options):
    started = time.monotonic()
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=PLAY_S, check=False,
                          stdin=subprocess.DEVNULL, **options)
    if time.monotonic() - started > TELLING_S:
        print(f"({pathlib.Path(command[0]).name} took {time.monotonic() - started:.0f} s)", file=sys.stderr)
    if check and done.returncode != 0:
        raise AssertionError(f"{command}: {done.stdout[-6000:]}{done.stderr[-3000:]}")
    return done


def version():
    text = (pathlib.Path(harness.SOURCE) / "src/base/version.h").read_text(encoding="utf-8")
    return re.search(r'kVersion = "([\d.]+)"', text)[1]


class Packages:
    """A .deb and an archive of this build, and the same of a later version."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        old = version()
        assert len(old) == len(NEW), "NEW must be as long as the version"
        run("cpack", "--config", os.path.join(BINARY_DIR, "CPackConfig.cmake"), "-B", self.folder / "made")
        deb = next((self.folder / "made").glob("*.deb"))
        tarball = run(pathlib.Path(harness.SOURCE) / "tools/tarball.sh", "--build", BINARY_DIR, "--output", folder).stdout.strip()
        self.debs = {old: str(deb), NEW.decode(): self.later_deb(deb, old)}
        self.tarballs = {old: tarball, NEW.decode(): self.later_tarball(tarball, old)}
        for number, path in self.tarballs.items():
            shutil.copy(path, self.folder / f"brewed-{number}.tar.gz")
        self.formulas = {}
        for number in self.tarballs:
            text = (pathlib.Path(harness.SOURCE) / "packaging/homebrew/lockstep.rb").read_text(encoding="utf-8")
            path = self.folder / f"formula-{number}.rb"
            path.write_text(text.replace("@URL@", f"file:///sources/lockstep-{number}.tar.gz"), encoding="utf-8")
            self.formulas[number] = str(path)

    @staticmethod
    def renew(program, old):
        content = program.read_bytes()
        assert content.count(b"\0" + old.encode() + b"\0") == 1, "the program's version is not where it was"
        program.write_bytes(content.replace(b"\0" + old.encode() + b"\0", b"\0" + NEW + b"\0"))

    def later_deb(self, deb, old):
        root = self.folder / "later-deb"
        run("dpkg-deb", "-R", deb, root)
        self.renew(root / "usr/bin/lockstep", old)
        control = root / "DEBIAN/control"
        control.write_text(control.read_text(encoding="utf-8").replace(f"Version: {old}", f"Version: {NEW.decode()}"), encoding="utf-8")
        (root / "DEBIAN/md5sums").unlink()
        later = str(deb).replace(old, NEW.decode())
        run("dpkg-deb", "--root-owner-group", "-Zgzip", "-b", root, later)
        return later

    def later_tarball(self, tarball, old):
        root = self.folder / "later-tarball"
        run("mkdir", root)
        run("tar", "-xzf", tarball, "-C", root)
        name = next(root.iterdir()).name
        self.renew(root / name / "bin/lockstep", old)
        later = tarball.replace(old, NEW.decode())
        run("tar", "-czf", later, "-C", root, name)
        return later


@unittest.skipUnless(shutil.which("ansible-lint"), "ansible-lint is missing")
class Lint(unittest.TestCase):
    def test_ansible_lint_finds_nothing(self):
        with tempfile.TemporaryDirectory() as home:  # it keeps a cache
            done = run("ansible-lint", "--offline", "--nocolor", "-p", check=False, cwd=ANSIBLE,
                       env={**os.environ, "HOME": home, "XDG_CACHE_HOME": home})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


@unittest.skipIf(harness.SANITIZERS, "a program with sanitizers has its version in more than one place")
class Playbooks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.shared = tempfile.mkdtemp(prefix="lockstep_ansible_")
        cls.addClassCleanup(shutil.rmtree, cls.shared)
        os.chmod(cls.shared, 0o755)
        shutil.copy(HERE / "played_init.py", cls.shared)
        cls.packages = Packages(cls.shared)
        machines.ip("link", "add", "br0", "type", "bridge")
        machines.ip("link", "set", "br0", "up")
        cls.addClassCleanup(machines.ip, "link", "del", "br0")
        cls.machines = {}
        for number, (name, is_linux) in enumerate((("alpha", True), ("beta", True), ("mac", False)), 1):
            machine = PlayedMachine(cls.shared, "br0", number, name, is_linux)
            cls.machines[name] = machine
            cls.addClassCleanup(machine.close)
        for name, text in PLAYED.items():
            path = pathlib.Path(cls.shared, name)
            path.write_text("#!/bin/sh\nset -e\n" + text.replace("SHARED", cls.shared), encoding="utf-8")
            cls.machines["mac"].run("install", "-D", "-m", "755", path, f"/usr/local/bin/{name}")
        cls.machines["mac"].run("mkdir", "-p", "/opt/homebrew")

    def inventory(self, number, arguments):
        """The inventory that installs this version, with these arguments of `lockstep serve` by host."""
        settings = {"alpha": {"lockstep_package": self.packages.debs[number]},
                    "beta": {"lockstep_package": self.packages.tarballs[number], "lockstep_install": "tarball"},
                    "mac": {"lockstep_system": "Darwin", "lockstep_brew": "/usr/local/bin/brew",
                            "lockstep_homebrew_formula_file": self.packages.formulas[number]}}
        hosts = {}
        for name, machine in self.machines.items():
            hosts[name] = {"ansible_connection": "local", "ansible_shell_executable": machine.shell(self.shared),
                           "ansible_python_interpreter": "/usr/bin/python3", "ansible_remote_tmp": self.shared + "/tmp-" + name,
                           "ansible_become": False, "lockstep_address": machine.address, "lockstep_arguments": arguments.get(name, []),
                           **settings[name]}
        path = os.path.join(self.shared, "inventory.json")
        pathlib.Path(path).write_text(json.dumps({"lockstep": {"hosts": hosts}}), encoding="utf-8")
        return path

    def play(self, playbook, number, *arguments, check=True, renewed=None):
        return run("ansible-playbook", "-i", self.inventory(number, renewed or {}), ANSIBLE / playbook, *arguments, check=check,
                   cwd=self.shared, env={**os.environ, "HOME": self.shared, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_LOCAL_TEMP": self.shared + "/local",
                        "ANSIBLE_PIPELINING": "1"})

    def changed(self, done):
        """{host: changed tasks} of the recap."""
        return {host: int(count) for host, count in re.findall(r"^(\w+)\s+: ok=\d+\s+changed=(\d+)", done.stdout, re.M)}

    def lockstep(self, name, *arguments, check=True):
        prefix = {"alpha": "/usr", "beta": "/usr/local", "mac": "/opt/homebrew"}[name]
        user, home = ("_lockstep", "/usr/local/var/lockstep") if name == "mac" else ("lockstep", "/var/lib/lockstep")
        return self.machines[name].run("runuser", "-u", user, "--", "env", f"LOCKSTEP_HOME={home}", f"{prefix}/bin/lockstep",
                                       *arguments, check=check)

    def nodes(self, name="alpha"):
        status = json.loads(self.lockstep(name, "status", "--json").stdout)
        return {node["name"]: node for node in status["nodes"]}

    def calls(self, name):
        return self.machines[name].read("/var/log/played_init.calls")

    def pids(self):
        return {name: machine.run("pgrep", "-f", "/lockstep serve").stdout.split()[0] for name, machine in self.machines.items()}

    def test_1_site_installs_and_joins_three_machines(self):
        self.play("site.yml", version())
        nodes = self.nodes()
        self.assertEqual({name: node["state"] for name, node in nodes.items()}, {name: "alive" for name in self.machines})
        clusters = {json.loads(self.lockstep(name, "cluster", "id", "--json").stdout)["cluster"] for name in self.machines}
        self.assertEqual(len(clusters), 1)
        # The service's user runs it, and no token is left.
        for name, machine in self.machines.items():
            user = "_lockstep" if name == "mac" else "lockstep"
            owner = machine.run("ps", "-o", "user=", "-p", self.pids()[name]).stdout.strip()
            self.assertEqual(owner, user)
            self.assertNotEqual(machine.run("ls", "/etc/credstore/lockstep.token", "/usr/local/var/lockstep/credentials/lockstep.token",
                                            check=False).stdout.count("lockstep.token"), 1)
            self.assertNotIn("lockstep-join", machine.run("ps", "-eo", "args").stdout)
        self.assertIn("systemctl enable lockstep.service", self.calls("alpha"))
        self.assertIn("launchctl bootstrap system /Library/LaunchDaemons/lockstep.plist", self.calls("mac"))
        self.assertIn("install lockstep/local/lockstep", self.machines["mac"].read("/var/log/played_brew.calls"))

    def test_2_another_run_restarts_only_nodes_whose_arguments_changed(self):
        before = self.pids()
        changed = self.changed(self.play("site.yml", version(), renewed={"alpha": ["--drain", "3"], "mac": ["--drain", "4"]}))
        after = self.pids()
        self.assertEqual(changed["beta"], 0)  # nothing is new there
        self.assertEqual({name for name in before if before[name] != after[name]}, {"alpha", "mac"})
        for name, drain in (("alpha", 3), ("mac", 4)):
            self.assertIn(f"--drain {drain}", self.machines[name].run("ps", "-o", "args=", "-p", after[name]).stdout)
        self.assertEqual(changed["alpha"], 2)  # the line of arguments and the restart
        self.assertEqual(changed["mac"], 3)  # the property list, which is unloaded and loaded
        self.assertIn("systemctl restart lockstep.service", self.calls("alpha"))
        self.assertIn("launchctl bootout system/lockstep", self.calls("mac"))
        machines.wait_for(lambda: {node["state"] for node in self.nodes("beta").values()} == {"alive"}, "all are back")

    def test_3_the_doctors_findings_become_one_table(self):
        table = os.path.join(self.shared, "table.txt")
        # A key that others can read is a problem, and only there.
        self.machines["beta"].run("chmod", "644", "/var/lib/lockstep/cluster_key")
        shown = self.play("doctor.yml", version(), "-e", f"lockstep_doctor_table={table}").stdout
        self.machines["beta"].run("chmod", "600", "/var/lib/lockstep/cluster_key")
        lines = pathlib.Path(table).read_text(encoding="utf-8").splitlines()
        self.assertRegex(lines[0], r"^host\s+is\s+check\s+finding$")
        self.assertEqual([line.split()[:3] for line in lines if " problem " in line], [["beta", "problem", "key_rights"]])
        self.assertRegex(lines[1], "^beta")  # problems come first
        for name in self.machines:
            self.assertTrue(any(re.match(rf"{name} +ok +port ", line) for line in lines), name)
        self.assertRegex(lines[-1], r"^1 problems, \d+ notes on 3 machines$")
        self.assertIn(json.dumps(lines[1])[1:-1], shown)

    def test_4_upgrade_restarts_one_node_after_another_and_models_stay(self):
        self.lockstep("alpha", "load", MODEL, "--timeout", "60")
        before = self.pids()
        done = self.play("upgrade.yml", NEW.decode())
        self.assertEqual({name: node["version"] for name, node in self.nodes().items()}, {name: NEW.decode() for name in self.machines})
        self.assertEqual(self.pids(), before)  # each restarted in place
        self.assertEqual(len(re.findall(r"^TASK \[lockstep : Restart this node\]", done.stdout, re.M)), 3)  # three batches of one
        self.assertNotIn("try-restart", self.calls("alpha"))
        status = json.loads(self.lockstep("mac", "status", "--json").stdout)
        self.assertEqual([(model["name"], model["state"]) for model in status["models"]], [("stories260K", "ready")])

    def test_5_an_upgrade_that_fails_leaves_the_machines_after_it(self):
        broken = os.path.join(self.shared, "broken.tar.gz")
        with tarfile.open(broken, "w:gz") as archive:
            program = pathlib.Path(self.shared, "broken")
            program.write_text("#!/bin/sh\necho lockstep 0.0.0\n", encoding="utf-8")
            program.chmod(0o755)
            archive.add(program, "lockstep-0.0.0/bin/lockstep")
        done = self.play("upgrade.yml", NEW.decode(), "-e", json.dumps({"lockstep_restart_seconds": 5}), "-e",
                         json.dumps({"lockstep_package": broken, "lockstep_install": "tarball"}), "--limit", "beta,mac", check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertNotRegex(done.stdout, r"(?m)^mac\s+: ok=[1-9]")
        self.assertEqual(self.nodes()["mac"]["version"], NEW.decode())


def why_not():
    for tool in ("ansible-playbook", "dpkg-deb", "cpack", "ip", "nsenter"):
        if not shutil.which(tool):
            return f"{tool} is missing"
    with tempfile.TemporaryDirectory() as folder:
        script = ('mount --make-rprivate / && mount -t tmpfs t "$0" && mkdir "$0/u" "$0/w" "$0/m" && '
                  'mount -t overlay o -o "lowerdir=/,upperdir=$0/u,workdir=$0/w" "$0/m"')
        tried = run("unshare", "--mount", "sh", "-c", script, folder, check=False)
        return None if tried.returncode == 0 else f"no overlayfs here ({tried.stderr.strip()})"


if __name__ == "__main__":
    reason = why_not()
    if reason:
        print(f"skipped: {reason}")
        sys.exit(machines.SKIPPED)
    machines.enter_own_namespace()
    unittest.main(verbosity=2, failfast=True)  # each case builds on the ones before it
