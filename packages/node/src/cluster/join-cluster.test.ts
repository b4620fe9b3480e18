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
    const token = new SandboxTokens(first.keys.sandboxTokens).tokenOf(id);
    const second = await enter(1, secret);
    expect(new SandboxTokens(second.keys.sandboxTokens).verify(token)).toBe(id);
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

  it("is not joined with a truncated secret file", async () => {
    writeFileSync(secretFile(0), "short\n");
    expect(await rejection(enter(0))).toMatchObject({ code: "data_loss", reason: "secret_corrupt" });
  });

  it("derives a different key for each purpose", async () => {
    const { keys } = await enter(0);
    expect(keys.sandboxTokens).not.toEqual(keys.nodeProof);
    expect([keys.sandboxTokens.length, keys.nodeProof.length]).toEqual([32, 32]);
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
});
