import { type GuestNetwork, type NetworkHandler, SandboxError } from "@sandpiper/core";
import { FakeClock, settle } from "@sandpiper/core/testing";
import { completeNetwork, createSandboxId } from "@sandpiper/protocol";
import { describe, expect, it } from "vitest";
import { denyAll } from "./approvals.ts";
import { noFlowSink } from "./flow-sink.ts";
import { noInterceptor } from "./interceptor.ts";
import { type NetworkedSandbox, Networks } from "./networks.ts";
import { FakeFlow } from "./testing/fake-flow.ts";

/** A sandbox that tells whether its network is served. */
class FakeSandbox implements NetworkedSandbox {
  readonly id = createSandboxId();
  readonly state = "ready";
  readonly handlers: NetworkHandler[] = [];
  failures: SandboxError[] = [];
  open = 0;

  async network(handler: NetworkHandler): Promise<GuestNetwork> {
    const failure = this.failures.shift();
    if (failure !== undefined) throw failure;
    this.handlers.push(handler);
    this.open++;
    return { close: () => void this.open-- } as GuestNetwork;
  }
}

function node({ maxConnections = 0 } = {}) {
  const clock = new FakeClock();
  const errors: SandboxError[] = [];
  const networks = new Networks({
    parts: {
      clock,
      bundles: {},
      reachable: { isReachable: () => true },
      // Connections wait for ever: the tests count them.
      resolver: { resolve: () => new Promise(() => {}) },
      approvals: denyAll,
      interceptor: noInterceptor,
      sink: noFlowSink,
    },
    maxConnections,
    onError: (error) => errors.push(error),
  });
  return { clock, errors, networks };
}

describe("the networks of a node", () => {
  it("are served only for sandboxes whose policy can allow something", async () => {
    const { networks } = node();
    const sandbox = new FakeSandbox();
    using _ = networks.serve(sandbox, "t", completeNetwork("none"));
    await settle();
    expect(sandbox.open).toBe(0);
    networks.update(sandbox.id, completeNetwork("open"));
    await settle();
    expect(sandbox.open).toBe(1);
    networks.update(sandbox.id, completeNetwork({ rules: [{ allow: "a.example" }] }));
    await settle();
    expect(sandbox.handlers).toHaveLength(1);
    networks.update(sandbox.id, completeNetwork("none"));
    await settle();
    expect(sandbox.open).toBe(0);
  });

  it("end with the sandbox, also if that ends while the agent is being asked", async () => {
    const { networks } = node();
    const [first, second] = [new FakeSandbox(), new FakeSandbox()];
    const served = networks.serve(first, "t", completeNetwork("open"));
    await settle();
    served[Symbol.dispose]();
    networks.serve(second, "t", completeNetwork("open"))[Symbol.dispose]();
    await settle();
    expect([first.open, second.open]).toEqual([0, 0]);
  });

  it("are tried again if an agent does not answer, but not if it has none", async () => {
    const { networks, clock, errors } = node();
    const [slow, old] = [new FakeSandbox(), new FakeSandbox()];
    slow.failures = [
      new SandboxError("rpc_timeout", { message: "no answer", details: { method: "net.serve", timeoutMs: 1 } }),
    ];
    old.failures = [new SandboxError("unknown_method", { message: "no such method" })];
    using _ = networks.serve(slow, "t", completeNetwork("open"));
    using __ = networks.serve(old, "t", completeNetwork("open"));
    await clock.advance(5000);
    expect([slow.open, old.open]).toEqual([1, 0]);
    expect(errors).toHaveLength(2);
  });

  it("share the connections of the node", async () => {
    const { networks } = node({ maxConnections: 2 });
    const [first, second] = [new FakeSandbox(), new FakeSandbox()];
    const served = networks.serve(first, "t", completeNetwork("open"));
    using _ = networks.serve(second, "t", completeNetwork("open"));
    await settle();
    const open = ({ handlers }: FakeSandbox) => {
      const flow = new FakeFlow({ name: "a.example", port: 80 });
      handlers[0]?.onFlow(flow);
      return flow;
    };
    open(first);
    open(first);
    expect(networks.openConnections).toBe(2);
    expect(open(second).isRefused).toBe(true);
    served[Symbol.dispose]();
    await expect.poll(() => networks.openConnections).toBe(0);
    expect(open(second).isRefused).toBe(false);
  });
});
