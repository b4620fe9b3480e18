import { SandboxError } from "@sandpiper/core";
import { rejection, settle } from "@sandpiper/core/testing";
import { type SandboxId, sandboxResourceSchema } from "@sandpiper/protocol";
import { MockProvider } from "@sandpiper/providers";
import { describe, expect, it } from "vitest";
import { NodeReconciler } from "../reconcile/node-reconciler.ts";
import { type MockNodeOptions, mockNode } from "../testing/mock-node.ts";

type SetUpOptions = Partial<MockNodeOptions<MockProvider>>;
const setUp = (options: SetUpOptions = {}) => mockNode({ provider: new MockProvider(), ...options });
const mock = { provider: "mock" } as const;
const fault = () => SandboxError.fromFields({ code: "unavailable", reason: "no_room", message: "no room" });

describe("a sandbox of the node", () => {
  it("can be created, read, listed, changed and destroyed", async () => {
    const node = setUp();
    const created = await node.create({ name: "one", labels: { team: "a" } });
    expect(sandboxResourceSchema.parse(created)).toMatchObject({ state: "ready", name: "one", provider: "mock" });
    const { id } = created;
    expect(node.get(id)).toEqual(created);
    expect(node.sandboxes.list(node.owner, { label: ["team=a"] }).items).toEqual([created]);
    expect(node.sandboxes.list(node.owner, { label: ["team=b"] }).items).toEqual([]);
    const changed = await node.sandboxes.update(node.owner, id, { labels: { team: "b" }, ttlMs: 5000 });
    expect(changed).toMatchObject({ labels: { team: "b" }, name: "one", ttlMs: 5000 });
    const live = node.open(id);
    expect((await live.exec({ argv: ["echo", "hi"] })).stdout).toBe("hi\n");
    await node.sandboxes.remove(node.owner, id);
    expect(node.provider.size).toBe(0);
    expect(node.get(id).state).toBe("destroyed");
    expect(() => node.open(id)).toThrow("destroyed");
  });

  it("does not exist for another tenant, or for another sandbox's token", async () => {
    const node = setUp();
    const { id, token } = await node.create();
    const second = await node.create();
    const otherTenant = node.principal({ tenant: "other" });
    const otherSandbox = node.authenticator.authenticate(second.token ?? undefined);
    for (const caller of [otherTenant, otherSandbox]) {
      expect(() => node.sandboxes.get(caller, id)).toThrow("there is no sandbox");
      expect(() => node.access.open(caller, id, { readOnly: false })).toThrow("there is no sandbox");
      expect((await rejection(node.sandboxes.update(caller, id, { name: "x" }))).code).toBe("not_found");
      expect((await rejection(node.sandboxes.remove(caller, id))).code).toBe("not_found");
    }
    expect(node.sandboxes.list(otherTenant, {}).items).toEqual([]);
    expect(node.sandboxes.get(node.authenticator.authenticate(token ?? undefined), id).id).toBe(id);
  });

  it("shows its token only to callers that may use it", async () => {
    const node = setUp();
    const { id, token } = await node.create();
    const reader = node.principal({ scopes: ["read"] });
    expect(token).toMatch(/^spt_/);
    expect(node.sandboxes.get(reader, id).token).toBeNull();
    expect(node.sandboxes.list(reader, {}).items).toMatchObject([{ id, token: null }]);
    expect(node.sandboxes.list(node.owner, {}).items).toMatchObject([{ id, token }]);
  });

  it("is failed after a destruction that fails, and can be destroyed again", async () => {
    const node = setUp({ provider: new MockProvider({ faults: { failedDestroys: 1 } }) });
    const { id } = await node.create({ ttlMs: 1000 });
    await node.clock.advance(2000);
    expect(node.errors).toMatchObject([{ reason: "mock_fault" }]);
    expect(node.get(id)).toMatchObject({ state: "failed", failure: { reason: "mock_fault" } });
    expect(node.provider.size).toBe(1);
    await node.sandboxes.remove(node.owner, id);
    expect(node.provider.size).toBe(0);
    expect(node.get(id).state).toBe("destroyed");
  });

  it("cannot be used or changed while it is being destroyed", async () => {
    const node = setUp();
    const { id } = await node.create();
    const removals = [node.sandboxes.remove(node.owner, id), node.sandboxes.remove(node.owner, id)];
    await Promise.resolve();
    expect((await rejection(Promise.try(() => node.open(id)))).code).toBe("gone");
    expect((await rejection(node.sandboxes.update(node.owner, id, { ttlMs: 60_000 }))).code).toBe("gone");
    await Promise.all(removals);
    expect(node.kinds().filter((kind) => kind === "sandbox.destroyed")).toHaveLength(1);
  });

  it("applies its environment and defaults to every command", async () => {
    const node = setUp();
    const { id } = await node.create({ env: { GREETING: "hello", NAME: "world" } });
    const live = node.open(id);
    const { stdout } = await live.exec({ command: 'echo "$GREETING $NAME"', env: { NAME: "you" } });
    expect(stdout).toBe("hello you\n");
  });

  it("emits events when its processes start and exit", async () => {
    const node = setUp();
    const { id } = await node.create();
    const process = await node.open(id).start({ argv: ["true"] });
    await process.wait();
    await settle();
    expect(node.observed).toEqual(["mock"]);
    expect(node.kinds().slice(-2)).toEqual(["process.started", "process.exited"]);
  });

  it("truncates the buffered output of a command at 8 MiB", async () => {
    const node = setUp();
    const { id } = await node.create();
    const stdin = "x".repeat(9 * 1024 * 1024);
    const { stdout, truncated } = await node.open(id).exec({ argv: ["cat"] }, { stdin });
    expect({ length: stdout.length, truncated }).toEqual({ length: 8 * 1024 * 1024, truncated: true });
  });

  it("that cannot boot is failed with the reason, and leaves no instance", async () => {
    const provider = new MockProvider({ faults: { bootFailure: fault() } });
    const node = setUp({ provider });
    expect((await rejection(node.create())).message).toContain("no room");
    expect(node.provider.size).toBe(0);
    expect(node.sandboxes.list(node.owner, { state: "failed" }).items).toMatchObject([
      { failure: { message: "no room" } },
    ]);
  });

  it("that cannot boot keeps a small record, and not every one", async () => {
    const provider = new MockProvider({ faults: { bootFailure: fault() } });
    const node = setUp({ provider, config: { rateLimits: { failedCreatesPerMinute: 0 } } });
    const env = { SECRET: "x".repeat(100_000) };
    for (let k = 0; k < 103; k++) await rejection(node.create({ env, metadata: { text: "x".repeat(10_000) } }));
    await node.sandboxes.settled();
    const failed = node.sandboxes.list(node.owner, { state: "failed", limit: 1000 }).items;
    expect(failed).toHaveLength(100);
    expect(node.records.get(failed[0]?.id as SandboxId)).toMatchObject({ env: {}, metadata: {} });
    expect(node.records.bytesOf("mine")).toBeLessThan(200_000);
    expect(node.errors).toEqual([]);
  });

  it("that fails too often is refused for a while, for its key only", async () => {
    const provider = new MockProvider({ faults: { bootFailure: fault() } });
    const node = setUp({ provider, config: { rateLimits: { failedCreatesPerMinute: 3 } } });
    for (let k = 0; k < 3; k++) expect(await rejection(node.create())).toMatchObject({ reason: "no_room" });
    const refused = await rejection(node.create());
    expect(refused).toMatchObject({
      reason: "rate_limited",
      details: { limit: "failed_creates", retryAfterMs: 20_000 },
    });
    const other = node.principal();
    expect(await rejection(node.sandboxes.create(other, { provider: "mock" }))).toMatchObject({ reason: "no_room" });
    await node.clock.advance(20_000);
    expect(await rejection(node.create())).toMatchObject({ reason: "no_room" });
  });

  it("that is a copy and fails counts as one that fails to start", async () => {
    const node = setUp({ provider: new MockProvider(), config: { rateLimits: { failedCreatesPerMinute: 2 } } });
    const { id } = await node.create();
    const checkpoint = await node.checkpoints.create(node.owner, id, {});
    node.provider.faults.restoreFailure = fault();
    expect(await rejection(node.forks.fork(node.owner, id, {}))).toMatchObject({ reason: "no_room" });
    expect(await rejection(node.forks.createFrom(node.owner, {}, checkpoint.id))).toMatchObject({ reason: "no_room" });
    const refused = { reason: "rate_limited", details: { limit: "failed_creates" } };
    expect(await rejection(node.forks.fork(node.owner, id, {}))).toMatchObject(refused);
    expect(await rejection(node.forks.createFrom(node.owner, {}, checkpoint.id))).toMatchObject(refused);
    expect(await rejection(node.create())).toMatchObject(refused);
  });

  it("is refused while the records of its tenant are too large; those of destroyed sandboxes give way", async () => {
    const node = setUp({ config: { maxRecordBytes: 1024 * 1024 } });
    const large = { env: { A: "x".repeat(120_000) }, labels: { a: "x".repeat(4000) } };
    const first = await node.create(large);
    for (let k = 0; k < 8; k++) await node.create(large);
    expect(await rejection(node.create(large))).toMatchObject({ code: "resource_exhausted", reason: "record_limit" });
    await node.sandboxes.remove(node.owner, first.id);
    for (let k = 0; k < 150; k++) {
      const { id } = await node.create({ labels: { a: "x".repeat(4000) } });
      await node.sandboxes.remove(node.owner, id);
    }
    const destroyed = node.sandboxes.list(node.owner, { state: "destroyed", limit: 1000 }).items;
    expect(destroyed.length).toBeLessThan(80);
    expect(node.sandboxes.list(node.owner, { state: "ready" }).items).toHaveLength(8);
  });

  it("that ends by itself is failed with the reason", async () => {
    const node = setUp();
    const { id } = await node.create();
    node.provider.instance(id).crash("it crashed");
    await settle();
    expect(node.get(id)).toMatchObject({ state: "failed", failure: { reason: expect.any(String) } });
    expect((await rejection(Promise.try(() => node.open(id)))).code).toBe("gone");
  });
});

