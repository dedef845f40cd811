"""The rules of tests/tidy as data. tidy.py holds the code that applies them."""

import re

LINE_COLUMNS_MAX = 100
FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 70
FOLDER_FILES_MAX = 28  # of src/, sub-folders not counted

# Files that are one table of data may be longer; so may initialisers anywhere, which are not
# functions.
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

# nm's letters for symbols that the linker may take from any object: weak (W, V) and unique (u) ones.
WEAK_SYMBOL_TYPES = set("WVu")
WEAK_SYMBOLS_ALLOWED = re.compile(r"^DW\.ref\.")  # a pointer for exception tables, no code

# Folders of src/ whose names are in a namespace of their own inside lockstep.
NAMESPACES = {
    "src/device/gpu/": "lockstep::gpu",
    "src/device/shaders/": "lockstep::gpu",
    "src/device/vulkan/": "lockstep::gpu",
    "src/chat/jinja/": "lockstep::jinja",
    "src/chat/jinja_syntax/": "lockstep::jinja",
}

# Types at the scope of namespace lockstep, which is not indented; those in an anonymous namespace are each file's own.
TYPE_DEFINITION = re.compile(
    r"^(?:class|struct|union|enum class|enum)\s+(?P<name>\w+)\b(?!::)(?:\s+final)?\s*(?::(?!:)[^;{]*)?\{", re.MULTILINE
)
# Functions at the scope of a namespace, not indented: definitions, and declarations of headers.
FUNCTION_DEFINITION = re.compile(
    r"^(?!return|else|case|using|typedef)[A-Za-z_][\w:<>,&*\[\] ]*[ &*>](?P<name>\w+)\([^;{}]*?\)[^;{}()]*\{", re.MULTILINE
)
FUNCTION_DECLARATION = re.compile(
    r"^(?!return|else|case|using|typedef)[A-Za-z_\[][\w:<>,&*\[\] ]*[ &*>](?P<name>\w+)\(", re.MULTILINE
)
# A member's definition at the scope of the namespace, not indented; "class" is the outermost class.
MEMBER_DEFINITION = re.compile(
    r"^(?:[\w\[][\w:<>,&*\[\] ]*[ &*>])?(?<![\w:])(?P<class>\w+)::(?:\w+::)*~?\w+\([^;{}]*?\)[^;{}]*\{", re.MULTILINE
)
# It ends at "}  // namespace", whose comment is spaces by now; a function's brace has none after it.
ANONYMOUS_NAMESPACE = re.compile(r"^namespace \{\n.*?^\} {4,}$", re.MULTILINE | re.DOTALL)

# A header that only forward-declares a library's classes saves its includers from the library's headers.
FORWARD_DECLARATIONS = re.compile(r"\bnamespace\s+(\w+)\s*\{\s*(?:class\s+\w+;\s*)+\}")

# Words with a reason; they count in every text file outside tests/tidy.
BANNED_WORDS = [
    (re.compile(r"\bTODO\b(?!\(#\d+\))"), "a TODO names its issue: TODO(#12)"),
    (re.compile(r"\b(FIXME|XXX)\b"), "mend it or open an issue"),
    (re.compile(r"(?<![\w.~-])/(work|home|root|Users)/"), "a path of somebody's machine"),
    (
        # Open WebUI's own address of its image, which the page tells its users, is meant.
        re.compile(r"\b(docker\.io|ghcr\.io(?!/open-webui/)|quay\.io|pypi\.org|registry\.npmjs\.org|proxy\.golang\.org)\b"),
        "a registry's host: packages come from the system",
    ),
]

# Phrases that a native speaker reads twice: (pattern, what to write instead). Where a pattern has a group "bad", the other
# alternatives are what is allowed. They count in comments and strings of C++ files and in all other text, but for code in
# backquotes. A comment is a block of adjacent // lines, joined.
PHRASES = [
    (re.compile(r"\banew\b", re.IGNORECASE), "write 'again'"),
    (re.compile(r"\b(comes?|came) of\b(?! age)", re.IGNORECASE), "write 'results from', or name the result"),
    (re.compile(r"\bmakes? no sense\b", re.IGNORECASE), "write 'is invalid'"),
    (
        re.compile(
            r"\b(?:sits?|lags?|falls?) behind\b|\bs behind\b|\bbehind(?: |-)(?:an?|the)(?: |-)(?:proxy|NAT|firewall|redirect)\b"
            r"|\bbehind one\b|(?P<bad>\bbehind\b)",
            re.IGNORECASE,
        ),
        "write 'after'; only a proxy, a NAT, a firewall or a redirect has something behind it",
    ),
    (re.compile(r"\bbeside\b", re.IGNORECASE), "write 'next to' for a place, 'while' or 'besides' for anything else"),
]

# A file of the project that a comment names; what follows a slash, a dot or a word is part of an address.
NAMED_PATH = re.compile(r"(?<![\w./-])[a-z_]+/(?:\w+/)*\w+\.(?:cc|h|inl)\b")

