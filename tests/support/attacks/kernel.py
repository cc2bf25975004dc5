"""Getting out by the kernel: system calls, mounts, users, devices, settings."""

from __future__ import annotations

from tests.support.attacks.attack import Attack

KERNEL = {
    "system calls": Attack(
        """
        X86 = os.uname().machine == "x86_64"
        attempt("ptrace attach", lambda: syscall(101 if X86 else 117, 16, parent, 0, 0))
        attempt("process_vm_readv", lambda: syscall(310 if X86 else 270, parent, 0, 0, 0, 0, 0))
        attempt("unshare", lambda: syscall(272 if X86 else 97, 0x10000000))
        attempt("setns", lambda: syscall(308 if X86 else 268, 0, 0))
        attempt("clone", lambda: syscall(56 if X86 else 220, 0x10000000 | 17, 0, 0, 0, 0))
        attempt("clone3", lambda: syscall(435, ctypes.create_string_buffer(88), 88))
        attempt("keyctl", lambda: syscall(250 if X86 else 219, 0, -3, 1))
        attempt("bpf", lambda: syscall(321 if X86 else 280, 0, 0, 0))
        attempt("io_uring", lambda: syscall(425, 1, ctypes.create_string_buffer(120)))
        attempt("userfaultfd", lambda: syscall(323 if X86 else 282, 0))
        attempt("open by handle", lambda: syscall(304 if X86 else 265, 0, 0, 0))
        if X86: attempt("x32 socket", lambda: syscall(0x40000000 + 41, 2, 1, 0))
        """,
    ),
    "mounts": Attack(
        """
        attempt("chroot", lambda: os.chroot("."))
        os.mkdir("m")
        for kind in (b"tmpfs", b"proc", b"sysfs", b"overlay"):
            def mount():
                if libc.mount(b"x", b"m", kind, 0, None) != 0:
                    raise OSError(ctypes.get_errno(), "mount")
            attempt(kind, mount)
        def remount():
            if libc.mount(b"none", b"/", b"", 32, None) != 0:
                raise OSError(ctypes.get_errno(), "remount")
        attempt("writable root", remount)
        """,
    ),
    "another user": Attack(
        """
        attempt("root", lambda: os.setuid(0) if os.getuid() else os.stat("/nowhere"))
        attempt("root's group", lambda: os.setgroups([0]))
        for tool in ("su", "sudo", "newgrp", "chsh", "passwd"):
            attempt(tool, lambda: subprocess.run(
                [f"/usr/bin/{tool}"], check=True, timeout=20, stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        """,
    ),
    "devices": Attack(
        """
        for name in ("mem", "kmsg", "tty", "ptmx", "console", "kvm", "fuse", "vda", "sda"):
            attempt(name, lambda: open(f"/dev/{name}", "rb"))
        attempt("mknod", lambda: os.mknod("disk", stat.S_IFBLK | 0o600, os.makedev(8, 0)))
        import fcntl
        attempt("type into a terminal", lambda: fcntl.ioctl(0, 0x5412, b"x"))
        """,
    ),
    "kernel settings": Attack(
        """
        for name in ("core_pattern", "hostname", "modprobe"):
            attempt(name, lambda: open(f"/proc/sys/kernel/{name}", "w"))
        attempt("sysrq", lambda: open("/proc/sysrq-trigger", "w"))
        attempt("cgroups", lambda: os.mkdir("/sys/fs/cgroup/mine"))
        attempt("host name", lambda: socket.sethostname("mine"))
        attempt("clock", lambda: time.clock_settime(time.CLOCK_REALTIME, 0))
        """,
    ),
}
