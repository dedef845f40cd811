"""The rules of tests/tidy as data. tidy.py holds the code that applies them."""

import re

LINE_COLUMNS_MAX = 100
FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 70

# Files that are one table of data may be longer; so may initialisers anywhere, which are no functions.
TABLE_FILE = re.compile(r"_tables?\.(cc|h|inl)$")

# A library has one place that sees it: header prefix -> folders of src/ that may include it.
LIBRARY_WALLS = {
    "boost/asio": {"net"},
    "boost/beast": {"net"},
    "boost/json": {"json"},
    "boost/": {"net", "json"},
    "CLI/": {"cli"},
    "openssl/": {"base", "net"},
    "curl/": {"hub"},
    "infiniband/": {"transport"},
    "doctest": set(),
    "benchmark/": set(),
}

# Files compiled for one instruction set: an inline function of any library in them could be linked into the
# baseline program, which then dies on a processor without that instruction set.
ISA_FILE = re.compile(r"^src/kernels/(isa_\w+\.cc|.*\.inl)$")
ISA_INCLUDE = re.compile(
    r"^(<cstdint>|<cstddef>|<immintrin\.h>|<arm_neon\.h>|\"kernels/kernels\.h\"|\"kernels/[\w/]+\.inl\")$"
)

# What nm calls symbols that the linker may take from any object: weak (W, V) and unique (u) ones.
WEAK_SYMBOL_TYPES = set("WVu")
WEAK_SYMBOLS_ALLOWED = re.compile(r"^DW\.ref\.")  # a pointer for exception tables, no code

# Types at the scope of namespace lockstep, which is not indented; those in an anonymous namespace are each file's own.
TYPE_DEFINITION = re.compile(
    r"^(?:class|struct|union|enum class|enum)\s+(?P<name>\w+)\b(?!::)(?:\s+final)?\s*(?::(?!:)[^;{]*)?\{", re.MULTILINE
)
# It ends at "}  // namespace", whose comment is spaces by now; a function's brace has none behind it.
ANONYMOUS_NAMESPACE = re.compile(r"^namespace \{\n.*?^\} {4,}$", re.MULTILINE | re.DOTALL)

# A header that names a library's classes and nothing else of it spares all who include it the library's headers.
FORWARD_DECLARATIONS = re.compile(r"\bnamespace\s+(\w+)\s*\{\s*(?:class\s+\w+;\s*)+\}")

# Words with a reason; they count in every text file outside tests/tidy.
BANNED_WORDS = [
    (re.compile(r"\bTODO\b(?!\(#\d+\))"), "a TODO names its issue: TODO(#12)"),
    (re.compile(r"\b(FIXME|XXX)\b"), "mend it or open an issue"),
    (re.compile(r"(?<![\w.~-])/(work|home|root|Users)/"), "a path of somebody's machine"),
    (
        re.compile(r"\b(docker\.io|ghcr\.io|quay\.io|pypi\.org|registry\.npmjs\.org|proxy\.golang\.org)\b"),
        "a registry's host: packages come from the system",
    ),
]

# Patterns over C++ code without comments, strings and directives: (where, pattern, reason, files that may).
# Where a pattern has a group "bad", the other alternatives are what is allowed. Placement new builds in shared memory.
CODE_RULES = [
    (
        re.compile(r"^src/"),
        re.compile(
            r"(unique|shared)_ptr<[^;()]*>\s*\w*\s*[({]\s*new\b|\bnew\s*\((?!\s*std::nothrow)|(?P<bad>\bnew\b)"
        ),
        "new only straight into a unique_ptr, where make_unique cannot reach the constructor",
        set(),
    ),
    (
        re.compile(r"^src/"),
        re.compile(r"(?<!operator )(?<!= )(?<!=)\bdelete\b"),
        "no delete: std::unique_ptr owns",
        set(),
    ),
    (
        re.compile(r"^src/"),
        re.compile(r"(?<![\w.>:])(std::|::)?(malloc|calloc|realloc|free|aligned_alloc|posix_memalign)\s*\("),
        "no malloc: a container or a mapping owns",
        set(),
    ),
    (
        re.compile(r"^(src|tests)/.*\.h$"),
        re.compile(r"\busing\s+namespace\b"),
        "no using namespace in a header",
        set(),
    ),
    (
        re.compile(r"^src/"),
        re.compile(r"(?:[\w>]|[=(,{]\s*|\breturn )\{[^{};]*,[^{};]*\bTRY\("),
        "no TRY behind another element inside braces: compilers lose that one when it returns (base/result.h)",
        set(),
    ),
    (
        re.compile(r"^tests/"),
        re.compile(r"\b(this_thread\s*::\s*sleep_\w+|usleep|nanosleep)\s*\(|(?<!\w)::sleep\s*\("),
        "no sleep in a test: wait for the event, with a deadline",
        {"tests/node/test_worker.cc"},  # plays a worker that is slow on purpose
    ),
]

# Text files of these folders and of the root are looked at. Generated and foreign ones are left out.
TEXT_SUFFIXES = {".cc", ".h", ".inl", ".py", ".sh", ".md", ".cmake", ".txt", ".yml", ".json"}
TEXT_NAMES = {"Makefile", "run", ".clang-tidy", ".clang-format", ".gitignore"}
FOLDERS_LEFT_OUT = {".git", ".cache", "build", "models", "data", "corpus", "__pycache__", "tidy"}
