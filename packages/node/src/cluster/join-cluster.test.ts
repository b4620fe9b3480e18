import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { FakeClock, MemoryStore, rejection } from "@sandpiper/core/testing";
import { createSandboxId } from "@sandpiper/protocol";
import { beforeEach, describe, expect, it } from "vitest";
import { SandboxTokens } from "../auth/sandbox-tokens.ts";
import { ScratchHome } from "../testing/scratch-home.ts";
import { ClusterSecret } from "./cluster-secret.ts";
import { joinCluster } from "./join-cluster.ts";
import { openNodeId } from "./node-id.ts";

const clock = new FakeClock();
let store: MemoryStore;
let homes: ScratchHome[];

beforeEach(() => {
  store = new MemoryStore();
  homes = [new ScratchHome(), new ScratchHome()];
});

function enter(node: number, configured: string | null = null) {
  return joinCluster({ store, clock, secret: new ClusterSecret({ home: homeOf(node), configured }) });
}

const homeOf = (node: number) => (homes[node] as ScratchHome).path;
const secretFile = (node: number) => join(homeOf(node), "cluster-secret");

describe("a cluster", () => {
  it("is created by its first node, which stores the secret only in its home, and stays the same after a restart", async () => {
    const created = await enter(0);
    expect(statSync(secretFile(0)).mode & 0o777).toBe(0o600);
    expect(await enter(0)).toEqual(created);
    const stored = Buffer.from((await store.get("cluster.json"))?.bytes ?? []).toString();
    expect(stored).toContain(created.id);
    expect(stored).not.toContain(readFileSync(secretFile(0), "utf8").trim());
  });

  it("is joined with its secret from a file or the configuration, and signs the same tokens on all nodes", async () => {
    const first = await enter(0);
    const secret = readFileSync(secretFile(0), "utf8").trim();
    const id = createSandboxId();
    const token = new SandboxTokens(first.keyring.keys("sandbox tokens")).tokenOf(id);
    const second = await enter(1, secret);
    expect(new SandboxTokens(second.keyring.keys("sandbox tokens")).verify(token)).toBe(id);
    writeFileSync(secretFile(1), `${secret}\n`);
    expect(await enter(1)).toEqual(first);
  });

  it("refuses a node without its secret, which leaves neither a secret nor a change behind", async () => {
    await enter(0);
    const before = await store.get("cluster.json");
    expect(await rejection(enter(1))).toMatchObject({ code: "failed_precondition", reason: "no_cluster_secret" });
    expect(existsSync(secretFile(1))).toBe(false);
    const wrong = await rejection(enter(1, "quite another secret"));
    expect(wrong).toMatchObject({ code: "failed_precondition", reason: "wrong_cluster_secret" });
    expect(JSON.stringify(wrong) + String(wrong)).not.toContain("quite another secret");
    expect((await store.get("cluster.json"))?.tag).toBe(before?.tag);
  });

  it("is created once if two nodes start at the same time, with the same or different secrets", async () => {
    const both = await Promise.all([enter(0, "a shared cluster secret"), enter(1, "a shared cluster secret")]);
    expect(both[0]).toEqual(both[1]);
    store = new MemoryStore();
    const outcomes = await Promise.allSettled([enter(0), enter(1)]);
    expect(outcomes.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    const loser = outcomes.findIndex(({ status }) => status === "rejected");
    expect(existsSync(secretFile(loser)), "its useless secret").toBe(false);
  });

  it("is neither joined nor replaced if its object in the store is damaged", async () => {
    await store.put("cluster.json", Buffer.from("{"));
    expect(await rejection(enter(0))).toMatchObject({ code: "data_loss", reason: "object_damaged" });
    expect(Buffer.from((await store.get("cluster.json"))?.bytes ?? []).toString()).toBe("{");
  });

  it("is not created anew in a store that holds the objects of another one whose identity is missing", async () => {
    await enter(0);
    await store.put("locks/a.lock", Buffer.from("signed by a node"));
    await store.delete("cluster.json");
    expect(await rejection(enter(0))).toMatchObject({
      reason: "cluster_identity_missing",
      details: { key: "locks/a.lock" },
    });
    expect(await rejection(enter(1))).toMatchObject({ reason: "cluster_identity_missing" });
    expect(existsSync(secretFile(1))).toBe(false);
    expect(await store.get("cluster.json")).toBeUndefined();
  });

  it("is not joined with a truncated secret file", async () => {
    writeFileSync(secretFile(0), "short\n");
    expect(await rejection(enter(0))).toMatchObject({ code: "data_loss", reason: "secret_corrupt" });
  });

  it("is joined during a replacement of its secret with either secret, and not with an invalid signature", async () => {
    await enter(0, "the earlier secret");
    const home = homeOf(1);
    const both = new ClusterSecret({ home, configured: "the next secret!", accepted: ["the earlier secret"] });
    expect((await joinCluster({ store, clock, secret: both })).keyring.ids).toHaveLength(2);
    writeFileSync(secretFile(1), "the next secret!\nthe earlier secret\n");
    expect((await enter(1)).keyring.ids).toHaveLength(2);
    expect(await rejection(enter(1, "the next secret!"))).toMatchObject({ reason: "wrong_cluster_secret" });
    const { bytes } = (await store.get("cluster.json")) ?? { bytes: new Uint8Array() };
    const text = Buffer.from(bytes).toString();
    await store.put("cluster.json", Buffer.from(text.replace(/"createdAt":"\d{4}/, '"createdAt":"1999')));
    expect(await rejection(enter(0, "the earlier secret"))).toMatchObject({ reason: "object_forged" });
  });

  it("is refused with instructions if an earlier version created it without a signature", async () => {
    const content = { id: crypto.randomUUID(), createdAt: new Date().toISOString(), check: "x" };
    await store.put("cluster.json", Buffer.from(JSON.stringify(content)));
    expect(await rejection(enter(0, "a secret of the cluster"))).toMatchObject({
      reason: "store_not_migrated",
      hint: expect.stringContaining("sandpiper store migrate"),
    });
  });
});

describe("a node's id", () => {
  it("stays the same for a home, and differs between homes", () => {
    const id = openNodeId(homeOf(0));
    expect(openNodeId(homeOf(0))).toBe(id);
    expect(openNodeId(homeOf(1))).not.toBe(id);
  });

  it("is refused if its file is damaged", () => {
    writeFileSync(join(homeOf(0), "node-id"), "x");
    expect(() => openNodeId(homeOf(0))).toThrow(
      expect.objectContaining({ code: "data_loss", reason: "node_id_corrupt" }),
    );
  });

  it.each([
    ["format", (text: string) => text.replace('"format":1', '"format":2')],
    ["signature", (text: string) => text.replace("\nsandpiper-1 ", "\nsandpiper-2 ")],
  ])("of a newer version, by its %s, refuses this version and stays unchanged", async (_, change) => {
    await enter(0);
    const before = Buffer.from((await store.get("cluster.json"))?.bytes ?? []).toString();
    expect(change(before)).not.toBe(before);
    await store.put("cluster.json", Buffer.from(change(before)));
    expect(await rejection(enter(0))).toMatchObject({
      code: "failed_precondition",
      reason: "store_too_new",
      details: { found: 2, known: 1 },
      hint: expect.stringContaining("start the newer version"),
    });
    expect(Buffer.from((await store.get("cluster.json"))?.bytes ?? []).toString()).toBe(change(before));
  });
});
