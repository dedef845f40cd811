"""Control groups that limit the memory of emulated machines (Linux, version 1 and 2). Needs root."""

import os
import secrets
import threading
import time

ROOT = "/sys/fs/cgroup"
PERIOD_S = 0.05
GONE_S = 10.0


class NotPermitted(Exception):
    """The reason why control groups are not available."""


def write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def numbers(path):
    """The lines "key number" of a file."""
    with open(path, encoding="ascii") as file:
        return {key: int(value) for key, value in (line.split() for line in file)}


class MemoryLimit:
    """A separate group below the root's; processes enter it by `enter()`. Use close() once they have ended."""

    def __init__(self, limit):
        self.is_first = os.path.isdir(os.path.join(ROOT, "memory"))
        self.path = os.path.join(ROOT, "memory" if self.is_first else "", "lockstep_test_" + secrets.token_hex(4))
        self.limit, self.peak = limit, 0
        self.ended = threading.Event()
        try:
            if not self.is_first and "memory" not in open(os.path.join(ROOT, "cgroup.subtree_control")).read().split():
                write(os.path.join(ROOT, "cgroup.subtree_control"), "+memory")
            os.mkdir(self.path)
        except OSError as error:
            raise NotPermitted(f"no control groups for memory: {error}") from error
        try:
            write(self.file("memory.limit_in_bytes" if self.is_first else "memory.max"), str(limit))
            self.refuse_swap()
            write(self.file("cgroup.procs"), "")
        except OSError as error:
            os.rmdir(self.path)
            raise NotPermitted(f"no limits in control groups: {error}") from error
        self.watcher = threading.Thread(target=self.watch, daemon=True)
        self.watcher.start()

    def file(self, name):
        return os.path.join(self.path, name)

    def refuse_swap(self):
        name = self.file("memory.memsw.limit_in_bytes" if self.is_first else "memory.swap.max")
        if os.path.exists(name):
            write(name, str(self.limit) if self.is_first else "0")

    def enter(self):
        """A command that runs its arguments in this group, as the same process."""
        return ["sh", "-c", 'echo $$ > "$0" && exec "$@"', self.file("cgroup.procs")]

    def kills(self):
        """Processes that the kernel has killed for lack of memory."""
        return numbers(self.file("memory.oom_control" if self.is_first else "memory.events")).get("oom_kill", 0)

    def held(self):
        """Bytes that cannot be dropped: without the page cache."""
        stat = numbers(self.file("memory.stat"))
        return stat["rss" if self.is_first else "anon"] + stat["shmem"]

    def watch(self):
        while not self.ended.wait(PERIOD_S):
            self.peak = max(self.peak, self.held())

    def take_peak(self):
        """The maximum since the last call."""
        peak, self.peak = self.peak, 0
        return peak

    def close(self):
        self.ended.set()
        self.watcher.join()
        deadline = time.monotonic() + GONE_S
        while True:
            try:
                os.rmdir(self.path)  # the kernel may need a moment to remove the last process
                return
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(PERIOD_S)
