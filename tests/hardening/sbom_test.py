"""tools/sbom.py writes what CycloneDX 1.5 requires, and the program's real components. Debian and Ubuntu."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "cluster"))
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "tools"))
import elf
import harness

TOOL = os.path.join(harness.SOURCE, "tools", "sbom.py")
BINARY_DIR = os.environ.get("LOCKSTEP_BINARY_DIR", os.path.join(harness.SOURCE, "build/release"))

# From https://cyclonedx.org/schema/bom-1.5.schema.json
TYPES = {"application", "framework", "library", "container", "platform", "operating-system", "device", "device-driver", "firmware",
         "file", "machine-learning-model", "data"}
TOP_FIELDS = {"bomFormat", "specVersion", "serialNumber", "version", "metadata", "components", "dependencies"}
COMPONENT_FIELDS = {"type", "bom-ref", "name", "version", "purl", "licenses", "hashes", "components", "properties",
                    "externalReferences"}
SERIAL = r"^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
SHA_256 = r"^[0-9a-f]{64}$"
SHA_512 = r"^[0-9a-f]{128}$"
# https://github.com/package-url/purl-spec
PURL = r"^pkg:[a-z]+(/[a-z0-9.-]+)?/[A-Za-z0-9.+%_-]+@[A-Za-z0-9.+~%_-]+(\?[a-z]+=[^&=?#]+(&[a-z]+=[^&=?#]+)*)?$"


def components_in(parents):
    for component in parents:
        yield component
        yield from components_in(component.get("components", []))


def make(output, *arguments, epoch="1700000000"):
    return subprocess.run([sys.executable, "-B", TOOL, "--program", harness.PROGRAM, "--source", harness.SOURCE, "--output", output,
                           *arguments], capture_output=True, text=True, timeout=240, check=False,
                          env={**os.environ, "SOURCE_DATE_EPOCH": epoch})


@unittest.skipUnless(shutil.which("dpkg-query") and os.path.exists("/sbin/ldconfig"), "dpkg-query or ldconfig is missing")
class Bill(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with open(harness.PROGRAM, "rb") as file:
            if file.read(4) != b"\x7fELF":
                raise unittest.SkipTest("the program is no ELF file")
        cls.work = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.work)
        path = os.path.join(cls.work, "bill.json")
        arguments = ["--build-folder", BINARY_DIR] if shutil.which("ninja") else []
        made = make(path, *arguments)
        if made.returncode != 0:
            raise AssertionError(made.stderr)
        with open(path, encoding="utf-8") as file:
            cls.bill = json.load(file)
        cls.all = list(components_in([cls.bill["metadata"]["component"], *cls.bill["components"]]))

    def test_it_has_the_fields_that_the_specification_asks_for(self):
        self.assertEqual(set(self.bill), TOP_FIELDS)
        self.assertEqual((self.bill["bomFormat"], self.bill["specVersion"], self.bill["version"]), ("CycloneDX", "1.5", 1))
        self.assertRegex(self.bill["serialNumber"], SERIAL)
        self.assertEqual(self.bill["metadata"]["timestamp"], "2023-11-14T22:13:20Z")
        for component in self.all:
            with self.subTest(component["name"]):
                self.assertEqual(set(component) - COMPONENT_FIELDS, set())
                self.assertIn(component["type"], TYPES)
                self.assertTrue(component["name"])
                # npm's lock file has SHA-512 of its archives.
                kind = ("SHA-512", SHA_512) if component.get("purl", "").startswith("pkg:npm/") else ("SHA-256", SHA_256)
                for one in component.get("hashes", []):
                    self.assertEqual(one["alg"], kind[0])
                    self.assertRegex(one["content"], kind[1])
                if "purl" in component:
                    self.assertRegex(component["purl"], PURL)

    def test_each_license_is_an_expression_an_identifier_or_a_name(self):
        for component in self.all:
            for one in component.get("licenses", []):
                self.assertEqual(len(component["licenses"]), 1)
                if "expression" in one:
                    self.assertRegex(one["expression"], r"^[A-Za-z0-9.-]+( (AND|OR) [A-Za-z0-9.-]+)*$")
                else:
                    self.assertEqual(len(one["license"]), 1)
                    self.assertTrue(one["license"].get("id") or one["license"].get("name"))

    def test_references_are_unique_and_lead_somewhere(self):
        refs = [component["bom-ref"] for component in self.all]
        self.assertEqual(len(refs), len(set(refs)))
        named = [entry["ref"] for entry in self.bill["dependencies"]]
        self.assertEqual(len(named), len(set(named)))
        for entry in self.bill["dependencies"]:
            self.assertLessEqual({entry["ref"], *entry["dependsOn"]}, set(refs))
            self.assertEqual(len(entry["dependsOn"]), len(set(entry["dependsOn"])))

    def test_every_library_that_the_program_loads_is_there_with_its_package_and_its_bytes(self):
        files = {os.path.basename(component["name"]): component for component in self.all if component["type"] == "file"}
        for name in elf.read(harness.PROGRAM).needed():
            with self.subTest(name):
                stem = re.match(r"(.*\.so(\.\d+)?)", name)[1]
                found = [file for file in files if file == name or file.startswith(stem)]
                self.assertTrue(found)
                with open(files[found[0]]["name"], "rb") as file:
                    self.assertEqual(files[found[0]]["hashes"][0]["content"], hashlib.sha256(file.read()).hexdigest())
        libraries = {component["name"]: component for component in self.bill["components"] if component["type"] == "library"}
        for name in ("libssl3", "libpcre2-8-0", "libc6"):
            said = subprocess.run(["dpkg-query", "-W", "-f=${Version}", name], capture_output=True, text=True, check=False)
            if said.returncode == 0 and said.stdout:
                self.assertEqual(libraries[name]["version"], said.stdout)

    def test_the_program_and_the_model_are_there(self):
        with open(harness.PROGRAM, "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
        program = self.bill["metadata"]["component"]
        self.assertEqual(program["components"][0]["hashes"][0]["content"], digest)
        model = next(component for component in self.bill["components"] if component["type"] == "machine-learning-model")
        hashes = {file["name"]: file["hashes"][0]["content"] for file in model["components"]}
        with open(os.path.join(harness.STORIES, "model.safetensors"), "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
        self.assertEqual(hashes["models/stories260K/model.safetensors"], digest)
        own = next(entry for entry in self.bill["dependencies"] if entry["ref"] == program["bom-ref"])
        self.assertIn(model["bom-ref"], own["dependsOn"])

    @unittest.skipUnless(shutil.which("ninja"), "ninja is missing")
    def test_libraries_that_are_only_headers_are_there(self):
        names = {component["name"] for component in self.bill["components"]}
        self.assertIn("libcli11-dev", names)
        self.assertTrue(any(re.match(r"libboost[\d.]*-dev$", name) for name in names))
        self.assertFalse(any("doctest" in name or "benchmark" in name for name in names))  # only in tests

    def test_the_same_program_gives_the_same_bytes(self):
        texts = []
        for name in ("a.json", "b.json"):
            made = make(os.path.join(self.work, name))
            self.assertEqual((made.returncode, made.stderr), (0, ""))
            with open(os.path.join(self.work, name), "rb") as file:
                texts.append(file.read())
        self.assertEqual(texts[0], texts[1])

    def test_an_invalid_program_is_reported(self):
        path = os.path.join(self.work, "none")
        with open(path, "w", encoding="utf-8") as file:
            file.write("none")
        made = make(os.path.join(self.work, "c.json"), "--program", path)
        self.assertEqual(made.returncode, 1)
        self.assertIn("no ELF file", made.stderr)


if __name__ == "__main__":
    harness.main()
