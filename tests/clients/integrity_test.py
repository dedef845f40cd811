"""Every package that tools/test_clients.sh installs has a hash, and one with other bytes is refused."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import check_integrity

TOOL = os.path.join(HERE, "check_integrity.py")


def listed():
    """The packages of packages.txt for Linux."""
    with open(os.path.join(HERE, "packages.txt"), encoding="utf-8") as file:
        words = [word for line in file if not line.startswith("#") for word in line.split()[1:]]
    for word in words:
        for system in ("linux-x64", "linux-arm64") if "{system}" in word else ("",):
            yield word.replace("{system}", system)


class Integrity(unittest.TestCase):
    def check(self, package, entry):
        with tempfile.TemporaryDirectory() as folder:
            lock = os.path.join(folder, "package-lock.json")
            with open(lock, "w", encoding="utf-8") as file:
                json.dump({"packages": {"": {}, "node_modules/" + package.rpartition("@")[0]: entry}}, file)
            done = subprocess.run([sys.executable, "-B", TOOL, lock, package], capture_output=True, text=True, timeout=60,
                                  check=False)
            return done.returncode, done.stderr

    def test_every_package_has_a_hash_and_no_hash_is_left_over(self):
        hashes = check_integrity.known_hashes()
        self.assertEqual(sorted(hashes), sorted(listed()))
        for digest in hashes.values():
            self.assertRegex(digest, r"^sha512-[A-Za-z0-9+/]{86}==$")

    def test_the_right_bytes_are_taken(self):
        for package, digest in check_integrity.known_hashes().items():
            version = package.rpartition("@")[2]
            self.assertEqual(self.check(package, {"version": version, "integrity": digest}), (0, ""))

    def test_other_bytes_another_version_and_unknown_packages_are_refused(self):
        package, digest = next(iter(check_integrity.known_hashes().items()))
        version = package.rpartition("@")[2]
        status, said = self.check(package, {"version": version, "integrity": "sha512-" + "A" * 86 + "=="})
        self.assertEqual((status, "other bytes" in said), (1, True))
        status, said = self.check(package, {"version": version})
        self.assertEqual((status, "no hash" in said), (1, True))
        status, said = self.check(package, {"version": "0.0.1", "integrity": digest})
        self.assertEqual((status, "not what npm chose: 0.0.1" in said), (1, True))
        status, said = self.check("left-pad@1.3.0", {"version": "1.3.0", "integrity": digest})
        self.assertEqual((status, "has no hash" in said), (1, True))


if __name__ == "__main__":
    unittest.main(verbosity=2)
