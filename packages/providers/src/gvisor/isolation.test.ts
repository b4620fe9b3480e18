import { once } from "node:events";
import { copyFile, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer, type Server } from "node:net";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { findLauncher } from "../host/find-agent.ts";
import { shared, sharedDirectory } from "../host/testing/shared.ts";
import { createGvisorFixture } from "./testing/fixture.ts";

/** In this program's environment and in a file, so that a sandbox that can read anything of the host finds it. */
const secret = `secret-${crypto.randomUUID()}`;
const root = { user: "root" };

process.env["SANDPIPER_TEST_SECRET"] = secret;
const hostDirectory = sharedDirectory("isolation");
await writeFile(join(hostDirectory, "secret"), secret, { mode: 0o644 });
const fixture = await shared(createGvisorFixture());
const sandbox = await fixture.create();

describe("root in a sandbox of the host image", () => {
  it("has its own home in /root and one user in /home", async () => {
    expect((await sandbox.exec("ls -A /root; ls -A /home", root)).stdout).toBe("user\n");
    expect(await readdir("/root")).not.toEqual([]);
  });

  it("finds no passwords, keys, ids or settings with tokens in /etc", async () => {
    const names =
      "shadow gshadow shadow- passwd- sudoers ssh ssl/private machine-id environment profile.d gitconfig npmrc";
    const { stdout } = await sandbox.exec(`cd /etc; ls -d ${names} pip.conf apt docker 2>/dev/null`, root);
    expect(stdout).toBe("");
  });

  it("finds no account or hostname of the host", async () => {
    const { stdout } = await sandbox.exec("cat /etc/passwd /etc/hostname /etc/hosts /etc/resolv.conf; hostname", root);
    const accounts = stdout.split("\n").filter((line) => line.split(":").length === 7);
    expect(accounts.map((line) => line.split(":")[0])).toEqual(["root", "daemon", "user", "nobody"]);
    expect(stdout).toMatch(/sandpiper\n$/);
    const resolver = await readFile("/etc/resolv.conf", "utf8");
    for (const [server] of resolver.matchAll(/(?<=nameserver )\S+/g)) expect(stdout).not.toContain(server);
  });

  it("cannot read the environment of a host process", async () => {
    const { stdout, exitCode } = await sandbox.exec("cat /proc/[0-9]*/environ | tr '\\0' '\\n'", root);
    expect(exitCode).toBe(0);
    expect(stdout).toContain("PATH=");
    expect(stdout).not.toContain(secret);
  });

  it("sees no process of the host", async () => {
    const { stdout } = await sandbox.exec(
      "cat /proc/1/cmdline | tr '\\0' ' '; echo; ls /proc | grep -c '^[0-9]'",
      root,
    );
    const [agent, count] = stdout.split("\n");
    expect(agent).toMatch(/^\/\.sandpiper\/agent /);
    expect(Number(count)).toBeLessThan(10);
  });

  it("cannot reach files of the host or Sandpiper's state by any path", async () => {
    const paths = [
      hostDirectory,
      fixture.stateDirectory,
      `/proc/1/root${hostDirectory}`,
      `/proc/self/root/..${hostDirectory}`,
    ];
    for (const path of paths) expect((await sandbox.exec(["ls", path], root)).exitCode, path).not.toBe(0);
    const { stdout } = await sandbox.exec(
      `grep -rls ${secret} / --exclude-dir=proc --exclude-dir=sys --exclude-dir=usr; true`,
      root,
    );
    expect(stdout).toBe("");
  });

  it("cannot change the host's programs", async () => {
    const { stderr } = await sandbox.exec(
      "touch /usr/x; echo x >> /usr/bin/env; rm /usr/bin/env; touch /.sandpiper/agent",
      root,
    );
    // The program belongs to an id of the host that the sandbox does not have, so its mode already refuses the append.
    expect(stderr.match(/Read-only file system|Permission denied/g)).toEqual([
      "Read-only file system",
      "Permission denied",
      "Read-only file system",
      "Read-only file system",
    ]);
  });

  it("cannot replace the agent", async () => {
    const { stderr } = await sandbox.exec("rm -f /.sandpiper/agent; echo x > /.sandpiper/agent", root);
    expect(stderr.match(/Device or resource busy|Read-only file system/g)).toHaveLength(2);
  });

  it("lacks the capabilities that would lift its limits", async () => {
    const { stderr } = await sandbox.exec("mount -t tmpfs none /mnt; ulimit -Hu unlimited 2>&1 1>/dev/null", root);
    expect(stderr).toMatch(/permission denied|not permitted|must be superuser/i);
  });
});

