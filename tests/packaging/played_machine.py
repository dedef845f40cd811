"""A machine of its own for tests of installations: network, processes, host name and file system are its own, the latter
as a layer over this machine's, so that packages can be installed and users made without a trace. Its first process is
played_init.py. Needs root and overlayfs; made inside a network namespace of the test (machines.enter_own_namespace)."""

import os
import pathlib
import subprocess

import machines

HERE = pathlib.Path(__file__).resolve().parent
PATIENCE_S = 60

# $1: a folder of the machine's; $2: a folder that it shares with the test; $3: its host name. The bind mount gives tools of
# the test's side and the machine the same path.
SET_UP = r"""
set -e
mount --make-rprivate /
mount -t tmpfs layer "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay over -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
mount -t proc proc "$1/root/proc"
mount --rbind /dev "$1/root/dev"
mount --rbind /sys "$1/root/sys"
mkdir -p "$1/root$2"
mount --bind "$2" "$1/root$2"
rm -rf "$1/root/run" "$1/root/etc/systemd/system"
mkdir -p "$1/root/run" "$1/root/etc/systemd/system" "$1/root/usr/local/bin" "$1/root/Library/LaunchDaemons"
for name in systemctl launchctl; do
  cp "$2/played_init.py" "$1/root/usr/local/bin/$name"
  chmod 755 "$1/root/usr/local/bin/$name"
done
hostname "$3"
echo "127.0.0.1 localhost" >"$1/root/etc/hosts"
exec chroot "$1/root" /usr/bin/python3 -B "$2/played_init.py" serve
"""


class PlayedMachine:
    """Machine `number` on the bridge, with the address 10.87.0.NUMBER."""

    def __init__(self, shared, bridge, number, name, boots_systemd):
        self.name, self.address, self.cable = name, f"10.87.0.{number}", f"p{number}"
        self.layer = os.path.join(shared, "layer-" + name)
        os.mkdir(self.layer)
        self.holder = subprocess.Popen(
            ["unshare", "--net", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child", "sh", "-c", SET_UP, "sh", self.layer,
             shared, name], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if self.holder.stdout.readline() != "ready\n":
            raise OSError(self.holder.communicate(timeout=PATIENCE_S)[1].strip())
        with open(f"/proc/{self.holder.pid}/task/{self.holder.pid}/children", encoding="utf-8") as file:
            self.first = file.read().split()[0]
        machines.ip("link", "add", self.cable, "type", "veth", "peer", "name", "eth0", "netns", self.first)
        machines.ip("link", "set", self.cable, "master", bridge, "up")
        for inside in (["link", "set", "lo", "up"], ["addr", "add", self.address + "/24", "dev", "eth0"],
                       ["link", "set", "eth0", "up"]):
            self.run("ip", *inside)
        if boots_systemd:  # sd_booted(3)
            self.run("mkdir", "-p", "/run/systemd/system")

    def enter(self):
        """The words before a command of this machine."""
        return ["nsenter", "-t", self.first, "-n", "-m", "-u", "-i", "-p", "-r", "-w", "env", "-i",
                "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LANG=C.UTF-8"]

    def run(self, *arguments, check=True):
        done = subprocess.run([*self.enter(), *map(str, arguments)], capture_output=True, text=True, timeout=PATIENCE_S,
                              check=False, stdin=subprocess.DEVNULL)
        if check and done.returncode != 0:
            raise AssertionError(f"{self.name}: {arguments}: {done.stdout}{done.stderr}")
        return done

    def read(self, path):
        return self.run("cat", path).stdout

    def shell(self, folder):
        """A program like /bin/sh that runs on this machine: how Ansible's local connection reaches it."""
        path = os.path.join(folder, "sh-" + self.name)
        pathlib.Path(path).write_text("#!/bin/sh\nexec " + " ".join(self.enter()) + ' /bin/sh "$@"\n', encoding="utf-8")
        os.chmod(path, 0o755)
        return path

    def close(self):
        """Ends its first process, and thereby all others."""
        self.holder.kill()
        self.holder.wait()
        self.holder.stdout.close()
        self.holder.stderr.close()
        subprocess.run(["ip", "link", "del", self.cable], capture_output=True, check=False)
