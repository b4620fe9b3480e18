import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { Sandbox } from "@sandpiper/core";
import { createSandboxId } from "@sandpiper/protocol";
import { expect, it } from "vitest";
import { createGvisorFixture } from "../../packages/providers/src/gvisor/testing/fixture.ts";
import { shared } from "../../packages/providers/src/host/testing/shared.ts";

const fixture = await shared(createGvisorFixture());

/** Each piece leaves something open that a kernel finds hard to save. Only TUN devices are refused. */
const GUEST = `
import ctypes, fcntl, os, select, socket, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
NEWUSER, NEWNET, NEWNS = 0x10000000, 0x40000000, 0x20000
keep = []

def attach_tun(command):
  tun = os.open("/dev/net/tun", os.O_RDWR)
  request = ctypes.create_string_buffer(struct.pack("16sH22x", b"tun0", 0x1001), 40)
  result = libc.ioctl(ctypes.c_int(tun), ctypes.c_ulong(command), request)
  return "attached" if result == 0 else os.strerror(ctypes.get_errno())

# Namespaces of its own, where it may do everything.
if os.fork() == 0:
  print("namespaces", libc.unshare(NEWUSER | NEWNET | NEWNS), flush=True)
  print("tun", attach_tun(0x400454ca), flush=True)
  print("wide tun", attach_tun(0x1400454ca), flush=True)
  libc.mount(b"none", b"/mnt", b"tmpfs", 0, None)
  while True: time.sleep(1)

# A traced process, a stopped one, one in vfork, zombies.
traced = os.fork()
if traced == 0:
  while True: time.sleep(1)
libc.ptrace(16, traced, 0, 0)
if os.fork() == 0: os.kill(os.getpid(), 19)
if os.fork() == 0:
  libc.syscall(58)
  while True: time.sleep(1)
for _ in range(5):
  if os.fork() == 0: os._exit(0)

# Full pipes and sockets, descriptors on their way to each other, a full backlog.
reader, writer = os.pipe()
fcntl.fcntl(writer, 1031, 1 << 20)
os.write(writer, b"x" * (1 << 20))
a, b = socket.socketpair(); c, d = socket.socketpair()
socket.send_fds(a, [b"x"], [c.fileno()]); socket.send_fds(c, [b"x"], [a.fileno()])
server = socket.create_server(("127.0.0.1", 0), backlog=0)
for _ in range(4):
  each = socket.socket(); each.setblocking(False); each.connect_ex(server.getsockname()); keep.append(each)

# Deleted files and directories, sealed memory, System V objects, watches, the agent's own channel.
gone = open("/tmp/gone", "w+"); gone.write("x" * 100000); gone.flush(); os.unlink("/tmp/gone")
os.makedirs("/tmp/d"); os.chdir("/tmp/d"); os.rmdir("/tmp/d")
memory = os.memfd_create("m", 3); os.write(memory, b"x"); fcntl.fcntl(memory, 1033, 0xf)
libc.shmget(0, 1 << 20, 0o1600); libc.semget(1, 5, 0o1600); libc.msgget(1, 0o1600)
watch = libc.inotify_init(); libc.inotify_add_watch(watch, b"/tmp", 0xfff); open("/tmp/z", "w").close()
outer = select.epoll(); inner = select.epoll(); outer.register(inner.fileno())
keep += [os.open(path, os.O_RDWR) for path in ("/dev/fuse", "/dev/net/tun", "/proc/1/fd/2")]
print("tried", flush=True)
while True: time.sleep(1)
`;

it("a guest cannot keep its sandbox from being saved and restored", async () => {
  await using sandbox = await fixture.create({ memoryMib: 256 });
  const guest = await sandbox.start(["python3", "-c", GUEST], { user: "root" });
  let seen = "";
  for await (const { bytes } of guest.output) {
    seen += Buffer.from(bytes).toString();
    if (seen.includes("tried\n") && seen.includes("wide tun")) break;
  }
  expect(seen).toContain("namespaces 0\n");
  expect(seen).toContain("\ntun Operation not permitted\n");
  expect(seen).toContain("wide tun Operation not permitted\n");

  const directory = await mkdtemp(join(fixture.stateDirectory, "checkpoint-"));
  await sandbox.checkpoint(directory, { keepsRunning: false });
  await sandbox.destroy();
  const prepared = await Sandbox.prepare(fixture.provider, sandbox.config, { id: createSandboxId() });
  await using restored = await Sandbox.restore(fixture.provider, sandbox.config, {
    prepared,
    directory,
    createdAt: new Date(),
  });
  expect((await restored.processes()).filter(({ id }) => id === guest.id)).toHaveLength(1);
  expect((await restored.exec("echo still here")).stdout).toBe("still here\n");
});