describe("the default user in a sandbox", () => {
  it("cannot kill the agent", async () => {
    const { stderr } = await sandbox.exec("kill -9 1; kill -TERM 1; kill -STOP 1");
    expect(stderr.match(/not permitted/g)).toHaveLength(3);
    expect((await sandbox.exec("echo alive")).stdout).toBe("alive\n");
  });

  it("cannot read or change files of root", async () => {
    const { exitCode, stderr } = await sandbox.exec("ls /root; echo x >> /etc/passwd; cat /proc/1/environ");
    expect(exitCode).not.toBe(0);
    expect(stderr.match(/Permission denied/g)).toHaveLength(3);
  });
});

describe("a socket of the host", () => {
  it("cannot be reached over TCP on loopback or the host's addresses", async () => {
    const server = createServer((socket) => socket.end("reached"));
    await using _ = await listening(server, { host: "0.0.0.0", port: 0 });
    const { port } = server.address() as AddressInfo;
    const addresses = [
      "127.0.0.1",
      ...Object.values(networkInterfaces()).flatMap((all) => all?.map((one) => one.address) ?? []),
    ];
    for (const address of addresses) {
      const dial = `import socket; socket.create_connection((${JSON.stringify(address)}, ${port}), 2).recv(7)`;
      const { exitCode, stderr } = await sandbox.exec(["python3", "-c", dial], root);
      expect(exitCode, `${address}: ${stderr}`).not.toBe(0);
    }
  });

  it("cannot be reached as a Unix socket, by path or abstract name", async () => {
    const path = join(hostDirectory, "socket");
    const abstract = `sandpiper-test-${crypto.randomUUID()}`;
    await using _path = await listening(createServer(), { path });
    await using _abstract = await listening(createServer(), { path: `\0${abstract}` });
    for (const target of [path, "/var/run/docker.sock", "/run/containerd/containerd.sock", `\\0${abstract}`]) {
      const dial = `import socket; socket.socket(socket.AF_UNIX).connect("${target}")`;
      expect((await sandbox.exec(["python3", "-c", dial], root)).exitCode, target).not.toBe(0);
    }
    expect((await sandbox.exec("find / -xdev -type s 2>/dev/null", root)).stdout).toBe("");
  });

  it("is not needed for loopback, which works inside", async () => {
    const code = `import socket
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname())
client.sendall(b"inside")
print(server.accept()[0].recv(6).decode())`;
    expect((await sandbox.exec(["python3", "-c", code])).stdout).toBe("inside\n");
  });
});

describe("two sandboxes", () => {
  it("share neither files nor processes nor loopback", async () => {
    await using other = await fixture.create();
    await sandbox.exec("echo mine > /tmp/mine; sleep 77 >/dev/null & python3 -m http.server 8123 >/dev/null 2>&1 &");
    const { stdout } = await other.exec("ls /tmp/mine; pgrep -x sleep", root);
    expect(stdout).toBe("");
    const dial = "import socket; socket.create_connection(('127.0.0.1', 8123), 2)";
    expect((await other.exec(["python3", "-c", dial])).stderr).toContain("Connection refused");
  });
});

describe("a directory as root filesystem", () => {
  it("provides its programs, and is not changed by writes inside", async () => {
    const rootfs = join(hostDirectory, "rootfs");
    for (const name of ["usr", "tmp", "etc", "bin", "lib", "lib64"])
      await mkdir(join(rootfs, name), { recursive: true });
    await writeFile(join(rootfs, "etc/motd"), "original");
    // Any static program works; this one prints its usage and exits with 2.
    await copyFile(findLauncher(), join(rootfs, "bin/program"));
    await using inDirectory = await fixture.create({ rootfs });
    expect(await inDirectory.exec(["/bin/program"])).toMatchObject({
      exitCode: 2,
      stderr: expect.stringMatching(/^usage/),
    });
    await inDirectory.writeFile("/etc/motd", "changed");
    await inDirectory.writeFile("/new", "new");
    await inDirectory.writeFile("/tmp/new", "new");
    expect(await inDirectory.readTextFile("/etc/motd")).toBe("changed");
    expect(await readFile(join(rootfs, "etc/motd"), "utf8")).toBe("original");
    expect(await readdir(rootfs)).not.toContain("new");
    expect(await readdir(join(rootfs, "tmp"))).toEqual([]);
  });
});

async function listening(
  server: Server,
  where: { host?: string; port?: number; path?: string },
): Promise<AsyncDisposable> {
  server.listen(where);
  await once(server, "listening");
  return {
    [Symbol.asyncDispose]: async () => {
      server.close();
      await once(server, "close");
    },
  };
}
