"""The files of packaging/ are accepted by the programs that read them, and name commands and flags that lockstep
has. Tools that a machine lacks (systemd-analyze, shellcheck, PyYAML, dpkg-shlibdeps) are skipped."""

import hashlib
import os
import pathlib
import plistlib
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "cluster"))
import harness

try:
    import yaml
except ImportError:
    yaml = None

SOURCE = pathlib.Path(harness.SOURCE)
PACKAGING = SOURCE / "packaging"
BINARY_DIR = os.environ.get("LOCKSTEP_BINARY_DIR", os.path.join(harness.SOURCE, "build/release"))
PATIENCE_S = 120

# launchd.plist(5): keys, and those of the limits and of KeepAlive that are used
LAUNCHD_KEYS = {"Label", "ProgramArguments", "RunAtLoad", "KeepAlive", "ThrottleInterval", "ExitTimeOut", "ProcessType",
                "Umask", "SoftResourceLimits", "StandardOutPath", "StandardErrorPath", "UserName", "InitGroups", "WorkingDirectory",
                "EnvironmentVariables"}
LAUNCHD_LIMITS = {"Core", "NumberOfFiles"}


# A Slurm with one machine, and a lockstep that records its arguments.
PLAYED = {
    "scontrol": "printf 'm1\\nm2\\nm3\\n'\n",
    "srun": """machines=all
while [[ "$1" == --* ]]; do
  case "$1" in --nodelist=*) machines="${1#--nodelist=}" ;; esac
  shift
done
MACHINES="$machines" exec "$@"
""",
    # The log shows a node only when it can be told to end.
    "lockstep": """[ "$1" != serve ] || trap 'echo "$MACHINES: ended" >>"$PLAYED_LOG"; exit 0' TERM
echo "$MACHINES: $* token=${LOCKSTEP_TOKEN:-}" >>"$PLAYED_LOG"
case "$1" in
  serve)
    while :; do sleep 0.05; done ;;
  cluster) echo played ;;
esac
"""}


def run(*command, **options):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=PATIENCE_S,
                          check=False, **options)


def read(*path):
    return PACKAGING.joinpath(*path).read_text(encoding="utf-8")


def version():
    return re.search(r'kVersion = "([\d.]+)"', (SOURCE / "src/base/version.h").read_text(encoding="utf-8"))[1]


def commands():
    """The commands of lockstep."""
    text = harness.run("--help").stdout
    return set(re.findall(r"^  ([a-z]+) ", text[text.index("Subcommands:"):], re.MULTILINE))


def unit(name):
    """{section: {key: [values]}} of a systemd unit."""
    sections, current = {}, None
    for line in read("systemd", name).splitlines():
        if not line or line.startswith("#"):
            continue
        if line.startswith("["):
            current = sections.setdefault(line.strip("[]"), {})
        else:
            key, _, value = line.partition("=")
            current.setdefault(key, []).append(value)
    return sections