describe("limits", () => {
  it("apply to concurrent creations", async () => {
    const node = setUp({ config: { maxSandboxes: 5 }, provider: new MockProvider({ faults: { bootDelayMs: 5 } }) });
    const outcomes = await Promise.allSettled(Array.from({ length: 12 }, () => node.create()));
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(5);
    expect(node.provider.size).toBe(5);
  });

  it("of a key count its existing and its requested sandboxes", async () => {
    const node = setUp();
    const quota = { maxSandboxes: 3, maxMemoryMib: 600 };
    const owner = node.principal({ quota });
    const create = () => node.sandboxes.create(owner, { ...mock, memoryMib: 256 });
    const outcomes = await Promise.allSettled([create(), create(), create()]);
    expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "rejected"]);
    expect(node.sandboxes.list(owner, {}).items).toHaveLength(2);
    await node.sandboxes.remove(owner, node.sandboxes.list(owner, {}).items[0]?.id ?? "");
    expect((await create()).state).toBe("ready");
  });
});

describe("an idempotency key", () => {
  it("creates one sandbox for repeated requests, even concurrent ones", async () => {
    const node = setUp();
    const create = () => node.create({ name: "one" }, { idempotencyKey: "k" });
    const created = await Promise.all([create(), create(), create()]);
    expect(new Set([...created, await create()].map(({ id }) => id)).size).toBe(1);
    expect(node.provider.size).toBe(1);
    const other = node.create({ name: "two" }, { idempotencyKey: "k" });
    expect((await rejection(other)).reason).toBe("idempotency_key_reused");
  });
});

