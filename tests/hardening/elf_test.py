"""The program is built so that a memory error ends it instead of serving an attacker
(cmake/hardening.cmake): its ELF headers, its imports and the marks of its objects show it."""

import glob
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "cluster"))
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "tools"))
import elf
import harness

BINARY_DIR = os.environ.get("LOCKSTEP_BINARY_DIR", os.path.join(harness.SOURCE, "build/release"))
COMPILER = os.environ.get("LOCKSTEP_COMPILER", "c++")
CAN_MARK = os.environ.get("LOCKSTEP_LINKER_MARKS_SHADOW_STACKS", "1") not in ("", "0")
START_FILES = ("Scrt1.o", "crti.o", "crtn.o", "crtbeginS.o", "crtendS.o")


def start_file(name):
    said = subprocess.run([COMPILER, f"-print-file-name={name}"], capture_output=True, text=True, timeout=60, check=True)
    return elf.read(said.stdout.strip())


class Program(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if harness.SANITIZERS:
            raise unittest.SkipTest(f"built with -fsanitize={harness.SANITIZERS}, which replaces what is looked for")
        with open(harness.PROGRAM, "rb") as file:
            data = file.read()
        if not data.startswith(b"\x7fELF"):
            raise unittest.SkipTest("the program is no ELF file")
        cls.program = elf.Elf(data)

    def test_its_place_in_memory_is_random_at_each_start(self):
        self.assertEqual(self.program.type, elf.ET_DYN)
        self.assertTrue(self.program.flags(elf.DT_FLAGS_1) & elf.DF_1_PIE, "not linked with -pie")

    def test_its_table_of_functions_is_filled_at_the_start_and_then_only_read(self):
        bound = self.program.flags(elf.DT_FLAGS) & elf.DF_BIND_NOW or self.program.flags(elf.DT_FLAGS_1) & elf.DF_1_NOW
        self.assertTrue(bound, "not linked with -z now")
        relro = self.program.segments_of(elf.PT_GNU_RELRO)
        self.assertEqual(len(relro), 1, "not linked with -z relro")
        table = self.program.dynamic()[elf.DT_PLTGOT][0]
        self.assertTrue(relro[0].address <= table < relro[0].address + relro[0].size)

    def test_nothing_in_memory_is_both_written_and_run(self):
        stack = self.program.segments_of(elf.PT_GNU_STACK)
        self.assertEqual(len(stack), 1)
        self.assertFalse(stack[0].flags & elf.PF_X, "the stack can be run")
        for segment in self.program.segments_of(elf.PT_LOAD):
            self.assertNotEqual(segment.flags & (elf.PF_W | elf.PF_X), elf.PF_W | elf.PF_X)

    def test_no_code_is_written_when_it_is_loaded(self):
        self.assertNotIn(elf.DT_TEXTREL, self.program.dynamic())
        self.assertFalse(self.program.flags(elf.DT_FLAGS) & elf.DF_TEXTREL)

    def test_libraries_are_looked_for_where_the_system_has_them(self):
        self.assertNotIn(elf.DT_RPATH, self.program.dynamic())
        self.assertNotIn(elf.DT_RUNPATH, self.program.dynamic())

    def test_stacks_and_the_sizes_of_buffers_are_checked(self):
        imports = self.program.imports()
        self.assertTrue("__stack_chk_fail" in imports, "not compiled with -fstack-protector-strong")
        checked = {name for name in imports if name.startswith("__") and name.endswith("_chk")}
        self.assertGreater(len(checked), 3, "not compiled with _FORTIFY_SOURCE")
        self.assertTrue("__memcpy_chk" in checked, "memcpy is not checked anywhere")

    def test_indices_of_containers_are_checked(self):
        # Vectors, spans and strings call it, in all code except the kernels.
        fails = "_ZSt21__glibcxx_assert_failPKciS0_S0_" in self.program.imports()
        self.assertTrue(fails, "not compiled with _GLIBCXX_ASSERTIONS")

    def test_it_bears_the_mark_of_shadow_stacks(self):
        self.need_x86()
        if not CAN_MARK:
            self.skipTest("the linker does not know -z shstk")
        self.assertTrue(self.program.x86_features() & elf.SHSTK)

    def test_it_bears_the_mark_of_branch_tracking_where_the_toolchain_does(self):
        self.need_x86()
        unmarked = [name for name in START_FILES if not start_file(name).x86_features() & elf.IBT]
        if unmarked:
            self.skipTest(f"the C library's {', '.join(unmarked)} have no mark, and a program is marked if all in it is")
        self.assertTrue(self.program.x86_features() & elf.IBT)

    def test_every_object_of_ours_is_ready_for_both(self):
        self.need_x86()
        archives = glob.glob(os.path.join(BINARY_DIR, "src", "liblockstep_*.a"))
        self.assertGreater(len(archives), 15)
        unmarked, count = [], 0
        for archive in archives:
            for name, content in elf.members(archive):
                one = elf.Elf(content)
                count += one.has_code()
                if one.has_code() and one.x86_features() & (elf.IBT | elf.SHSTK) != elf.IBT | elf.SHSTK:
                    unmarked.append(name)
        self.assertEqual(unmarked[:10], [], f"{len(unmarked)} of {count} objects have no mark")
        self.assertGreaterEqual(count, len(archives))

    def need_x86(self):
        if self.program.machine != elf.EM_X86_64:
            self.skipTest("not an x86-64 program")


if __name__ == "__main__":
    harness.main()