class Systemd(unittest.TestCase):
    UNITS = ("lockstep.service", "lockstep-router.service")

    def test_units_start_a_command_and_end_it_gently(self):
        for name in self.UNITS:
            with self.subTest(name):
                service = unit(name)["Service"]
                program, command, *arguments = service["ExecStart"][0].split()
                self.assertEqual(program, "/usr/bin/lockstep")
                self.assertIn(command, commands())
                defaults = read("systemd", "lockstep.default")
                for argument in arguments:
                    self.assertIn(f"\n{argument[1:]}=", defaults)
                self.assertEqual(service["KillSignal"], ["SIGTERM"])
                self.assertEqual(service["Restart"], ["on-failure"])
                self.assertEqual(unit(name)["Unit"]["After"], ["network-online.target"])

    @unittest.skipUnless(shutil.which("systemd-analyze"), "systemd-analyze is missing")
    def test_systemd_takes_the_units(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in self.UNITS:
                text = read("systemd", name).replace("/usr/bin/lockstep", harness.PROGRAM)
                text = re.sub(r"^Documentation=.*\n", "", text, flags=re.MULTILINE)
                path = os.path.join(folder, name)
                pathlib.Path(path).write_text(text, encoding="utf-8")
                verified = run("systemd-analyze", "verify", path)
                self.assertEqual((verified.returncode, verified.stderr), (0, ""), name)

    def test_a_fault_ends_at_the_limits_of_its_unit_and_leaves_no_core(self):
        for name in self.UNITS:
            with self.subTest(name):
                service = unit(name)["Service"]
                self.assertEqual(service["LimitCORE"], ["0"])
                self.assertRegex(service["TasksMax"][0], r"^[1-9]\d*$")
                self.assertRegex(service["MemoryMax"][0], r"^[1-9]\d*[%KMGT]$")
                self.assertNotIn("MemoryHigh", service)
                self.assertRegex(service["LimitNOFILE"][0], r"^[1-9]\d*$")

    def test_secrets_are_credentials_and_in_no_file_that_all_can_read(self):
        for name, credential in (("lockstep.service", "lockstep.token"), ("lockstep-router.service", "lockstep.api-key")):
            self.assertEqual(unit(name)["Service"]["LoadCredential"], [credential])
            self.assertIn(f"/etc/credstore/{credential}", read("systemd", "lockstep.default"))
            # The name is what the program looks for.
            sources = "".join(path.read_text(encoding="utf-8") for path in (SOURCE / "src/cli").rglob("*.cc"))
            self.assertIn(f'"{credential}"', sources)
        self.assertNotRegex(read("systemd", "lockstep.default"), r"(?i)(token|key)=")

    @unittest.skipUnless(shutil.which("systemd-analyze"), "systemd-analyze is missing")
    def test_systemd_finds_little_that_the_units_could_do_without(self):
        for name in self.UNITS:
            said = run("systemd-analyze", "security", "--offline=true", "--threshold=20", PACKAGING / "systemd" / name)
            if "unrecognized option" in said.stderr:
                self.skipTest("this systemd-analyze reads no files")
            self.assertEqual(said.returncode, 0, said.stdout[-300:] + said.stderr)

    def test_the_user_of_the_unit_is_made(self):
        self.assertRegex(read("systemd", "lockstep.sysusers"), r"^u lockstep - ")
        self.assertEqual(unit("lockstep.service")["Service"]["User"], ["lockstep"])

    def test_a_rank_may_open_a_gpu_and_no_other_device(self):
        service = unit("lockstep.service")["Service"]
        self.assertEqual(service["DevicePolicy"], ["closed"])
        self.assertEqual(service["DeviceAllow"], ["char-infiniband_verbs rw", "char-rdma_cm rw", "char-drm rw", "char-nvidia* rw"])
        self.assertNotIn("PrivateDevices", service)
        self.assertNotIn("SupplementaryGroups", service)  # a group that is missing would keep the unit from starting
        self.assertEqual(service["LimitMEMLOCK"], ["infinity"])
        members = re.findall(r"^m lockstep (\w+)$", read("systemd", "lockstep.sysusers"), re.MULTILINE)
        self.assertEqual(members, ["render", "video"])
        self.assertIn(f"for group in {' '.join(members)}; do", read("debian", "postinst"))
        role = "ansible/roles/lockstep"
        self.assertIn(f"lockstep_gpu_groups: [{', '.join(members)}]", read(role, "vars/main.yml"))
        self.assertIn('groups: "{{ lockstep_gpu_groups }}"', read(role, "tasks/service_systemd.yml"))

    @unittest.skipUnless(shutil.which("systemd-sysusers") and os.geteuid() == 0, "systemd-sysusers or root is missing")
    def test_its_user_is_in_the_groups_of_gpus(self):
        with tempfile.TemporaryDirectory() as root:
            pathlib.Path(root, "etc").mkdir()
            made = run("systemd-sysusers", f"--root={root}", PACKAGING / "systemd/lockstep.sysusers")
            self.assertEqual(made.returncode, 0, made.stderr)
            groups = pathlib.Path(root, "etc/group").read_text(encoding="utf-8")
            for group in ("render", "video"):
                self.assertRegex(groups, rf"(?m)^{group}:.*:lockstep$")


class Launchd(unittest.TestCase):
    LISTS = {name: plistlib.loads(read("launchd", name).encode()) for name in ("lockstep.plist", "lockstep-daemon.plist")}

    def test_the_lists_have_documented_keys_and_a_command(self):
        for name, content in self.LISTS.items():
            with self.subTest(name):
                self.assertEqual(set(content) - LAUNCHD_KEYS, set())
                self.assertEqual(set(content["SoftResourceLimits"]) - LAUNCHD_LIMITS, set())
                self.assertIn(content["ProgramArguments"][1], commands())
                self.assertEqual(content["KeepAlive"], {"SuccessfulExit": False})
                self.assertEqual(content["ProcessType"], "Interactive")
                self.assertEqual(content["Umask"], 0o77)
                # launchd kills after it; `serve --drain` and its watchdog take 20 s at most.
                self.assertGreaterEqual(content["ExitTimeOut"], 30)

    def test_a_core_dump_is_off_and_logs_are_in_no_folder_of_all(self):
        for name, content in self.LISTS.items():
            with self.subTest(name):
                self.assertEqual(content["SoftResourceLimits"]["Core"], 0)
                for key in ("StandardOutPath", "StandardErrorPath"):
                    self.assertNotRegex(content[key], r"^/(private/)?(var/)?tmp/")

    def test_an_agent_gets_its_home_by_the_command_at_its_top(self):
        text = read("launchd", "lockstep.plist")
        filled = run("sh", "-c", re.search(r'sed "s\S+ lockstep.plist', text)[0], cwd=PACKAGING / "launchd",
                     env={**os.environ, "HOME": "/home-of-anna"})
        content = plistlib.loads(filled.stdout.encode())
        self.assertEqual(content["StandardOutPath"], "/home-of-anna/Library/Logs/lockstep.log")
        self.assertNotIn("UserName", content)

    def test_a_daemon_has_a_user_and_a_folder_and_sets_no_limit_of_the_system(self):
        content = self.LISTS["lockstep-daemon.plist"]
        self.assertTrue(content["UserName"].startswith("_"))
        home = content["EnvironmentVariables"]["LOCKSTEP_HOME"]
        for key in ("WorkingDirectory", "StandardOutPath"):
            self.assertTrue(content[key].startswith(home), key)
        self.assertTrue(content["EnvironmentVariables"]["CREDENTIALS_DIRECTORY"].startswith(home))
        # In a daemon NumberOfFiles is kern.maxfiles, NumberOfProcesses is kern.maxproc.
        for limits in ("SoftResourceLimits", "HardResourceLimits"):
            self.assertEqual(set(content.get(limits, {})) & {"NumberOfFiles", "NumberOfProcesses"}, set())
        self.assertIn(home, read("launchd", "lockstep-daemon.plist").partition("<plist")[0])


class Homebrew(unittest.TestCase):
    FORMULA = read("homebrew", "lockstep.rb")

    def test_it_needs_what_a_build_on_a_mac_installs(self):
        needed = set(re.findall(r'depends_on "([^"]+)"', self.FORMULA)) | set(re.findall(r'uses_from_macos "([^"]+)"', self.FORMULA))
        script = (SOURCE / "tools/install_packages.sh").read_text(encoding="utf-8")
        installed = re.search(r"packages_macos\(\) \{.*?base\) echo ([^;]*);;", script, re.DOTALL)[1]
        only_tests = {"doctest", "google-benchmark", "ccache"}
        self.assertEqual(needed - {"libedit"}, {word.rpartition(":")[2] for word in installed.split()} - only_tests)

    @unittest.skipUnless(shutil.which("ruby"), "ruby is missing")
    def test_ruby_can_read_it(self):
        checked = run("ruby", "-wc", PACKAGING / "homebrew" / "lockstep.rb")
        self.assertEqual((checked.returncode, checked.stdout.strip()), (0, "Syntax OK"), checked.stderr)

    @unittest.skipUnless((SOURCE / ".git").exists() and shutil.which("git"), "the sources are no clone")
    def test_the_tool_makes_an_archive_and_a_formula_that_fits_it(self):
        with tempfile.TemporaryDirectory() as folder:
            made = run(SOURCE / "tools/homebrew_formula.sh", "--output", folder)
            self.assertEqual(made.returncode, 0, made.stderr)
            archive = pathlib.Path(folder, f"lockstep-{version()}.tar.gz")
            formula = pathlib.Path(folder, "lockstep.rb").read_text(encoding="utf-8")
            self.assertIn(f'url "file://{archive}"', formula)
            self.assertIn(f'sha256 "{hashlib.sha256(archive.read_bytes()).hexdigest()}"', formula)
            self.assertNotIn("@", formula.replace("openssl@3", ""))
            refused = run(SOURCE / "tools/homebrew_formula.sh", "--output", folder, "--url", "https://example.org/main.tar.gz")
            self.assertEqual(refused.returncode, 2, refused.stdout)
            self.configure(archive, folder, formula)

    def configure(self, archive, folder, formula):
        """The formula's first command, with Linux's OpenSSL: the archive is whole and the options exist."""
        self.assertEqual(run("tar", "-xzf", archive, "-C", folder).returncode, 0)
        arguments = [word for word in re.search(r"args = %W\[(.*?)\]", formula, re.DOTALL)[1].split() if "OPENSSL" not in word]
        build = os.path.join(folder, "build")
        done = run("cmake", "-S", os.path.join(folder, f"lockstep-{version()}"), "-B", build, *arguments, "-DCMAKE_BUILD_TYPE=Release")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("were not used by the project", done.stderr)
        self.assertEqual(run("ninja", "-C", build, "-n", "lockstep").returncode, 0)


class Tarball(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.work)
        cls.archives = []
        for folder in ("one", "two"):
            made = run(SOURCE / "tools/tarball.sh", "--build", BINARY_DIR, "--output", os.path.join(cls.work, folder),
                       env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"})
            if made.returncode != 0:
                raise AssertionError(made.stdout + made.stderr)
            cls.archives.append(pathlib.Path(made.stdout.strip()))

    def test_its_name_says_for_what_it_is_and_its_layout_is_that_of_a_prefix(self):
        name = f"lockstep-{version()}-{os.uname().sysname.lower()}-{os.uname().machine}"
        self.assertEqual(self.archives[0].name, f"{name}.tar.gz")
        with tarfile.open(self.archives[0]) as archive:
            members = {member.name: member for member in archive.getmembers()}
        for path in ("bin/lockstep", "share/lockstep/models/stories260K/config.json", "share/man/man1/lockstep.1",
                     "share/bash-completion/completions/lockstep", "share/zsh/site-functions/_lockstep",
                     "share/fish/vendor_completions.d/lockstep.fish",
                     "share/doc/lockstep/copyright", "share/doc/lockstep/docs/macs.md",
                     "share/doc/lockstep/examples/launchd/lockstep-daemon.plist",
                     "share/doc/lockstep/examples/systemd/lockstep.service",
                     "share/doc/lockstep/examples/ansible/site.yml", "share/doc/lockstep/examples/homebrew/lockstep.rb"):
            self.assertIn(f"{name}/{path}", members)
        self.assertEqual({path.split("/")[0] for path in members}, {name})
        self.assertEqual({path.split("/")[1] for path in members if "/" in path}, {"bin", "share"})
        for member in members.values():
            self.assertEqual((member.uid, member.gid, member.mtime), (0, 0, 1700000000), member.name)
            self.assertEqual(member.mode & 0o22, 0, member.name)

    def test_its_program_runs_where_it_is_unpacked(self):
        folder = os.path.join(self.work, "prefix")
        os.mkdir(folder)
        self.assertEqual(run("tar", "-xzf", self.archives[0], "-C", folder, "--strip-components=1").returncode, 0)
        said = run(os.path.join(folder, "bin/lockstep"), "run", os.path.join(folder, "share/lockstep/models/stories260K"),
                   "Once upon a time", "--raw", "--temperature", "0", "--max-tokens", "8", "--local")
        self.assertEqual((said.returncode, "there was" in said.stdout), (0, True), said.stderr)

    def test_the_same_build_gives_the_same_bytes(self):
        self.assertEqual(*(archive.read_bytes() for archive in self.archives))


@unittest.skipUnless(yaml, "PyYAML is missing")
class Kubernetes(unittest.TestCase):
    def objects(self, name):
        found = {}
        for entry in yaml.safe_load_all(read("kubernetes", name)):
            found[entry["kind"], entry["metadata"]["name"]] = entry["spec"]
        return found

    def containers(self):
        for name, key in (("lockstep.yaml", ("StatefulSet", "lockstep")),
                          ("router.yaml", ("Deployment", "lockstep-router"))):
            yield self.objects(name)[key]["template"]["spec"]["containers"][0]

    def test_the_image_is_of_this_version_and_ports_have_names(self):
        for container in self.containers():
            self.assertEqual(container["image"], f"lockstep:{version()}")
            ports = {port["name"] for port in container["ports"]}
            for probe in ("readinessProbe", "livenessProbe"):
                self.assertIn(container[probe]["httpGet"]["port"], ports)

    def test_pods_find_each_other(self):
        objects = self.objects("lockstep.yaml")
        stateful_set = objects["StatefulSet", "lockstep"]
        service = objects["Service", stateful_set["serviceName"]]
        self.assertEqual(service["clusterIP"], "None")
        self.assertEqual(service["selector"], stateful_set["template"]["metadata"]["labels"])
        self.assertIn(f"--join lockstep-0.{stateful_set['serviceName']}:8601", read("kubernetes", "lockstep.yaml"))

    def test_the_scripts_of_pods_are_some(self):
        for container in self.containers():
            checked = run("sh", "-n", "-c", container["command"][2])
            self.assertEqual((checked.returncode, checked.stderr), (0, ""))

    def test_a_pod_needs_a_key_and_its_probes_need_none(self):
        for container in self.containers():
            self.assertNotIn("--open", container["command"][2])
            self.assertIn("lockstep-api-key", [entry.get("valueFrom", {}).get("secretKeyRef", {}).get("name")
                                               for entry in container["env"]])
            for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
                if probe in container:
                    self.assertIn(container[probe]["httpGet"]["path"], ("/health", "/version", "/api/version"))


class Container(unittest.TestCase):
    """The entry point, with `serve --help` instead of a node that would not end."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = os.path.join(folder.name, "home")
        os.symlink(harness.PROGRAM, os.path.join(folder.name, "lockstep"))
        self.env = {**os.environ, "PATH": f"{folder.name}:{os.environ['PATH']}", "LOCKSTEP_HOME": self.home}
        self.env.pop("LOCKSTEP_API_KEY", None)

    def enter(self, *arguments, **env):
        return run("sh", PACKAGING / "container" / "entrypoint.sh", *arguments, env={**self.env, **env})

    def keys(self):
        return [key["name"] for key in harness.run_json("key", "list", "--json", env={"LOCKSTEP_HOME": self.home})]

    def test_by_default_it_is_open_to_nobody(self):
        command = re.search(r"^CMD (.*)$", read("container", "Dockerfile"), re.MULTILINE)[1]
        self.assertNotIn("--open", command)
        self.assertIn("container/entrypoint.sh", read("container", "Dockerfile"))

    def test_the_first_start_makes_a_key_and_prints_it_once(self):
        first = self.enter("serve", "--help")
        self.assertEqual(first.returncode, 0, first.stderr)
        self.assertRegex(first.stdout, r"lk-[0-9a-f]{64}")
        self.assertEqual(self.keys(), ["container"])
        self.assertNotRegex(self.enter("serve", "--help").stdout, r"lk-[0-9a-f]{64}")

    def test_a_key_that_is_given_is_taken_and_not_printed(self):
        key = "lk-" + "ab" * 32
        given = self.enter("serve", "--help", LOCKSTEP_API_KEY=key)
        self.assertEqual(given.returncode, 0, given.stderr)
        self.assertNotIn(key, given.stdout + given.stderr)
        self.assertEqual(self.keys(), ["container"])

    def test_a_given_key_that_is_none_ends_the_start(self):
        refused = self.enter("serve", "--help", LOCKSTEP_API_KEY="password")
        self.assertEqual(refused.returncode, 2, refused.stdout)
        self.assertEqual(refused.stderr.count("\n"), 1, refused.stderr)

    def test_other_commands_and_an_open_node_make_none(self):
        self.assertEqual(self.enter("serve", "--open", "--help").returncode, 0)
        self.assertEqual(self.enter("--version").stdout.strip(), f"lockstep {version()}")
        self.assertEqual(self.keys(), [])


class Scripts(unittest.TestCase):
    def scripts(self):
        yield "bash", PACKAGING / "slurm" / "lockstep.sbatch"
        yield "sh", PACKAGING / "container" / "entrypoint.sh"
        for name in ("postinst", "prerm", "postrm"):
            yield "sh", PACKAGING / "debian" / name
        for name in ("tarball.sh", "homebrew_formula.sh"):
            yield "bash", SOURCE / "tools" / name

    def test_shells_can_read_the_scripts(self):
        for shell, path in self.scripts():
            checked = run(shell, "-n", path)
            self.assertEqual((checked.returncode, checked.stderr), (0, ""), path)

    @unittest.skipUnless(shutil.which("shellcheck"), "shellcheck is missing")
    def test_shellcheck_finds_nothing(self):
        for shell, path in self.scripts():
            checked = run("shellcheck", "-s", shell, path)
            self.assertEqual(checked.stdout, "", path)

    def test_slurm_reads_its_options_before_the_first_command(self):
        lines = read("slurm", "lockstep.sbatch").splitlines()
        options = [i for i, line in enumerate(lines) if line.startswith("#SBATCH ")]
        first = next(i for i, line in enumerate(lines) if line and not line.startswith("#"))
        self.assertTrue(options and max(options) < first)
        for i in options:
            self.assertRegex(lines[i], r"^#SBATCH --[a-z-]+(=\S+)?$")

    def test_a_job_founds_a_cluster_lets_the_others_join_and_ends_them(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in PLAYED.items():
                path = pathlib.Path(folder, name)
                path.write_text("#!/usr/bin/env bash\n" + text, encoding="utf-8")
                path.chmod(0o755)
            log = pathlib.Path(folder, "log")
            env = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "PLAYED_LOG": str(log), "LOCKSTEP_PROGRAM": "lockstep",
                   "SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "m[1-3]", "SLURM_TMPDIR": folder}
            job = subprocess.Popen(["bash", str(PACKAGING / "slurm" / "lockstep.sbatch"), "org/name"], env=env,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            try:
                self.assertIn("http://m1:8600/v1", job.stdout.readline())
                harness.wait_until(lambda: log.read_text(encoding="utf-8").count("serve") == 2, PATIENCE_S, "the join")
                job.send_signal(signal.SIGTERM)
                self.assertEqual(job.wait(PATIENCE_S), 143)
            finally:
                if job.poll() is None:
                    job.kill()
                    job.wait()
                job.stdout.close()
            said = log.read_text(encoding="utf-8")
            self.assertRegex(said, r"(?m)^m1: serve .*--no-beacon .*token=$")
            self.assertRegex(said, r"(?m)^m2,m3: serve .*--join m1:8601 .*token=played$")
            self.assertRegex(said, r"(?m)^m1: load --port 8600 org/name ")
            self.assertEqual(said.count("ended"), 2, said)

    def test_named_flags_exist(self):
        if "cluster" not in commands():
            self.skipTest("nodes cannot join a cluster yet")
        for command, flags in {"serve": ("--host", "--open", "--port", "--log-json", "--join", "--no-beacon", "--drain", "--host-name",
                                         "--no-control", "LOCKSTEP_TOKEN", "--token-file", "--core-dumps"),
                               "router": ("--host", "--to", "--log-json", "--drain", "--open", "--host-name", "--api-key-file"),
                               "key add": ("--stdin",), "page": ("--port",), "load": ("--port",), "cluster token": ("--port",)}.items():
            text = harness.run(*command.split(), "--help").stdout
            for flag in flags:
                self.assertIn(flag, text, command)


@unittest.skipUnless(all(map(shutil.which, ("cpack", "dpkg-deb", "dpkg-shlibdeps"))), "dpkg-dev or cpack is missing")
class DebianPackage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.work)
        made = run("cpack", "--config", os.path.join(BINARY_DIR, "CPackConfig.cmake"), "-B", cls.work)
        if made.returncode != 0:
            raise AssertionError(made.stdout + made.stderr)
        cls.package = next(pathlib.Path(cls.work).glob("*.deb"))
        cls.root = os.path.join(cls.work, "root")
        extracted = run("dpkg-deb", "-x", cls.package, cls.root)
        if extracted.returncode != 0:
            raise AssertionError(extracted.stderr)

    def field(self, name):
        return run("dpkg-deb", "-f", self.package, name).stdout.strip()

    def test_it_says_what_it_is_and_what_it_needs(self):
        self.assertEqual((self.field("Package"), self.field("Version")), ("lockstep", version()))
        for library in ("libc6", "libssl3", "libpcre2-8-0"):
            self.assertIn(library, self.field("Depends"))

    def test_its_program_runs_and_its_model_is_there(self):
        said = run(os.path.join(self.root, "usr/bin/lockstep"), "--version")
        self.assertEqual((said.returncode, said.stdout.strip()), (0, f"lockstep {version()}"))
        self.assertTrue(os.path.exists(os.path.join(self.root, "usr/share/lockstep/models/stories260K/config.json")))

    def test_units_and_settings_are_where_systemd_and_dpkg_look(self):
        for path in ("usr/lib/systemd/system/lockstep.service", "usr/lib/systemd/system/lockstep-router.service",
                     "usr/lib/sysusers.d/lockstep.conf", "etc/default/lockstep", "usr/share/man/man1/lockstep.1",
                     "usr/share/bash-completion/completions/lockstep", "usr/share/zsh/site-functions/_lockstep",
                     "usr/share/fish/vendor_completions.d/lockstep.fish", "usr/share/doc/lockstep/copyright"):
            self.assertTrue(os.path.isfile(os.path.join(self.root, path)), path)
        self.assertEqual(run("dpkg-deb", "-I", self.package, "conffiles").stdout, "/etc/default/lockstep\n")
        for script in ("postinst", "prerm", "postrm"):
            self.assertEqual(run("dpkg-deb", "-I", self.package, script).stdout, read("debian", script))

    def test_a_new_version_restarts_running_services_unless_it_is_told_not_to(self):
        with tempfile.TemporaryDirectory() as folder:
            script = read("debian", "postinst").replace("/run/systemd/system", folder)
            for tool in ("systemctl", "systemd-sysusers"):
                path = pathlib.Path(folder, tool)
                path.write_text('#!/bin/sh\necho "$(basename "$0") $*"\n', encoding="utf-8")
                path.chmod(0o755)
            env = {"PATH": f"{folder}:{os.environ['PATH']}"}
            usual = run("sh", "-c", script, "postinst", "configure", env=env)
            self.assertIn("systemctl try-restart lockstep.service", usual.stdout)
            kept = run("sh", "-c", script, "postinst", "configure", env={**env, "LOCKSTEP_NO_RESTART": "1"})
            self.assertEqual(kept.stdout, "systemd-sysusers lockstep.conf\nsystemctl daemon-reload\n")


if __name__ == "__main__":
    harness.main()
