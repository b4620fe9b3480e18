import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { networkInterfaces } from "node:os";
import { describe, expect, it } from "vitest";
import { probeNetwork, REFUSES_AT_ONCE } from "../host/testing/probe-network.ts";
import { shared } from "../host/testing/shared.ts";
import { containerName } from "./container/inspect-container.ts";
import { createDockerFixture } from "./testing/fixture.ts";

/** In the environment of this program, of the sandbox and of a command; the engine must not see it. */
const secret = `secret-${crypto.randomUUID()}`;
const root = { user: "root" };
const CAPABILITIES = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "NET_BIND_SERVICE", "SETGID", "SETUID"];
/** For the network alone, until it is set up. */
const DROPPED_BY_AGENT = ["NET_ADMIN", "SETPCAP"];
/** The bits of the first ones, in the format of /proc. */
const CAPABILITY_MASK = "00000000000004fb";

process.env["SANDPIPER_TEST_SECRET"] = secret;
const image = { variant: "python", env: { FROM_IMAGE: "kept" }, entrypoint: ["/bin/sh", "-c", "exit 7"] } as const;
const fixture = await shared(createDockerFixture({ image }));
const sandbox = await fixture.create({ env: { TOKEN: secret }, labels: { note: secret }, name: secret });
const found = await fixture.engine.docker.getContainer(containerName(sandbox.id)).inspect();

describe("a container", () => {
  it("is not privileged, and shares no namespace with the host", () => {
    expect(found.HostConfig).toMatchObject({
      Privileged: false,
      CapDrop: ["ALL"],
      SecurityOpt: ["no-new-privileges"],
      NetworkMode: "none",
      CgroupnsMode: "private",
      IpcMode: "private",
      PidMode: "",
      UTSMode: "",
      UsernsMode: "",
      RestartPolicy: { Name: "no" },
    });
    const added = found.HostConfig.CapAdd?.map((name: string) => name.replace("CAP_", ""));
    expect(added).toEqual([...CAPABILITIES, ...DROPPED_BY_AGENT]);
  });

  it("shows no secret to other clients of the engine", async () => {
    await sandbox.exec(["true"], { env: { TOKEN: secret } });
    const running = await sandbox.start("sleep 60", { env: { TOKEN: secret } });
    const container = fixture.engine.docker.getContainer(found.Id);
    const { Volumes } = await fixture.engine.docker.listVolumes();
    const shown = [await container.inspect(), await fixture.engine.docker.listContainers({ all: true }), Volumes];
    expect(JSON.stringify(shown)).not.toContain(secret);
    expect((await sandbox.exec("echo $TOKEN")).stdout).toBe(`${secret}\n`);
    await running[Symbol.asyncDispose]();
  });

  it("keeps the environment of its image, and runs the agent instead of its entrypoint", async () => {
    expect((await sandbox.exec("echo $FROM_IMAGE")).stdout).toBe("kept\n");
    expect(found.Path).toBe("/.sandpiper/agent");
  });

  it("has its own hostname and processes", async () => {
    expect((await sandbox.exec("hostname; head -c 17 /proc/1/cmdline", root)).stdout).toBe(
      "sandpiper\n/.sandpiper/agent",
    );
    const { stdout } = await sandbox.exec("ls /proc | grep -c '^[0-9]'", root);
    expect(Number(stdout)).toBeLessThan(10);
  });
});

describe("root in a container", () => {
  it("has only the capabilities that the agent needs", async () => {
    const { stdout } = await sandbox.exec(
      "grep -E '^(Cap(Prm|Eff|Bnd|Amb)|NoNewPrivs|Seccomp):' /proc/self/status",
      root,
    );
    expect(stdout.replaceAll("\t", " ").trim().split("\n")).toEqual([
      `CapPrm: ${CAPABILITY_MASK}`,
      `CapEff: ${CAPABILITY_MASK}`,
      `CapBnd: ${CAPABILITY_MASK}`,
      "CapAmb: 0000000000000000",
      "NoNewPrivs: 1",
      "Seccomp: 2",
    ]);
  });

  it("cannot mount, create devices, leave its namespaces or change kernel settings", async () => {
    const attempts = [
      "mount -t tmpfs none /mnt",
      "mknod /tmp/disk b 8 0",
      "unshare --mount true",
      "unshare --user true",
      "echo x > /proc/sys/kernel/hostname",
      "echo b > /proc/sysrq-trigger",
    ];
    for (const attempt of attempts) expect((await sandbox.exec(attempt, root)).exitCode, attempt).not.toBe(0);
  });

  it("cannot replace or kill the agent", async () => {
    const attempt = "rm -f /.sandpiper/agent; echo x > /.sandpiper/agent; kill -TERM 1; kill -KILL 1; kill -STOP 1";
    const { stderr } = await sandbox.exec(attempt, root);
    expect(stderr.match(/Read-only file system/g)).toHaveLength(2);
    expect((await sandbox.exec("echo alive")).stdout).toBe("alive\n");
  });

  it("cannot see the environment of this program", async () => {
    const { stdout } = await sandbox.exec("cat /proc/1/environ /proc/1/cmdline", root);
    expect(stdout).toContain("--channel");
    expect(stdout).not.toContain(secret);
  });
});