describe("an idempotency key of a request whose caller disconnects", () => {
  it("still creates the sandbox for a concurrent retry", async () => {
    const node = setUp({ provider: new MockProvider({ faults: { bootDelayMs: 20 } }) });
    const leaving = new AbortController();
    const create = (signal?: AbortSignal) => node.create({}, { idempotencyKey: "k", signal });
    const first = create(leaving.signal);
    const again = create();
    leaving.abort();
    expect((await rejection(first)).code).toBe("canceled");
    expect((await again).state).toBe("ready");
    expect(node.provider.size).toBe(1);
  });
});

describe("an idempotency key of a failed request", () => {
  it("can be used again", async () => {
    const faults = {
      bootFailure: SandboxError.fromFields({ code: "unavailable", reason: "no_room", message: "no room" }),
    };
    const node = setUp({ provider: new MockProvider({ faults }) });
    const create = () => node.create({}, { idempotencyKey: "k" });
    expect((await rejection(create())).reason).toBe("no_room");
    Object.assign(node.provider.faults, { bootFailure: undefined });
    expect((await create()).state).toBe("ready");
  });
});

describe("an instance of a warm pool", () => {
  it("is claimed by a creation of the same shape, and replaced", async () => {
    const node = setUp();
    node.pool.set({ ...mock, target: 1 });
    await node.clock.advance(1000);
    const [before] = await node.provider.list();
    const created = await node.create({ env: { A: "1" }, name: "warm", labels: { x: "y" } });
    expect(created).toMatchObject({ id: before?.id, name: "warm", labels: { x: "y" } });
    const live = node.open(created.id);
    expect((await live.exec({ command: 'echo "$A"' })).stdout).toBe("1\n");
    await node.clock.advance(1000);
    expect(node.pool.list()).toMatchObject([{ ready: 1, hits: 1, misses: 0 }]);
    const larger = await node.create({ memoryMib: 512 });
    expect((await node.provider.list()).find(({ id }) => id === larger.id)?.spec.memoryMib).toBe(512);
    expect(node.pool.set({ ...mock, target: 0 })).toMatchObject({ target: 0, ready: 0 });
    await node.pool.close();
  });
});

