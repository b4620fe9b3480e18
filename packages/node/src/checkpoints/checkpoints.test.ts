import { globSync, mkdirSync, readdirSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { SandboxError } from "@sandpiper/core";
import { rejection } from "@sandpiper/core/testing";
import { MockProvider } from "@sandpiper/providers";
import { describe, expect, it, vi } from "vitest";
import { expireAtRest } from "../handoff/expire-at-rest.ts";
import { mockNode } from "../testing/mock-node.ts";

async function setUp(provider = new MockProvider()) {
  const node = mockNode({ provider });
  const { home, open } = node;
  const { id } = await node.create();
  const write = async (text: string) => void (await open(id).exec({ command: `echo ${text} > file` }));
  const read = async (sandbox: string = id) => (await open(sandbox).exec({ command: "cat file" })).stdout.trim();
  const chunks = () =>
    new Set(
      globSync(`${home}/store/chunks/**/*`, { withFileTypes: true })
        .filter((each) => each.isFile())
        .map((each) => join(each.parentPath, each.name)),
    );
  /** Damages the chunks that belong only to the newest checkpoint. */
  const damageNewest = (known: ReadonlySet<string>) => {
    for (const path of chunks().difference(known)) truncateSync(path, 1);
  };
  return { ...node, id, write, read, damageNewest, chunks };
}

describe("a sandbox whose instance has ended by itself", () => {
  const fail = async ({ provider, id, get }: Awaited<ReturnType<typeof setUp>>) => {
    provider.instance(id).runOutOfMemory();
    await expect.poll(() => get(id).failure).toMatchObject({ reason: "out_of_memory" });
  };

  it("returns to its newest checkpoint at its next use", async () => {
    const node = await setUp();
    await node.write("saved");
    const { id: checkpoint } = await node.checkpoints.create(node.owner, node.id, {});
    await node.write("lost");
    await fail(node);
    await expect
      .poll(() => node.get(node.id))
      .toMatchObject({ state: "stopped", failure: { reason: "out_of_memory" } });
    await node.checkpoints.restoreStopped(node.id);
    expect(await node.read()).toBe("saved");
    expect(node.get(node.id)).toMatchObject({ state: "ready", failure: null, rolledBackTo: { checkpoint } });
    expect(node.kinds()).toEqual(expect.arrayContaining(["sandbox.failed", "sandbox.rolled_back"]));
  });

  it("returns to it although its recovery failed at first", async () => {
    const node = await setUp();
    await node.write("saved");
    await node.checkpoints.create(node.owner, node.id, {});
    const recorded = node.registry.change.bind(node.registry);
    // Fails only the recovery, as a disk that is full at that moment.
    const change = vi.spyOn(node.registry, "change").mockImplementation((id, fields) => {
      if (fields.state === "stopped") throw new Error("database or disk is full");
      return recorded(id, fields);
    });
    await fail(node);
    await expect.poll(() => change.mock.results.at(-1)?.type).toBe("throw");
    await node.registry.unlocked(node.id);
    expect(node.get(node.id).state).toBe("failed");
    change.mockRestore();
    await node.locator.claim(node.owner, node.id, { purpose: "use", readOnly: false });
    expect(node.get(node.id)).toMatchObject({ state: "ready", failure: null });
    expect(await node.read()).toBe("saved");
  });

  it("stays failed without a checkpoint, and refuses requests with its state and not as if they had run", async () => {
    const node = await setUp();
    await fail(node);
    await node.registry.unlocked(node.id);
    expect(await rejection(Promise.try(() => node.open(node.id)))).toMatchObject({
      code: "gone",
      reason: "sandbox_failed",
      retryable: false,
      details: { id: node.id, state: "failed", failure: "out_of_memory" },
    });
    expect(await node.checkpoints.list(node.owner, node.id)).toEqual([]);
    const rollback = rejection(node.checkpoints.rollback(node.owner, node.id, {}));
    expect(await rollback).toMatchObject({ reason: "no_such_checkpoint" });
    expect(node.get(node.id)).toMatchObject({ state: "failed", failure: { reason: "out_of_memory" } });
  });

  it("with onFailure keep stays failed, and can be listed, forked and rolled back", async () => {
    const node = await setUp();
    const { id, owner, checkpoints, forks, sandboxes } = node;
    await sandboxes.update(owner, id, { onFailure: "keep" });
    await node.write("saved");
    const checkpoint = await checkpoints.create(owner, id, {});
    await fail(node);
    await node.registry.unlocked(id);
    expect(sandboxes.list(owner, { state: "failed" }).items).toMatchObject([{ id, onFailure: "keep" }]);
    expect(await checkpoints.list(owner, id)).toEqual([checkpoint]);
    expect(await rejection(checkpoints.pause(owner, id))).toMatchObject({ reason: "sandbox_failed" });
    const [fork] = await forks.fork(owner, id, {});
    expect(await node.read(fork?.id)).toBe("saved");
    expect(node.get(id).state).toBe("failed");
    expect(await checkpoints.rollback(owner, id, {})).toMatchObject({ state: "ready", failure: null });
    expect(await node.read()).toBe("saved");
  });

  it("counts against its key's quota again before it is rolled back", async () => {
    const node = await setUp();
    const owner = node.principal({ quota: { maxSandboxes: 1 } });
    const { id } = await node.sandboxes.create(owner, { provider: "mock", onFailure: "keep" });
    await node.checkpoints.create(owner, id, {});
    await fail({ ...node, id });
    await node.sandboxes.create(owner, { provider: "mock" });
    const refusal = await rejection(node.checkpoints.rollback(owner, id, {}));
    expect(refusal).toMatchObject({ reason: "quota_exceeded" });
    expect(node.get(id).state).toBe("failed");
  });
});

describe("a resume", () => {
  it("that waited while the sandbox moved to another node asks its caller to retry", async () => {
    const { checkpoints, owner, id, registry } = await setUp();
    await checkpoints.pause(owner, id);
    const moving = Promise.withResolvers<void>();
    const moved = registry.serialize(id, async () => {
      await moving.promise;
      registry.drop(id);
    });
    const resuming = rejection(checkpoints.resume(owner, id));
    moving.resolve();
    await moved;
    expect(await resuming).toMatchObject({ code: "unavailable", reason: "sandbox_moved" });
  });
});

describe("a checkpoint", () => {
  it("has a unique name within its sandbox", async () => {
    const { checkpoints, owner, id } = await setUp();
    await checkpoints.create(owner, id, { name: "one" });
    expect(await rejection(checkpoints.create(owner, id, { name: "one" }))).toMatchObject({
      code: "already_exists",
      reason: "checkpoint_exists",
    });
    expect(await checkpoints.list(owner, id)).toHaveLength(1);
  });

  it("of a sandbox that was not used since the last one is a copy, taken without a pause", async () => {
    const { checkpoints, owner, id, write, read } = await setUp();
    await write("kept");
    const first = await checkpoints.create(owner, id, { name: "first" });
    const again = await checkpoints.create(owner, id, { name: "again" });
    expect(again).toMatchObject({ pausedMs: 0, sizeBytes: first.sizeBytes });
    await checkpoints.remove(owner, id, "first");
    await write("changed");
    const changed = await checkpoints.create(owner, id, {});
    expect(changed.pausedMs).toBeGreaterThan(0);
    await checkpoints.rollback(owner, id, { checkpoint: "again" });
    expect(await read()).toBe("kept");
  });

  it("of a sandbox with a running process is always a new one", async () => {
    const { checkpoints, owner, id, open } = await setUp();
    const process = await open(id).start({ command: "sleep 1000" });
    await checkpoints.create(owner, id, {});
    expect((await checkpoints.create(owner, id, {})).pausedMs).toBeGreaterThan(0);
    await process.kill();
  });

  it("beyond keepLast is deleted from the store", async () => {
    const { checkpoints, owner, id, write, home } = await setUp();
    for (const name of ["a", "b", "c"]) {
      await write(name);
      await checkpoints.create(owner, id, { name, keepLast: 2 });
    }
    expect((await checkpoints.list(owner, id)).map(({ name }) => name)).toEqual(["c", "b"]);
    expect(readdirSync(join(home, "store/checkpoints", id))).toHaveLength(2);
  });

  it("is deleted when it expires, unless it is the only copy of a sandbox", async () => {
    const { checkpoints, owner, id, clock } = await setUp();
    await checkpoints.create(owner, id, { name: "short", ttlMs: 1 });
    await checkpoints.create(owner, id, { name: "long" });
    await clock.advance(1);
    await checkpoints.expire();
    expect((await checkpoints.list(owner, id)).map(({ name }) => name)).toEqual(["long"]);
    await checkpoints.create(owner, id, { name: "last", ttlMs: 1, stop: true });
    await clock.advance(1);
    await checkpoints.expire();
    expect((await checkpoints.list(owner, id)).map(({ name }) => name)).toEqual(["last", "long"]);
    expect(await rejection(checkpoints.remove(owner, id, "last"))).toMatchObject({ reason: "checkpoint_in_use" });
    expect((await checkpoints.resume(owner, id)).state).toBe("ready");
  });

  it("that cannot be stored leaves the sandbox running, even if it was to stop", async () => {
    const node = await setUp();
    const { checkpoints, owner, id, write, read, home } = node;
    await write("kept");
    mkdirSync(join(home, "store"), { recursive: true });
    writeFileSync(join(home, "store/chunks"), "in the way");
    for (const stop of [false, true]) {
      await rejection(checkpoints.create(owner, id, { stop }));
      expect(node.get(id).state).toBe("ready");
      expect(await read()).toBe("kept");
    }
    expect(readdirSync(join(home, "checkpoints"))).toEqual([]);
    rmSync(join(home, "store/chunks"));
    expect((await checkpoints.pause(owner, id)).state).toBe("paused");
  });

  it("is deleted with its sandbox", async () => {
    const { checkpoints, owner, id, sandboxes, home } = await setUp();
    await checkpoints.create(owner, id, {});
    await sandboxes.remove(owner, id);
    expect(globSync(`${home}/store/{states,checkpoints}/**/*.{json,state}`)).toEqual([]);
    expect(readdirSync(join(home, "checkpoints"))).toEqual([]);
  });

  it("is invisible to other tenants, which cannot create sandboxes from it either", async () => {
    const { checkpoints, forks, owner, id, principal } = await setUp();
    const { id: checkpoint } = await checkpoints.create(owner, id, {});
    const otherTenant = principal({ tenant: "others" });
    for (const refused of [
      checkpoints.list(otherTenant, id),
      checkpoints.create(otherTenant, id, {}),
      forks.fork(otherTenant, id, {}),
      checkpoints.rollback(otherTenant, id, {}),
      forks.createFrom(otherTenant, {}, checkpoint),
    ])
      expect((await rejection(refused)).code).toBe("not_found");
  });
});

describe("a sandbox that does not run", () => {
  it.each(["paused", "stopped"] as const)(
    "because it is %s is not restored for a caller without access",
    async (state) => {
      const { checkpoints, locator, authenticator, records, sandboxes, provider, owner, principal, id } = await setUp();
      const { token } = await sandboxes.create(principal(), { provider: "mock" });
      await checkpoints.pause(owner, id);
      records.change(id, { state });
      for (const outsider of [principal({ tenant: "others" }), authenticator.authenticate(token ?? "")]) {
        await locator.claim(outsider, id, { purpose: "use", readOnly: true });
        const onWaiting = () => expect.unreachable("it is being restored");
        const refused = locator.bring(outsider, id, { takeover: true, onWaiting });
        expect((await rejection(refused)).code).toBe("not_found");
        expect([records.get(id)?.state, provider.size]).toEqual([state, 1]);
      }
    },
  );
});

describe("a sandbox whose newest checkpoint is damaged", () => {
  it("is restored from the one before, and the rollback is reported", async () => {
    const { checkpoints, owner, id, write, read, chunks, damageNewest, errors, get, kinds } = await setUp();
    await write("older");
    const { id: older } = await checkpoints.create(owner, id, {});
    const known = chunks();
    await write("newer and longer than before");
    await checkpoints.pause(owner, id);
    damageNewest(known);
    await checkpoints.resume(owner, id);
    expect(await read()).toBe("older");
    expect(errors.map(({ reason }) => reason)).toEqual(["checkpoint_damaged"]);
    expect(get(id).rolledBackTo).toMatchObject({ checkpoint: older });
    expect(kinds()).toContain("sandbox.rolled_back");
  });

  it("stays paused if there is no earlier one", async () => {
    const { checkpoints, owner, id, damageNewest, get } = await setUp();
    await checkpoints.pause(owner, id);
    damageNewest(new Set());
    expect(await rejection(checkpoints.resume(owner, id))).toMatchObject({ reason: "checkpoint_damaged" });
    expect(get(id).state).toBe("paused");
  });
});

describe("an updated sandbox", () => {
  it("is saved with its new name and lifetimes", async () => {
    const { checkpoints, sandboxes, ownership, owner, id } = await setUp();
    await checkpoints.pause(owner, id);
    await sandboxes.update(owner, id, { name: "renamed", ttlMs: 60_000 });
    expect((await ownership.peek(id))?.record).toMatchObject({ name: "renamed", ttlMs: 60_000, state: "paused" });
  });
});

describe("a fork", () => {
  it("counts towards the quota before any instance is created", async () => {
    const node = await setUp();
    const limited = node.principal({ quota: { maxSandboxes: 2 } });
    const { id } = await node.sandboxes.create(limited, { provider: "mock" });
    expect(await rejection(node.forks.fork(limited, id, { count: 2 }))).toMatchObject({
      code: "resource_exhausted",
      reason: "quota_exceeded",
    });
    expect(await node.forks.fork(limited, id, {})).toHaveLength(1);
  });

  it("creates all requested sandboxes, or none", async () => {
    const provider = new MockProvider();
    const node = await setUp(provider);
    await node.write("kept");
    provider.faults.restoreFailure = SandboxError.fromFields({ code: "internal", reason: "no", message: "no" });
    await rejection(node.forks.fork(node.owner, node.id, { count: 3 }));
    delete provider.faults.restoreFailure;
    expect(node.records.live().map(({ id }) => id)).toEqual([node.id]);
    expect(provider.size).toBe(1);
    expect(await node.read()).toBe("kept");
  });
});

describe("a sandbox that is rolled back", () => {
  it("keeps running if the checkpoint is damaged or unknown", async () => {
    const { checkpoints, owner, id, write, read, damageNewest, get } = await setUp();
    await write("now");
    await checkpoints.create(owner, id, {});
    damageNewest(new Set());
    await rejection(checkpoints.rollback(owner, id, {}));
    await rejection(checkpoints.rollback(owner, id, { checkpoint: "none-such" }));
    expect(get(id)).toMatchObject({ state: "ready", rolledBackTo: null });
    expect(await read()).toBe("now");
  });

  it("is restored only on a node that meets the checkpoint's requirements", async () => {
    const provider = new MockProvider();
    const { checkpoints, owner, id, get } = await setUp(provider);
    await checkpoints.pause(owner, id);
    provider.faults.release = "another";
    expect(await rejection(checkpoints.resume(owner, id))).toMatchObject({
      code: "failed_precondition",
      reason: "incompatible_node",
    });
    expect(get(id).state).toBe("paused");
    delete provider.faults.release;
    expect((await checkpoints.resume(owner, id)).state).toBe("ready");
  });
});

describe("a paused sandbox that expires", () => {
  it("is destroyed with its checkpoints, unless its onExpiry is pause", async () => {
    const { get, sandboxes, checkpoints, registry, locator, clock, owner, ownership } = await setUp();
    const created = await Promise.all(
      (["destroy", "pause"] as const).map((onExpiry) =>
        sandboxes.create(owner, { provider: "mock", ttlMs: 3_600_000, onExpiry }),
      ),
    );
    for (const { id } of created) await checkpoints.pause(owner, id);
    await expireAtRest({ registry, sandboxes, locator, clock });
    expect(created.map(({ id }) => get(id).state)).toEqual(["paused", "paused"]);
    await clock.advance(7_200_000);
    await expireAtRest({ registry, sandboxes, locator, clock });
    expect(created.map(({ id }) => get(id).state)).toEqual(["destroyed", "paused"]);
    const saved = await Promise.all(created.map(({ id }) => ownership.peek(id)));
    expect(saved.map((each) => each !== undefined)).toEqual([false, true]);
  });
});

describe("a sandbox with onExpiry pause", () => {
  it("is saved instead of destroyed when it expires", async () => {
    const { create, get, owner, checkpoints, clock } = await setUp();
    const { id } = await create({ ttlMs: 50, onExpiry: "pause" });
    await clock.advance(50);
    await expect.poll(() => get(id).state).toBe("paused");
    expect(await checkpoints.list(owner, id)).toHaveLength(1);
  });
});

describe("a sandbox whose checkpoints save only files", () => {
  const setUpFiles = async () => {
    const parts = await setUp(new MockProvider({ checkpoint: "filesystem" }));
    await parts.write("kept");
    const process = await parts.open(parts.id).start({ command: "sleep 100" });
    return { ...parts, process: process.id };
  };
  const lost = { code: "gone", reason: "process_lost" };

  it("has fidelity filesystem, and so have its checkpoints", async () => {
    const { checkpoints, get, owner, id } = await setUpFiles();
    expect(get(id).fidelity).toBe("filesystem");
    expect((await checkpoints.create(owner, id, {})).fidelity).toBe("filesystem");
  });

  it("keeps its files through a pause, and reports its processes as lost", async () => {
    const { checkpoints, open, owner, id, read, process } = await setUpFiles();
    await checkpoints.pause(owner, id);
    await checkpoints.resume(owner, id);
    expect(await read()).toBe("kept");
    expect(await rejection(open(id).process(process))).toMatchObject(lost);
    expect(await rejection(open(id).attach(process, 0))).toMatchObject(lost);
  });

  it("keeps its processes when it is forked, and the fork has none", async () => {
    const { forks, open, owner, id, read, process } = await setUpFiles();
    const [fork] = await forks.fork(owner, id, {});
    expect(await read(fork?.id)).toBe("kept");
    expect(await rejection(open(fork?.id ?? "").process(process))).toMatchObject(lost);
    expect((await open(id).process(process)).isRunning).toBe(true);
  });
});
