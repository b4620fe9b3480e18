import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { InstanceSpec } from "@sandpiper/core";
import { createSandboxId, type SandboxId } from "@sandpiper/protocol";
import { beforeEach, describe, expect, it } from "vitest";
import { InstanceStore } from "./instance-store.ts";
import type { ProcessOwner } from "./process-owner.ts";
import { freshDirectory } from "./testing/shared.ts";

const root = freshDirectory("store");
let store: InstanceStore;
beforeEach(() => {
  store = new InstanceStore(root);
});

const createdAt = "2026-01-02T03:04:05.000Z";
const specOf = (id: SandboxId): InstanceSpec => ({
  id,
  rootfs: "host",
  kernel: undefined,
  memoryMib: 1,
  vcpuCount: 1,
  diskMib: 1,
  maxProcesses: 1,
  env: { A: "b" },
  container: undefined,
  vsockCid: 3,
  labels: {},
});

async function add(files: Readonly<Record<string, string>> = {}): Promise<SandboxId> {
  const id = createSandboxId();
  await store.add({ spec: specOf(id), createdAt }, files);
  return id;
}

async function addOwnedBy(owner: ProcessOwner): Promise<SandboxId> {
  const id = createSandboxId();
  await mkdir(store.directory(id));
  await writeFile(join(store.directory(id), "record.json"), JSON.stringify({ spec: specOf(id), createdAt, owner }));
  return id;
}

describe("InstanceStore", () => {
  it("keeps an entry with its files and this program as owner", async () => {
    const id = await add({ "config.json": "{}" });
    expect((await readdir(store.directory(id))).toSorted()).toEqual(["config.json", "record.json"]);
    const entry = await store.read(id);
    expect(entry).toMatchObject({ createdAt, owner: { pid: process.pid }, spec: { id, env: { A: "b" } } });
    expect(await store.list()).toEqual([entry]);
  });

  it("refuses an existing id, and leaves it unchanged", async () => {
    const id = await add({ first: "" });
    await expect(store.add({ spec: specOf(id), createdAt }, {})).rejects.toMatchObject({ code: "already_exists" });
    expect(await readdir(root)).toEqual([id]);
    expect(await readdir(store.directory(id))).toContain("first");
  });

  it("removes an entry, and accepts an unknown id", async () => {
    const id = await add();
    await store.remove(id);
    await store.remove(id);
    expect(await store.read(id)).toBeUndefined();
    expect(await readdir(root)).toEqual([]);
  });

  it("marks an instance that is being removed", async () => {
    const id = await add();
    expect(await store.isRemoved(id)).toBe(false);
    await store.beginRemoval(id);
    expect(await store.isRemoved(id)).toBe(true);
    expect(await store.list()).toHaveLength(1);
    await store.remove(id);
    expect(await store.isRemoved(id)).toBe(true);
    await store.beginRemoval(id);
    expect(await readdir(root)).toEqual([]);
  });

  it("is empty at first", async () => {
    expect(await new InstanceStore(join(root, "not/there")).list()).toEqual([]);
  });

  it("removes unfinished entries of dead programs, and none of the living", async () => {
    const { pid, startTicks } = await store.owner();
    const dead = `${createSandboxId()}~${pid}~${startTicks - 1}`;
    const living = `${createSandboxId()}~${pid}~${startTicks}`;
    await mkdir(join(root, dead));
    await mkdir(join(root, living));
    await store.list();
    expect(await readdir(root)).toEqual([living]);
  });

  it("reports which instance has a damaged record", async () => {
    const id = createSandboxId();
    await mkdir(store.directory(id));
    await writeFile(join(store.directory(id), "record.json"), '{"spec":{}}');
    await expect(store.list()).rejects.toMatchObject({ code: "data_loss", message: expect.stringContaining(id) });
  });
});

describe("claiming an instance", () => {
  it("makes this program its owner when the earlier one has ended", async () => {
    const owner = await store.owner();
    for (const dead of [
      { ...owner, startTicks: owner.startTicks - 1 },
      { ...owner, bootId: "another boot" },
    ]) {
      const id = await addOwnedBy(dead);
      expect((await store.claim(id)).owner).toEqual(owner);
      expect((await store.read(id))?.owner).toEqual(owner);
    }
  });

  it("is refused while the owner is alive", async () => {
    const id = await addOwnedBy(await store.owner());
    await expect(store.claim(id)).rejects.toMatchObject({ code: "failed_precondition", reason: "instance_owned" });
  });

  it("is refused to its owner with the reason, and for an unknown id", async () => {
    const { startTicks, ...rest } = await store.owner();
    const id = await addOwnedBy({ ...rest, startTicks: startTicks - 1 });
    await expect(store.refuse(id)).rejects.toMatchObject({ code: "failed_precondition", reason: "instance_owned" });
    await expect(store.refuse(createSandboxId())).rejects.toMatchObject({ code: "not_found" });
    expect((await store.claim(id)).spec.id).toBe(id);
  });

  it("succeeds for exactly one of many concurrent attempts", async () => {
    const owner = await store.owner();
    const id = await addOwnedBy({ ...owner, startTicks: owner.startTicks - 1 });
    const outcomes = await Promise.allSettled(Array.from({ length: 8 }, () => new InstanceStore(root).claim(id)));
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  });

  it("is refused for an unknown id", async () => {
    await expect(store.claim(createSandboxId())).rejects.toMatchObject({ code: "not_found" });
  });
});