describe("the network of a container", () => {
  it("is only its loopback interface; it reaches neither the host nor other machines", async () => {
    const server = createServer((socket) => socket.end("reached"));
    server.listen({ host: "0.0.0.0", port: 0 });
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const own = Object.values(networkInterfaces()).flatMap((all) => all?.map((one) => one.address) ?? []);
    for (const address of ["127.0.0.1", ...own]) {
      const dial = `import socket; socket.create_connection((${JSON.stringify(address)}, ${port}), 2).recv(7)`;
      expect((await sandbox.exec(["python3", "-c", dial], root)).exitCode, address).not.toBe(0);
    }
    server.close();
    const { stdout } = await sandbox.exec("ip -brief link", root);
    expect(stdout.trim().split("\n")).toHaveLength(1);
    const code = `import socket
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname())
client.sendall(b"inside")
print(server.accept()[0].recv(6).decode())`;
    expect((await sandbox.exec(["python3", "-c", code])).stdout).toBe("inside\n");
  });
});

describe("a container without a network of the engine", () => {
  it("refuses connections and datagrams to other machines at once, and root cannot change that", async () => {
    expect(await probeNetwork(sandbox)).toMatch(REFUSES_AT_ONCE);
    for (const attempt of [
      "ip addr add 10.9.9.9/24 dev lo",
      "ip route del default",
      "ip link set lo down",
      "python3 -c 'import socket; socket.socket().setsockopt(0, 64, bytes(96))'",
      "python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)'",
      "python3 -c 'import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 768)'",
    ]) {
      expect((await sandbox.exec(attempt, root)).exitCode, attempt).not.toBe(0);
    }
    expect(await probeNetwork(sandbox)).toMatch(REFUSES_AT_ONCE);
  });

  it("asks the agent for names, also if its files are read-only", async () => {
    await using readOnly = await fixture.create({ container: { isRootReadOnly: true } });
    for (const each of [sandbox, readOnly]) {
      expect((await each.exec("grep ^nameserver /etc/resolv.conf")).stdout).toBe("nameserver 10.0.2.3\n");
    }
  });
});

describe("the default user of a container", () => {
  it("cannot read or change root's files, or kill the agent", async () => {
    const { stderr } = await sandbox.exec("echo x > /root/x; echo x >> /etc/passwd; cat /proc/1/environ; kill -9 1");
    expect(stderr.match(/Permission denied|not permitted/g)).toHaveLength(4);
  });

  it("loses the daemons of a command when the command is killed", async () => {
    const sleep = (seconds: number) => `os.execvp("sleep", ["sleep", "${seconds}"])`;
    const daemon = `import os\nif os.fork() == 0:\n  os.setsid()\n  os.fork() or ${sleep(4711)}\n  os._exit(0)\n${sleep(60)}`;
    const handle = await sandbox.start(["python3", "-c", daemon]);
    const running = async () => (await sandbox.exec("ps -eo args")).stdout.match(/sleep 4711/g);
    await expect.poll(running).toHaveLength(1);
    await handle.kill();
    await expect.poll(running).toBeNull();
  });
});

describe("two containers", () => {
  it("share neither files nor processes nor data volumes", async () => {
    await using other = await fixture.create();
    await sandbox.exec("echo mine > /tmp/mine; echo mine > /.data/mine");
    const { stdout } = await other.exec("ls /tmp /.data", root);
    expect(stdout).not.toContain("mine");
  });
});

describe("a root filesystem that is read-only", () => {
  it("leaves /tmp, /run and /.data writable, and still keeps long output", async () => {
    await using readOnly = await fixture.create({ container: { isRootReadOnly: true } });
    const { stderr } = await readOnly.exec("echo x > /etc/x; echo x > /root/x; echo x > /usr/bin/x", root);
    expect(stderr.match(/Read-only file system/g)).toHaveLength(3);
    const written = "for dir in /tmp /run /.data; do echo x > $dir/x && cat $dir/x; done";
    expect((await readOnly.exec(written, root)).stdout).toBe("x\nx\nx\n");
    const { stdout } = await readOnly.exec("echo x > /tmp/mine; echo x > /.data/mine; seq 1 1000000 | tail -c 8");
    expect(stdout).toBe("1000000\n");
    const long = await readOnly.start("seq 1 1000000");
    await long.wait();
    let size = 0;
    for await (const { bytes } of long.output) size += bytes.length;
    expect(size).toBe(6_888_896);
  });
});
