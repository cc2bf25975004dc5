"""A seccomp filter: system calls that no program here needs fail with "operation not permitted".

1. Always refused: sockets (stream `socketpair`s are allowed, for asyncio; a pair of datagram
   sockets can write to any other socket of the machine); access to other processes; mounts and new
   namespaces, also by `clone`; memory that no limit counts (memfd, System V IPC, and shared
   anonymous mappings, which keep all their pages when all but one are unmapped); watching files
   (inotify reveals names in folders that cannot be opened); parts of the kernel that exploits use
   and programs do not (bpf, io_uring, userfaultfd, keys, …).
2. Refused where other processes are visible (level `rlimits`): signals to any process but itself,
   limits and scheduling of others, and, because Landlock does not cover them, changes of modes,
   owners, times and attributes of files.
3. "Not implemented": `clone3`, whose flags are in memory, where a filter cannot look, and every
   call that is newer than these tables, which could be a new way to do what is refused. Libraries
   fall back to older calls.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct

from .kernel import MACHINE, PR_SET_SECCOMP, prctl

# Each call with its numbers on x86_64 and aarch64; "-" where it does not exist.
_ALWAYS = """
socket 41 198 connect 42 203 bind 49 200 listen 50 201 inotify_init 253 - inotify_init1 294 26
io_setup 206 0 ptrace 101 117 process_vm_readv 310 270 process_vm_writev 311 271 kcmp 312 272
pidfd_getfd 438 438 process_madvise 440 440 mount 165 40 umount2 166 39 pivot_root 155 41
chroot 161 51 open_tree 428 428 move_mount 429 429 fsopen 430 430 fsconfig 431 431 fsmount 432 432
fspick 433 433 mount_setattr 442 442 unshare 272 97 setns 308 268 memfd_create 319 279
memfd_secret 447 447 shmget 29 194 shmat 30 196 semget 64 190 msgget 68 186 mq_open 240 180
bpf 321 280 perf_event_open 298 241 userfaultfd 323 282 io_uring_setup 425 425
io_uring_enter 426 426 io_uring_register 427 427 add_key 248 217 request_key 249 218 keyctl 250 219
name_to_handle_at 303 264 open_by_handle_at 304 265 fanotify_init 300 262 kexec_load 246 104
kexec_file_load 320 294 init_module 175 105 finit_module 313 273 delete_module 176 106
reboot 169 142 swapon 167 224 swapoff 168 225 acct 163 89 settimeofday 164 170 clock_settime 227 112
adjtimex 159 171 clock_adjtime 305 266 quotactl 179 60 quotactl_fd 443 443 syslog 103 116
sethostname 170 161 setdomainname 171 162 vhangup 153 58 personality 135 92 lookup_dcookie 212 18
nfsservctl 180 42 iopl 172 - ioperm 173 - modify_ldt 154 -
"""
_WHERE_OTHERS_ARE_VISIBLE = """
tkill 200 130 rt_sigqueueinfo 129 138 rt_tgsigqueueinfo 297 240 pidfd_send_signal 424 424
setpriority 141 140 ioprio_set 251 30 sched_setaffinity 203 122 sched_setparam 142 118
sched_setscheduler 144 119 sched_setattr 314 274 migrate_pages 256 238 move_pages 279 239 chmod 90 -
fchmod 91 52 chown 92 - fchown 93 55 lchown 94 - fchownat 260 54 fchmodat 268 53 fchmodat2 452 452
utime 132 - utimes 235 - futimesat 261 - utimensat 280 88 setxattr 188 5 lsetxattr 189 6
fsetxattr 190 7 removexattr 197 14 lremovexattr 198 15 fremovexattr 199 16
"""
_BY_ARGUMENT = """
clone 56 220 clone3 435 435 ioctl 16 29 kill 62 129 tgkill 234 131 fcntl 72 25 prlimit64 302 261
socketpair 53 199 mmap 9 222
"""
_MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""In the order of the columns; values of the kernel's audit interface."""
_CLONE_NEW = 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000 | 0x20000
_TIOCSTI, _TIOCLINUX, _FIOSETOWN, _SIOCSPGRP = 0x5412, 0x541C, 0x8901, 0x8902
_FS_IOC_SETFLAGS, _FS_IOC_FSSETXATTR = 0x40086602, 0x401C5820
_F_SETOWN, _F_SETOWN_EX = 8, 15
_STREAMS = [
    1 | close_on_exec | nonblocking
    for close_on_exec in (0, 1 << 19)
    for nonblocking in (0, 1 << 11)
]
_AFTER_AF_UNIX = 2
_FIRST_UNKNOWN = 453
"""The first call newer than the tables. From 424 on, all architectures share the numbers."""

_SHARED_ANONYMOUS = 0x21

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER, _ARCHITECTURE = 0, 4