# A source of the project that a document names; one with a < or a name in capitals is a pattern for the reader.
QUOTED_PATH = re.compile(r"`(?P<path>(?:[a-z_*][\w*-]*/)*[a-z_*][\w*]*\.(?:cc|h|inl|py|sh))`")

# In comments of C++ files besides, and in documents, where a heading, an item or a cell begins a sentence too.
SUBJECT_FIRST = "a sentence begins with its subject: name the thing instead of 'what', 'who' or 'of ...'; questions are fine"
NO_SUBJECT = r"(?P<bad>(?:What|Who|Of)\b)(?![^.!?]*\?)"
SUBJECT_PHRASES = [(re.compile(r"(?:^|(?<=[.!?:] )|(?<=[.!?]\) ))" + NO_SUBJECT), SUBJECT_FIRST)]
COMMENT_PHRASES = PHRASES + SUBJECT_PHRASES
DOCUMENT_PHRASES = PHRASES + [
    (re.compile(r"(?:^ *(?:#+ |[-*>] |\d+\. )?|[.!?:|] |[.!?]\) |[.!?]\*\* )(?:\*\*|\[)*" + NO_SUBJECT, re.MULTILINE), SUBJECT_FIRST)
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
        re.compile(r"^src/"),
        re.compile(
            r"\bstd::hash<\s*std::string(_view)?\s*>|"
            r"\bstd::unordered_(map|set)<\s*std::string(_view)?\s*(>|,(?![^;{}]*\bTextHash\b))"
        ),
        "a fixed hash of texts: whoever writes them can make them collide; TextHash (base/text_hash.h) or std::map",
        set(),
    ),
    (
        re.compile(r"^src/"),
        re.compile(r"\bstd::ifstream\b|\bfopen\s*\("),
        "no std::ifstream: it waits at a named pipe; read_small_file() or open_regular()",
        {  # files of /proc and /sys, whose sizes mean nothing
            "src/base/machine/system_file.h",
            "src/base/machine/cgroup_memory.cc",
            "src/base/machine/machine.cc",
            "src/base/meters/machine_sensors.cc",
            "src/doctor/facts/system_files.cc",
            "src/node/network/network_speed.cc",
        },
    ),
    (
        re.compile(r"^src/"),
        re.compile(r"(?<!\w)::open\((?![^;]*\b(O_DIRECTORY|O_NONBLOCK|O_CREAT|flags)\b)"),
        "open() without O_NONBLOCK waits at a named pipe: open_regular() (base/files/file_io.h)",
        {"src/engine/store/page_file.cc"},  # in a folder of ours, on a thread that is always awaited with a deadline
    ),
    (
        re.compile(r"^src/(?!net/|json/)"),
        re.compile(r"(?<!\w)boost\s*::"),
        "Boost is named only in net and json, which have names of their own for what others need",
        set(),
    ),
    (
        re.compile(r"^tests/"),
        re.compile(r"\b(this_thread\s*::\s*sleep_\w+|usleep|nanosleep)\s*\(|(?<!\w)::sleep\s*\("),
        "no sleep in a test: wait for the event, with a deadline",
        {"tests/node/test_worker.cc"},  # simulates a slow worker
    ),
]

# Text files of these folders and of the root are checked. Generated and foreign ones are left out.
TEXT_SUFFIXES = {".cc", ".h", ".inl", ".py", ".sh", ".md", ".cmake", ".txt", ".yml", ".json"}
TEXT_NAMES = {"Makefile", "run", ".clang-tidy", ".clang-format", ".gitignore"}
# The page's sources: nothing turns a text into HTML or code, since texts of models and strangers are in it. The page's policy
# (src/server/browser/page_routes.cc) refuses inline styles; `style:name={...}` sets a property without one.
# Lines of the web page's sources that are comments and follow each other.
WEB_COMMENT = re.compile(r"^ *// ?.*(?:\n *// ?.*)*", re.MULTILINE)
WEB_SCRIPT = re.compile(r"^web/.*\.(svelte|ts|mjs)$")
WEB_FILE = re.compile(r"^web/src/.*\.(svelte|ts|js|mjs|html)$")
WEB_RULES = [
    (re.compile(r"\{@html\b"), "text that becomes HTML: render it with components"),
    (re.compile(r"\b(innerHTML|outerHTML|insertAdjacentHTML|srcdoc|createContextualFragment|setHTMLUnsafe|parseFromString)\b"),
     "text that becomes HTML: textContent, or a component"),
    (re.compile(r"\bdocument\s*\.\s*write(ln)?\b"), "document.write: a component"),
    (re.compile(r"(?<![\w.])eval\s*\(|\bnew\s+Function\b"), "text that becomes code"),
    (re.compile(r"\sstyle=\s*[\"'{`]|\bsetAttribute\(\s*[\"'`]style\b"), "an inline style, which the policy refuses: style:name={value}"),
]

FOLDERS_LEFT_OUT = {".git", ".cache", "build", "node_modules", "data", "corpus", "__pycache__", "tidy"}
ROOT_FOLDERS_LEFT_OUT = {"models"}
