import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SandboxResource } from "@sandpiper/protocol";
import { MockProvider } from "@sandpiper/providers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parseNodeConfig } from "../config/load-node-config.ts";
import { type StoreNode, StoreNodes } from "../handoff/testing/store-nodes.ts";
import { hashesOf } from "../store/checkpoint-files.ts";
import { openManifest } from "../store/checkpoint-manifest.ts";
import { chunksIn } from "../store/chunked-files.ts";
import { collectGarbage } from "../store/collect-garbage.ts";
import { createBackup } from "./create-backup.ts";
import { restoreBackup } from "./restore-backup.ts";
import { verifyBackup } from "./verify-backup.ts";

let nodes: StoreNodes;
let a: StoreNode;
let scratch: string;

beforeEach(async () => {
  scratch = mkdtempSync(join(tmpdir(), "sandpiper-backup-"));
  nodes = new StoreNodes();
  a = await nodes.start("a", new MockProvider());
});

afterEach(async () => {
  await nodes[Symbol.asyncDispose]();
  rmSync(scratch, { recursive: true, force: true });
});

const configOf = (store: string) =>
  parseNodeConfig({ home: join(scratch, "home"), store, clusterSecret: "s".repeat(32) });
const back = (name: string) =>
  createBackup(configOf(a.store.label), { place: join(scratch, name), includesSecret: false });
const restored = (name: string) => `file://${join(scratch, name)}`;

async function run(node: StoreNode, id: string, command: string): Promise<string> {
  const response = await node.request("POST", `/v1/sandboxes/${id}/exec`, { json: { command } });
  const body = (await response.json()) as { readonly stdout: string };
  expect(response.status, JSON.stringify(body)).toBe(200);
  return body.stdout;
}

const save = (id: string, name?: string) =>
  a.request("POST", `/v1/sandboxes/${id}/checkpoints`, { json: name === undefined ? {} : { name } });

/** Deletes all chunks that no manifest refers to, as if the grace period had passed. No save may be in progress. */
async function collectAll({ store, keyring }: StoreNode): Promise<number> {
  const referenced = async function* () {
    for await (const { key } of store.list("checkpoints/")) {
      const stored = await store.get(key);
      const opened = stored && openManifest(keyring, key, stored.bytes);
      if (opened !== undefined && "manifest" in opened) yield* hashesOf(opened.manifest.files);
    }
  };
  const options = { store, chunks: chunksIn(store), graceMs: -60_000, referenced };
  return (await collectGarbage(options)).deletedChunks;
}

describe("a backup of a store", () => {
  it("lets a new cluster continue with the sandboxes, keys and names of the old one", async () => {
    const { id } = await a.create({ name: "kept" });
    await a.create({ name: "unsaved" });
    await run(a, id, "echo saved > file");
    await save(id, "mine");
    await run(a, id, "echo lost > file");
    const index = await back("backup");
    expect(index.sandboxes).toMatchObject([{ id, name: "kept", tenant: "mine" }]);
    expect(index.leftOut).toMatchObject([{ name: "unsaved", why: "it has no checkpoint" }]);
    const key = await a.keyOf("mine");
    await a.crash();

    const target = restored("new");
    await restoreBackup(configOf(target), { place: join(scratch, "backup") });
    const b = await nodes.start("b", new MockProvider(), { store: target });
    expect(await run(b, id, "cat file")).toBe("saved\n");
    const taken = await b.request("POST", "/v1/sandboxes", { json: { provider: "mock", name: "kept" } });
    expect(taken.status).toBe(409);
    // The key is newer than the backup.
    expect((await b.request("GET", "/v1/sandboxes", { as: key })).status).toBe(401);
  });

  it("is accepted by nodes that have seen later keys, leases and states; an old copy of the store is not", async () => {
    const { id } = await a.create();
    await run(a, id, "echo saved > file");
    await save(id);
    await back("backup");
    // Later revisions of the keys, a later epoch, and another state of the sandbox.
    const late = await a.keyOf("mine");
    await a.keyOf("mine");
    await a.drain();
    await run(a, id, "echo later > file");
    await save(id);
    await a.crash();

    const target = restored("new");
    await restoreBackup(configOf(target), { place: join(scratch, "backup"), clock: nodes.clock });
    const again = await nodes.start("a", new MockProvider(), { store: target });
    expect(await run(again, id, "cat file")).toBe("saved\n");
    expect((await again.request("GET", "/v1/sandboxes", { as: late })).status).toBe(401);
    await run(again, id, "echo more > file");
    expect((await again.request("POST", `/v1/sandboxes/${id}/checkpoints`, { json: {} })).status).toBe(201);
  });

  it("can be restored whenever it is taken while nodes save, delete, destroy and collect garbage", async () => {
    const kept = await a.create({ name: "kept" });
    await run(a, kept.id, "echo saved > file");
    await save(kept.id, "mine");
    let isEnding = false;
    let collected = 0;
    const churn = async () => {
      const living: SandboxResource[] = [];
      for (let round = 0; !isEnding || round < 10; round += 1) {
        const one = await a.create();
        living.push(one);
        for (const name of ["x", "y"]) {
          await run(a, one.id, `echo ${crypto.randomUUID()} > file`);
          await save(one.id, name);
        }
        await a.request("DELETE", `/v1/sandboxes/${one.id}/checkpoints/x`);
        await save(kept.id, `round-${round}`);
        if (round > 0) await a.request("DELETE", `/v1/sandboxes/${kept.id}/checkpoints/round-${round - 1}`);
        const oldest = living.length > 3 ? living.shift() : undefined;
        if (oldest !== undefined) await a.request("DELETE", `/v1/sandboxes/${oldest.id}`);
        collected += await collectAll(a);
      }
    };
    const churning = churn();
    const names = ["one", "two", "three", "four"];
    const indexes = [];
    for (const name of names) indexes.push(await back(name));
    isEnding = true;
    await churning;
    expect(collected).toBeGreaterThan(0);
    for (const [at, name] of names.entries()) {
      const verified = await verifyBackup(configOf(a.store.label), { place: join(scratch, name) });
      expect(verified).toEqual(indexes[at]);
      expect(verified.damaged).toEqual([]);
      expect(verified.sandboxes.map(({ id }) => id)).toContain(kept.id);
    }
  });
});