def _numbers(table: str) -> dict[str, int]:
    """Call → its number on this machine."""
    words = table.split()
    numbers = words[1 + list(_MACHINES).index(MACHINE) :: 3]
    return {name: int(n) for name, n in zip(words[::3], numbers, strict=True) if n != "-"}


def _argument(index: int) -> int:
    return 16 + 8 * index  # the lower half, little-endian


class _Filter:
    """Classic BPF, one check after another; each either returns or falls through."""

    def __init__(self) -> None:
        self._code: list[bytes] = []

    def add(self, code: int, value: int, if_true: int = 0, if_false: int = 0) -> None:
        self._code.append(struct.pack("=HBBI", code, if_true, if_false, value))

    def refuse(self, call: int, error: int = errno.EPERM) -> None:
        self.add(_EQUAL, call, 0, 1)
        self.add(_RETURN, _ERRNO | error)

    def refuse_values(self, call: int, argument: int, values: list[int], test: int) -> None:
        """Refuse ``call`` if its argument passes ``test`` against one of ``values``."""
        self.add(_EQUAL, call, 0, 2 * len(values) + 2)
        self.add(_LOAD, _argument(argument))
        for value in values:
            self.add(test, value, 0, 1)
            self.add(_RETURN, _ERRNO | errno.EPERM)
        self.add(_LOAD, _NUMBER)

    def refuse_bits(self, call: int, argument: int, bits: int) -> None:
        """Refuse ``call`` if all ``bits`` of its argument are set."""
        self.add(_EQUAL, call, 0, 5)
        self.add(_LOAD, _argument(argument))
        self.add(_AND, bits)
        self.add(_EQUAL, bits, 0, 1)
        self.add(_RETURN, _ERRNO | errno.EPERM)
        self.add(_LOAD, _NUMBER)

    def refuse_but(self, call: int, argument: int, allowed: list[int]) -> None:
        """Refuse ``call`` unless its argument is one of ``allowed``."""
        self.add(_EQUAL, call, 0, 2 * len(allowed) + 2)
        self.add(_LOAD, _argument(argument))
        for value in allowed:
            self.add(_EQUAL, value, 0, 1)
            self.add(_RETURN, _ALLOW)
        self.add(_RETURN, _ERRNO | errno.EPERM)

    def install(self) -> None:
        code = ctypes.create_string_buffer(b"".join(self._code))
        header = struct.pack("=HxxxxxxQ", len(self._code), ctypes.addressof(code))
        prctl(PR_SET_SECCOMP, 2, ctypes.create_string_buffer(header))


def install(*, sees_others: bool) -> None:
    """From now on, filter this process and everything that it becomes or starts.

    ``sees_others``: there is no PID namespace, so other processes must be protected by number.

    Raises:
        OSError: the kernel has no seccomp, or the architecture is neither x86_64 nor aarch64.
    """
    if MACHINE not in _MACHINES:
        raise OSError(errno.ENOSYS, f"seccomp: no table of system calls for {MACHINE}")
    by_argument = _numbers(_BY_ARGUMENT)
    program = _Filter()
    program.add(_LOAD, _ARCHITECTURE)
    program.add(_EQUAL, _MACHINES[MACHINE], 1, 0)
    program.add(_RETURN, _KILL)
    program.add(_LOAD, _NUMBER)
    # This includes the x32 calls of x86_64: the same calls by other numbers.
    program.add(_AT_LEAST, _FIRST_UNKNOWN, 0, 1)
    program.add(_RETURN, _ERRNO | errno.ENOSYS)
    for number in _numbers(_ALWAYS + _WHERE_OTHERS_ARE_VISIBLE * sees_others).values():
        program.refuse(number)
    program.refuse(by_argument["clone3"], errno.ENOSYS)
    program.refuse_values(by_argument["clone"], 0, [_CLONE_NEW], _ANY_BIT)
    program.refuse_values(by_argument["ioctl"], 1, [_TIOCSTI, _TIOCLINUX], _EQUAL)
    program.refuse_values(by_argument["socketpair"], 0, [_AFTER_AF_UNIX], _AT_LEAST)
    program.refuse_but(by_argument["socketpair"], 1, _STREAMS)
    program.refuse_bits(by_argument["mmap"], 3, _SHARED_ANONYMOUS)
    if sees_others:
        changes = [_FIOSETOWN, _SIOCSPGRP, _FS_IOC_SETFLAGS, _FS_IOC_FSSETXATTR]
        program.refuse_values(by_argument["ioctl"], 1, changes, _EQUAL)
        program.refuse_values(by_argument["fcntl"], 1, [_F_SETOWN, _F_SETOWN_EX], _EQUAL)
        program.refuse_but(by_argument["prlimit64"], 0, [0, os.getpid()])
        program.refuse_but(by_argument["kill"], 0, [os.getpid()])
        program.refuse_but(by_argument["tgkill"], 0, [os.getpid()])
    program.add(_RETURN, _ALLOW)
    program.install()
