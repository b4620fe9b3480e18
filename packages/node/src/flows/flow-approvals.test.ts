import { FakeClock } from "@sandpiper/core/testing";
import { createSandboxId } from "@sandpiper/protocol";
import { rejection } from "@sandpiper/protocol/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { type AskedConnection, FlowApprovals } from "./flow-approvals.ts";
import type { NetworkEvent } from "./flow-events.ts";

const one = createSandboxId();
let clock: FakeClock;
let emitted: NetworkEvent[];
let approvals: FlowApprovals;
beforeEach(() => {
  clock = new FakeClock();
  emitted = [];
  approvals = new FlowApprovals({ clock, timeoutMs: 60_000, events: { emit: (event) => void emitted.push(event) } });
});

const { signal } = new AbortController();
const ask = (fields: Partial<AskedConnection> = {}, by = signal) =>
  approvals.decide(
    { sandboxId: one, tenant: "a", name: "example.com", address: null, port: 443, pid: 7, program: "curl", ...fields },
    by,
  );
const first = () => approvals.list(one)[0]?.id as string;

describe("approvals", () => {
  it("hold every connection to a new host until one decision, and report the host once", async () => {
    const held = [ask(), ask(), ask({ port: 80 })];
    expect(approvals.list(one)).toMatchObject([
      { name: "example.com", port: 443, program: "curl", sandboxId: one },
      { name: "example.com", port: 80 },
    ]);
    expect(emitted).toMatchObject([
      { kind: "network.asked", tenant: "a", details: { request: first(), name: "example.com", port: 443 } },
      { details: { port: 80 } },
    ]);
    approvals.settle(one, first(), "allow");
    approvals.settle(one, first(), "deny");
    expect(await Promise.all(held)).toEqual(["allow", "allow", "deny"]);
    expect(approvals.list(one)).toEqual([]);
  });

  it("deny when the time is over, and ask again after that", async () => {
    const held = ask();
    expect(Date.parse(approvals.list(one)[0]?.expiresAt ?? "") - clock.now().getTime()).toBe(60_000);
    await clock.advance(60_000);
    expect(await held).toBe("deny");
    expect(approvals.list(one)).toEqual([]);
    const again = ask();
    approvals.settle(one, first(), "allow");
    expect(await again).toBe("allow");
    expect(clock.pending).toBe(0);
  });

  it("keep a request whose connection has gone, so that the next attempt finds it decided", async () => {
    const leaving = new AbortController();
    const held = ask({}, leaving.signal);
    leaving.abort();
    expect(await held).toBe("deny");
    const next = ask();
    expect(approvals.list(one)).toHaveLength(1);
    approvals.settle(one, first(), "allow");
    expect(await next).toBe("allow");
    expect(await ask({}, leaving.signal)).toBe("deny");
  });

  it("deny further hosts at once while 64 wait, in that sandbox only", async () => {
    for (let n = 0; n < 64; n += 1) void ask({ name: `${n}.example.com` });
    expect(await ask({ name: "one-more.example.com" })).toBe("deny");
    const other = createSandboxId();
    const held = ask({ sandboxId: other });
    approvals.settle(other, approvals.list(other)[0]?.id as string, "allow");
    expect(await held).toBe("allow");
    expect(approvals.list(one)).toHaveLength(64);
  });

  it("know no request of another sandbox, and none that was decided", async () => {
    void ask();
    const id = first();
    expect(() => approvals.get(createSandboxId(), id)).toThrow("has no network request");
    expect(approvals.get(one, id)).toMatchObject({ name: "example.com" });
    approvals.settle(one, id, "deny");
    expect(await rejection(Promise.resolve().then(() => approvals.get(one, id)))).toMatchObject({
      code: "not_found",
      reason: "no_such_network_request",
    });
  });

  it("deny everything of a sandbox that leaves, and of all when the node stops", async () => {
    const other = createSandboxId();
    const held = [ask(), ask({ port: 80 }), ask({ sandboxId: other })];
    approvals.end(one);
    expect([approvals.list(one), approvals.list(other)].map(({ length }) => length)).toEqual([0, 1]);
    approvals[Symbol.dispose]();
    expect(await Promise.all(held)).toEqual(["deny", "deny", "deny"]);
    expect(clock.pending).toBe(0);
  });
});