describe("a sandbox that ends while the disk is full", () => {
  it("before it is ready is recorded as failed once the disk has space again", async () => {
    const provider = new MockProvider({ faults: { bootFailure: fault(), bootDelayMs: 100 } });
    const node = setUp({ provider });
    const creating = rejection(node.create());
    await expect.poll(() => node.sandboxes.list(node.owner, { state: "creating" }).items).toHaveLength(1);
    node.database.prepare("PRAGMA query_only = ON").run();
    await node.clock.advance(100);
    expect(await creating).toMatchObject({ reason: "no_room" });
    expect(node.sandboxes.list(node.owner, { state: "creating" }).items).toHaveLength(1);
    node.database.prepare("PRAGMA query_only = OFF").run();
    await node.clock.advance(1500);
    expect(node.sandboxes.list(node.owner, { state: "failed" }).items).toMatchObject([
      { failure: { reason: "no_room" } },
    ]);
  });

  it("is recorded as failed once the disk has space again", async () => {
    const node = setUp();
    const { id } = await node.create();
    node.database.prepare("PRAGMA query_only = ON").run();
    node.provider.instance(id).crash();
    await node.clock.advance(2500);
    expect(node.errors.length).toBeGreaterThan(0);
    node.database.prepare("PRAGMA query_only = OFF").run();
    await node.clock.advance(1500);
    expect(node.get(id)).toMatchObject({ state: "failed", failure: { reason: "instance_crashed" } });
  });
});

describe("a sandbox with a lifetime", () => {
  it("is destroyed when it expires, even while it is used", async () => {
    const node = setUp();
    const { id } = await node.create({ ttlMs: 10_000 });
    node.open(id).hold("client");
    await node.clock.advance(9_000);
    expect(node.get(id).state).toBe("ready");
    await node.sandboxes.update(node.owner, id, { ttlMs: 5_000 });
    await node.clock.advance(4_000);
    expect(node.get(id).state).toBe("ready");
    await node.clock.advance(2_000);
    await node.sandboxes.settled();
    expect(node.get(id).state).toBe("destroyed");
    expect(node.kinds()).toContain("sandbox.expired");
  });

  it("is destroyed when it is idle for too long, and not before", async () => {
    const node = setUp();
    const { id } = await node.create({ idleTimeoutMs: 10_000 });
    for (let turn = 0; turn < 5; turn++) {
      await node.clock.advance(8_000);
      await node.open(id).exec({ argv: ["true"] });
    }
    await node.clock.advance(12_000);
    await node.sandboxes.settled();
    expect(node.get(id).state).toBe("destroyed");
  });
});

describe("the idle timeout", () => {
  it("does not run while a process runs, and restarts with every use", async () => {
    const node = setUp();
    const { id } = await node.create({ idleTimeoutMs: 10_000 });
    const live = node.open(id);
    const process = await live.start({ command: "sleep 3600" });
    await node.clock.advance(60_000);
    expect(node.get(id).state).toBe("ready");
    await process.kill();
    await process.wait();
    await settle();
    for (let turn = 0; turn < 3; turn++) {
      await node.clock.advance(8_000);
      await live.files.write("/file", "text");
    }
    expect(node.get(id).state).toBe("ready");
    await node.clock.advance(12_000);
    await node.sandboxes.settled();
    expect(node.get(id).state).toBe("destroyed");
  });
});

describe("a node that restarts", () => {
  it("adopts running sandboxes, reports lost ones, and removes instances without a record", async () => {
    const first = setUp();
    const kept = await first.create({ name: "kept", env: { A: "1" } });
    const lost = await first.create({ name: "lost" });
    first.pool.set({ ...mock, target: 1 });
    await first.clock.advance(1000);
    expect(first.provider.size).toBe(3);
    const provider = first.die();
    await provider.remove(lost.id);

    const second = setUp({ provider, home: first.home });
    const result = await new NodeReconciler(second).reconcile();
    expect(result).toMatchObject({ adopted: [kept.id], lost: [lost.id], failed: [] });
    expect(result.removed).toHaveLength(1);
    expect(provider.size).toBe(1);
    expect(second.get(lost.id)).toMatchObject({
      state: "failed",
      failure: { reason: "instance_lost" },
    });
    expect((await second.open(kept.id).exec({ command: 'echo "$A"' })).stdout).toBe("1\n");
  });
});
