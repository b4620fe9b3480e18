import type { EventBody, FlowRecord, NetworkBody, Sandbox } from "@sandpiper/sdk";
import { describe, expect, it } from "vitest";
import { guest, installGuestProgram } from "./guest-network.ts";
import { useNetworkBed } from "./shared-bed.ts";
import { addresses, ports } from "./world/addresses.ts";

const bed = await useNetworkBed({ env: { SANDPIPER_NETWORK_ASK_TIMEOUT_MS: "3000" } });
const client = bed.node.client();

async function create(network: NetworkBody): Promise<Sandbox> {
  const sandbox = await client.sandboxes.create({ network });
  await installGuestProgram(sandbox);
  return sandbox;
}

const flowsOf = async (sandbox: Sandbox) =>
  (await Array.fromAsync(sandbox.network.log())).filter(({ kind }) => kind === "flow");

async function firstRequest(sandbox: Sandbox, name: string) {
  await expect.poll(async () => (await sandbox.network.requests()).map((each) => each.name)).toContain(name);
  return (await sandbox.network.requests()).find((each) => each.name === name)?.id as string;
}

/** Events of the network until now. */
async function networkEvents(sandbox: Sandbox): Promise<readonly EventBody[]> {
  const events = await client.pastEvents({ sandbox: sandbox.id, limit: 1000 });
  return events.filter(({ kind }) => kind.startsWith("network."));
}

describe("the audit of a sandbox's network on gVisor", { timeout: 120_000 }, () => {
  it("has each connection and query with process, address, rule, bytes and duration, and denials with what allows them", async () => {
    await using sandbox = await create({ rules: [{ allow: "site.example", ports: [80] }] });
    expect(await guest(sandbox, "get", "site.example")).toContain("reached");
    expect(await guest(sandbox, "get", "other.example")).toMatch(/^failed/);
    expect(await guest(sandbox, "echo", "site.example", ports.echo, "x")).toMatch(/^failed/);
    await expect.poll(async () => (await flowsOf(sandbox)).every(({ endedAt }) => endedAt !== null)).toBe(true);
    const log = await Array.fromAsync(sandbox.network.log());
    const found = (fields: Partial<FlowRecord>) => expect(log).toContainEqual(expect.objectContaining(fields));
    found({
      kind: "flow",
      name: "site.example",
      address: addresses.site,
      port: 80,
      program: "python3",
      pid: expect.any(Number) as never,
      decision: "allowed",
      rule: "allow=site.example:80",
    });
    const [allowed] = log.filter(({ kind, decision }) => kind === "flow" && decision === "allowed");
    expect(allowed?.sentBytes).toBeGreaterThan(0);
    expect(allowed?.receivedBytes).toBeGreaterThan(0);
    expect(allowed?.durationMs).toBeGreaterThan(0);
    found({ kind: "query", name: "site.example", decision: "allowed" });
    found({ kind: "query", name: "other.example", decision: "denied", suggestion: "allow=other.example" });
    found({
      kind: "flow",
      name: "site.example",
      port: ports.echo,
      decision: "denied",
      suggestion: "allow=site.example:7",
    });
    const denied = await Array.fromAsync(sandbox.network.log({ denied: true }));
    expect(new Set(denied.map(({ decision }) => decision))).toEqual(new Set(["denied"]));
    const events = await networkEvents(sandbox);
    expect(events.map(({ kind }) => kind)).toContain("network.allowed");
    expect(events).toContainEqual(
      expect.objectContaining({
        kind: "network.denied",
        details: expect.objectContaining({ name: "other.example", suggestion: "allow=other.example" }),
      }),
    );
  });

  it("is followed live, across a restart of the node, until the sandbox is destroyed", async () => {
    const sandbox = await create("open");
    const seen: string[] = [];
    const follow = async () => {
      for await (const { kind, name } of sandbox.network.log({ follow: true }))
        if (kind === "flow") seen.push(name ?? "-");
    };
    const followed = follow();
    await guest(sandbox, "get", "site.example");
    await expect.poll(() => seen).toContain("site.example");
    await bed.node.kill9();
    await bed.node.start();
    await guest(sandbox, "get", "other.example");
    await expect.poll(() => seen, { timeout: 20_000 }).toContain("other.example");
    expect((await flowsOf(sandbox)).map(({ name }) => name)).toEqual(["site.example", "other.example"]);
    await sandbox.destroy();
    await followed;
  });

  it("becomes rules that are enough for the same work, and for nothing else", async () => {
    await using open = await create("open");
    await guest(open, "get", "site.example");
    await guest(open, "echo", "site.example", ports.echo, "x");
    const { rules, text } = await open.network.suggest();
    expect(text).toBe("allow=site.example:7+80");
    await using closed = await create({ rules });
    expect(await guest(closed, "get", "site.example")).toContain("reached");
    expect(await guest(closed, "echo", "site.example", ports.echo, "hello")).toBe("hello");
    expect(await guest(closed, "get", "other.example")).toMatch(/^failed/);
  });

  it("holds a new host until it is approved or denied, and remembers the decision across a restart of the node", async () => {
    await using sandbox = await create("ask");
    const first = guest(sandbox, "get", "site.example");
    const policy = await sandbox.network.approve(await firstRequest(sandbox, "site.example"));
    expect(policy.rules).toEqual([{ allow: "site.example", ports: [80] }]);
    expect(await first).toContain("reached");
    expect((await networkEvents(sandbox)).map(({ kind }) => kind)).toContain("network.asked");

    const second = guest(sandbox, "get", "other.example");
    await sandbox.network.deny(await firstRequest(sandbox, "other.example"));
    expect(await second).toMatch(/^failed/);

    await bed.node.kill9();
    await bed.node.start();
    expect(await guest(sandbox, "get", "site.example")).toContain("reached");
    expect(await guest(sandbox, "get", "other.example")).toMatch(/^failed/);
    expect((await sandbox.network.get()).rules).toEqual([
      { deny: "other.example", ports: [80] },
      { allow: "site.example", ports: [80] },
    ]);
    expect(await sandbox.network.requests()).toEqual([]);
  });

  it("denies a new host that nobody decides about in time, and asks again the next time", async () => {
    await using sandbox = await create("ask");
    expect(await guest(sandbox, "get", "site.example")).toMatch(/^failed/);
    const flows = await flowsOf(sandbox);
    expect(flows).toContainEqual(expect.objectContaining({ name: "site.example", reason: "not_approved" }));
    expect((await sandbox.network.get()).rules).toEqual([]);
    const again = guest(sandbox, "get", "site.example");
    await sandbox.network.approve(await firstRequest(sandbox, "site.example"));
    expect(await again).toContain("reached");
  });
});
