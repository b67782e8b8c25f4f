# Runs in the jail, tries everything that must not work, and prints what happened as JSON.
import ctypes, errno, json, os, socket, struct, sys

libc = ctypes.CDLL(None, use_errno=True)
x64 = os.uname().machine == "x86_64"


def call(x, arm, *args):
    ctypes.set_errno(0)
    number = x if x64 else arm
    words = [ctypes.c_long(word) if isinstance(word, int) else word for word in args]
    value = libc.syscall(ctypes.c_long(number), *words)
    return "allowed" if value >= 0 else errno.errorcode.get(ctypes.get_errno(), str(ctypes.get_errno()))


def attempt(work):
    try:
        work()
        return "allowed"
    except OSError as thrown:
        return errno.errorcode.get(thrown.errno, str(thrown))


def write(path):
    with open(path, "w") as file:
        file.write("x")


def fill(path, megabytes):
    written = 0
    try:
        with open(path, "wb") as file:
            for _ in range(megabytes):
                file.write(b"\0" * 1048576)
                file.flush()
                written += 1
    except OSError as thrown:
        return [written, errno.errorcode[thrown.errno]]
    finally:
        os.unlink(path)
    return [written, "allowed"]


def forks(most):
    made, why = [], "allowed"
    for _ in range(most):
        try:
            pid = os.fork()
        except OSError as thrown:
            why = errno.errorcode[thrown.errno]
            break
        if pid == 0:
            libc.pause()
            os._exit(0)
        made.append(pid)
    for pid in made:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
    return [len(made), why]


def connect(family, kind, address):
    with socket.socket(family, kind) as one:
        one.settimeout(2)
        one.connect(address)
        if kind == socket.SOCK_DGRAM:
            one.send(b"x")


status = dict(line.split(":\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\t" in line)
CLONE_NEWUSER = 0x10000000
port = int(sys.argv[1]) if len(sys.argv) > 1 else 1
found = {
    "ids": [os.getuid(), os.geteuid(), os.getgid(), os.getegid(), os.getgroups()],
    "status": {name: status[name].strip() for name in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp"]},
    "setuid": attempt(lambda: os.setuid(0)),
    "hostname": os.uname().nodename,
    "environ1": len(open("/proc/1/environ", "rb").read()),
    "cmdline1": open("/proc/1/cmdline").read().replace("\0", " "),
    "environment": sorted(os.environ),
    "root": sorted(os.listdir("/")),
    "etc": sorted(os.listdir("/etc")),
    "processes": sorted(open(f"/proc/{pid}/comm").read().strip() for pid in os.listdir("/proc") if pid.isdigit()),
    "descriptors": [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if int(fd) > 2 and os.path.exists(f"/proc/self/fd/{fd}")],
    "interfaces": [name for _, name in socket.if_nameindex()] if False else [line.split(":")[0].strip() for line in open("/proc/net/dev").readlines()[2:]],
    "writes": {
        path: attempt(lambda: write(path))
        for path in ["/x", "/usr/x", "/usr/bin/env", "/etc/x", "/etc/passwd", "/dev/x", "/sandbox/x", "/sandbox/entry.sh", "/bin/x", "/proc/sys/kernel/hostname", "/proc/sysrq-trigger"]
    },
    "remount": call(165, 40, b"none", b"/", b"", 32 | 4096, 0),
    "calls": {
        "unshare": call(272, 97, CLONE_NEWUSER),
        "setns": call(308, 268, 0, 0),
        "clone": call(56, 220, CLONE_NEWUSER | 17, 0, 0, 0, 0),
        "clone3": call(435, 435, 0, 0),
        "chroot": call(161, 51, b"/tmp"),
        "pivot_root": call(155, 41, b"/tmp", b"/tmp"),
        "umount": call(166, 39, b"/proc", 2),
        "fsopen": call(430, 430, b"tmpfs", 0),
        "ptrace": call(101, 117, 16, 1, 0, 0),
        "process_vm_readv": call(310, 270, 1, 0, 0, 0, 0, 0),
        "bpf": call(321, 280, 0, 0, 0),
        "perf_event_open": call(298, 241, 0, 0, -1, -1, 0),
        "userfaultfd": call(323, 282, 0),
        "keyctl": call(250, 219, 0, -3, 0),
        "add_key": call(248, 217, b"user", b"x", b"y", 1, -3),
        "io_uring_setup": call(425, 425, 1, 0),
        "open_by_handle_at": call(304, 265, 0, 0, 0),
        "init_module": call(175, 105, 0, 0, b""),
        "kexec_load": call(246, 104, 0, 0, 0, 0),
        "memfd_create": call(319, 279, b"x", 0),
        "sethostname": call(170, 161, b"x", 1),
        "ioctl TIOCSTI": call(16, 29, 0, 0x5412, b"x"),
    },
    "sockets": {
        name: attempt(lambda: socket.socket(family, kind, protocol).close())
        for name, family, kind, protocol in [
            ("netlink", 16, socket.SOCK_RAW, 0),
            ("packet", 17, socket.SOCK_RAW, 0),
            ("vsock", 40, socket.SOCK_STREAM, 0),
            ("bluetooth", 31, socket.SOCK_RAW, 0),
            ("alg", 38, socket.SOCK_SEQPACKET, 0),
            ("raw", socket.AF_INET, socket.SOCK_RAW, 1),
        ]
    },
    "network": {
        "metadata": attempt(lambda: connect(socket.AF_INET, socket.SOCK_STREAM, ("169.254.169.254", 80))),
        "metadata v6": attempt(lambda: connect(socket.AF_INET6, socket.SOCK_STREAM, ("fd00:ec2::254", 80))),
        "public": attempt(lambda: connect(socket.AF_INET, socket.SOCK_STREAM, ("1.1.1.1", 443))),
        "dns": attempt(lambda: connect(socket.AF_INET, socket.SOCK_DGRAM, ("8.8.8.8", 53))),
        "host": attempt(lambda: connect(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", port))),
        "abstract": attempt(lambda: connect(socket.AF_UNIX, socket.SOCK_STREAM, "\0perdure-jail-test")),
    },
    "tmp": fill("/tmp/big", 200),
    "shm": fill("/dev/shm/big", 200),
    "forks": forks(300),
    "kill": attempt(lambda: os.kill(1, 9)),
}
print(json.dumps(found))
