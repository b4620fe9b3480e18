import { readFile, readlink } from "node:fs/promises";
import { join } from "node:path";
import { Sandbox } from "@sandpiper/core";
import { createSandboxId } from "@sandpiper/protocol";
import { describe, expect, it, vi } from "vitest";
import { findLauncher } from "../host/find-agent.ts";
import { findRunsc } from "../host/find-runsc.ts";
import { probeNetwork, REFUSES_AT_ONCE } from "../host/testing/probe-network.ts";
import { freshDirectory, putScript, shared } from "../host/testing/shared.ts";
import { createGvisorFixture } from "./testing/fixture.ts";
import { hostProcesses } from "./testing/host-processes.ts";

const fixture = await shared(createGvisorFixture());
const sandbox = await fixture.create();
const checkpoint = freshDirectory("checkpoint");

describe("the network of a sandbox without a policy", () => {
  it("ends connections and datagrams to other machines at once", async () => {
    expect(await probeNetwork(sandbox)).toMatch(REFUSES_AT_ONCE);
  });

  it("has no device but loopback, and no route for IPv6", async () => {
    const { stdout } = await sandbox.exec("tail -n +3 /proc/net/dev | cut -d: -f1");
    expect(stdout.trim()).toBe("lo");
    const dial = "import socket; socket.create_connection(('2001:db8::1', 80), 20)";
    expect((await sandbox.exec(["python3", "-c", dial])).stderr).toMatch(/unreachable|Cannot assign/);
  });

  it("names a server that the sandbox redirects, whatever the image says", async () => {
    expect(await sandbox.readTextFile("/etc/resolv.conf")).toBe("nameserver 10.0.2.3\n");
  });

  it("is one namespace of the host, which only the sandbox's processes hold", async () => {
    const processes = await hostProcesses(sandbox.id, fixture.stateDirectory);
    const namespaces = new Set(await Promise.all(processes.map(({ pid }) => readlink(`/proc/${pid}/ns/net`))));
    expect(namespaces.size).toBe(1);
    const [namespace = ""] = namespaces;
    expect(await readFile("/proc/self/mountinfo", "utf8")).not.toContain(namespace);
  });

  it("is the same in a sandbox that is restored", async () => {
    await sandbox.checkpoint(checkpoint, { keepsRunning: true });
    await using restored = await restore(sandbox);
    expect(await probeNetwork(restored)).toMatch(REFUSES_AT_ONCE);
    expect(await probeNetwork(sandbox)).toMatch(REFUSES_AT_ONCE);
  });

  it("reaches a sandbox that was saved by a release without it", async () => {
    await using old = await Sandbox.create(fixture.newProvider({ runsc: await runscWithoutNetwork() }), fixture.config);
    expect(await probeNetwork(old)).not.toMatch(REFUSES_AT_ONCE);
    await old.checkpoint(checkpoint, { keepsRunning: true });
    await using restored = await restore(old);
    expect(await probeNetwork(restored)).toMatch(REFUSES_AT_ONCE);
  });
});

describe("root in a sandbox", () => {
  it.each([
    ["add an address", "ip addr add 10.9.9.9/24 dev lo"],
    ["remove the address", "ip addr del 10.0.2.2/24 dev lo"],
    ["remove the route", "ip route del default"],
    ["add a device", "ip link add other type dummy"],
    ["shut the device down", "ip link set lo down"],
    ["change the rules", python("socket.socket().setsockopt(0, 64, bytes(96))")],
    ["read the rules", python("socket.socket().getsockopt(0, 64, 84)")],
    ["open a raw socket", python("socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)")],
    ["open a raw IPv6 socket", python("socket.socket(socket.AF_INET6, socket.SOCK_RAW, 58)")],
    ["open a packet socket", python("socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 768)")],
  ])("cannot %s", async (_, command) => {
    const { exitCode } = await sandbox.exec(command, { user: "root" });
    expect(exitCode).not.toBe(0);
    expect(await probeNetwork(sandbox)).toMatch(REFUSES_AT_ONCE);
  });

  it("changes nothing outside of a network namespace of its own", async () => {
    const inside =
      "ip link set lo up; ip addr add 10.0.2.2/24 dev lo; ip route add default via 10.0.2.1 dev lo; ip addr";
    const { stdout } = await sandbox.exec(`unshare -Urn sh -c '${inside}'`, { user: "root" });
    expect(stdout).toContain("lo");
    expect(await probeNetwork(sandbox)).toMatch(REFUSES_AT_ONCE);
  });
});

describe("a host whose kernel cannot redirect the network of sandboxes", () => {
  it("gives them loopback only, and says why", async () => {
    const launcher = findLauncher();
    const script = `[ "$1" = --check-network ] && { echo "no NAT here"; exit 1; }\nexec ${launcher} "$@"`;
    vi.stubEnv("SANDPIPER_LAUNCH", await putScript(join(fixture.stateDirectory, "launch-without-network"), script));
    try {
      const provider = fixture.newProvider();
      expect(await provider.probe()).toMatchObject({
        available: true,
        detail: expect.stringContaining("sandboxes have no network: no NAT here"),
      });
      await using alone = await Sandbox.create(provider, fixture.config);
      expect(await probeNetwork(alone)).toBe("tcp OSError\nudp OSError\n");
    } finally {
      vi.unstubAllEnvs();
    }
  });
});

function python(statement: string): string {
  return `python3 -c 'import socket; ${statement}'`;
}

async function restore(saved: Sandbox): Promise<Sandbox> {
  const prepared = await Sandbox.prepare(fixture.provider, saved.config, { id: createSandboxId() });
  const { config, createdAt } = saved;
  return await Sandbox.restore(fixture.provider, config, { prepared, directory: checkpoint, createdAt });
}

async function runscWithoutNetwork(): Promise<string> {
  const runsc = await findRunsc(undefined);
  if ("reason" in runsc) throw new Error(runsc.reason);
  const script = `for word do
  shift
  case $word in
    --network=sandbox) set -- "$@" --network=none ;;
    --reproduce-nat) ;;
    *) set -- "$@" "$word" ;;
  esac
done
exec ${runsc.path} "$@"`;
  return await putScript(join(fixture.stateDirectory, "runsc-without-network"), script);
}
