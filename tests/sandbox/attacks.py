"""Programs that cheat or harm. Each would pass `f(3) == SECRET`, or leave damage, through a hole.

The fork bomb is bounded: a test must fail when a wall falls, not take the machine with it.
"""

HONEST = "def f(x):\n    return x + 1\n"

INFINITE_LOOP = "while True:\n    pass\n"
SLEEPER = "import time\ndef f(x):\n    time.sleep(60)\n"
MEMORY = "def f(x):\n    data = bytearray(4 * 2**30)\n    return len(data)\n"
MEMORY_IN_STEPS = "def f(x):\n    a = []\n    while True:\n        a.append(bytearray(10**7))\n"

# Returns how many processes or threads it could start.
FORKS = """
import os, time
def f(x):
    count = 0
    while count < 50:
        try:
            if os.fork() == 0:
                time.sleep(1)
                os._exit(0)
        except OSError:
            break
        count += 1
    return count
"""
THREADS = """
import threading, time
def f(x):
    count = 0
    while count < 50:
        try:
            threading.Thread(target=time.sleep, args=(1,), daemon=True).start()
        except RuntimeError:
            break
        count += 1
    return count
"""
# Returns what it could read, of the paths in x.
READS = """
import os
def f(x):
    got = []
    for path in x:
        try:
            got.append(os.listdir(path) if os.path.isdir(path) else open(path, "rb").read(20))
        except OSError:
            pass
    return got
"""
# Returns which of the paths in x it could write, rename or remove.
WRITES = """
import os
def f(x):
    got = []
    for path in x:
        for action in (lambda: open(path + ".new", "w").close(), lambda: open(path, "a").close(),
                       lambda: os.remove(path), lambda: os.rename(path, path + ".moved"),
                       lambda: os.mkdir(path + ".d"), lambda: os.chmod(path, 0),
                       lambda: os.truncate(path, 0), lambda: os.utime(path)):
            try:
                action()
                got.append(path)
            except OSError:
                pass
    return got
"""
# Returns the kinds of socket it could make.
SOCKETS = """
import socket
def f(x):
    got = []
    for family in ("AF_INET", "AF_INET6", "AF_UNIX", "AF_NETLINK", "AF_PACKET", "AF_VSOCK"):
        for kind in ("SOCK_STREAM", "SOCK_DGRAM", "SOCK_RAW"):
            try:
                socket.socket(getattr(socket, family), getattr(socket, kind))
                got.append(family + kind)
            except OSError:
                pass
    try:
        socket.socketpair()
        got.append("pair")
    except OSError:
        pass
    return got
"""
PROGRAMS = """
import os, subprocess
def f(x):
    for action in (lambda: os.execv("/bin/true", ["true"]), lambda: subprocess.run(["true"]),
                   lambda: os.posix_spawn("/bin/true", ["true"], {})):
        try:
            action()
            return "started"
        except (OSError, RuntimeError):
            pass
    return "nothing"
"""
SYS_EXIT = "import sys\nsys.exit(0)\n"
OS_EXIT = "import os\nos._exit(0)\n"
EXIT_IN_CALL = "def f(x):\n    raise SystemExit(0)\n"
OS_EXIT_IN_CALL = "import os\ndef f(x):\n    os._exit(0)\n"

PRINTED = 'print("V" + \'[true,"passed"]\')\ndef f(x):\n    print("passed")\n'
# A forged verdict, in the very format of a real one, to every file descriptor.
FORGED = """
import os
body = b'[true,"passed"]'
frame = b"V" + len(body).to_bytes(4, "little") + body
done = b'{"d":[["judge",0],["candidate",0],["clean",true]]}'
frame += b"D" + len(done).to_bytes(4, "little") + done
for fd in range(64):
    try:
        os.write(fd, frame)
    except OSError:
        pass
def f(x):
    return 0
"""
CLOSED_CHANNEL = "import os\nos.closerange(0, 256)\nwhile True:\n    pass\n"
PATCHED = """
import builtins, json, sys
class Same:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
builtins.type = lambda value: str
builtins.AssertionError = Exception
builtins.len = builtins.repr = builtins.isinstance = lambda *a: True
json.dumps = lambda *a, **k: '["returned", [true, null]]'
for module in list(sys.modules.values()):
    for name in ("_pack", "dump", "load", "decide", "short"):
        if hasattr(module, name):
            setattr(module, name, lambda *a, **k: b'["returned", [true, null]]')
def f(x):
    return Same()
"""
ALWAYS_EQUAL = """
class Same(BASE):
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __lt__(self, other): return True
    __gt__ = __le__ = __ge__ = __lt__
    __hash__ = None
def f(x):
    return WRAPPED
"""
# Looks for the secret in every frame, every object and every module it can reach.
FRAME_WALK = """
import gc, re, sys
def found(value, depth=0):
    if type(value) is bytes:
        value = value.decode("latin-1")
    if type(value) is str:
        match = re.search("SECRET[-][0-9a-f]{8}", value)
        return match and match.group()
    if depth < 3 and type(value) in (list, tuple, dict):
        items = list(value.values()) if type(value) is dict else value
        return next((hit for item in items if (hit := found(item, depth + 1))), None)
def f(x):
    frame = sys._getframe()
    while frame:
        for value in list(frame.f_locals.values()) + list(frame.f_globals.values()):
            if hit := found(value):
                return hit
        frame = frame.f_back
    for value in gc.get_objects():
        hit = found(value) or found(getattr(value, "__dict__", None))
        if hit:
            return hit
    return "nothing"
"""
# Signals everything it can name; then the judge or the warm parent would be dead.
KILLS = """
import os, signal
def f(x):
    hits = 0
    for pid in [*range(1, 300), os.getppid(), -1, 0]:
        if pid == os.getpid():
            continue
        try:
            os.kill(pid, signal.SIGKILL)
            hits += 1
        except OSError:
            pass
    return hits
"""
LIMITS = """
import resource
def f(x):
    got = []
    for kind in (resource.RLIMIT_AS, resource.RLIMIT_CPU, resource.RLIMIT_NPROC):
        try:
            resource.setrlimit(kind, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            got.append(kind)
        except (OSError, ValueError):
            pass
    return got
"""
LITTER = """
import os
def f(x):
    here = os.listdir(".")
    open("note", "w").write("for the next run")
    return here
"""
NESTED_LITTER = """
import os
def f(x):
    here = os.listdir(".")
    os.makedirs("a/b/c")
    open("a/b/c/note", "w").close()
    for i in range(300):
        open(f"file{i}", "w").close()
    return here
"""
BIG_FILES = """
def f(x):
    total = 0
    try:
        for i in range(64):
            with open(f"file{i}", "wb", buffering=0) as file:
                while total < 2**30:
                    total += file.write(bytes(2**20))
    except OSError:
        pass
    try:
        for i in range(64):
            with open(f"more{i}", "wb", buffering=0) as file:
                total += file.write(bytes(2**20))
    except OSError:
        pass
    return total
"""
HUGE_VALUE = "def f(x):\n    return 'x' * (40 * 2**20)\n"
ENDLESS_VALUE = "def f(x):\n    a = []\n    a.append(a)\n    return a\n"
