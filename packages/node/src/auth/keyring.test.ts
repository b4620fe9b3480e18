import { describe, expect, it } from "vitest";
import { Keyring } from "./keyring.ts";

const ring = (...secrets: [string, ...string[]]) => new Keyring({ secrets, salt: "a-cluster" });

describe("the keyring", () => {
  it("derives the same key on every node with the secret", () => {
    expect(ring("one secret").key("chunks", { tenant: "a" })).toEqual(
      ring("one secret").key("chunks", { tenant: "a" }),
    );
  });

  it("derives a different key for each purpose, tenant, cluster and secret", () => {
    const keys = [
      ring("one secret").key("chunks"),
      ring("one secret").key("states"),
      ring("one secret").key("chunks", { tenant: "a" }),
      ring("one secret").key("chunks", { tenant: "b" }),
      ring("another secret").key("chunks"),
      new Keyring({ secrets: ["one secret"], salt: "another-cluster" }).key("chunks"),
    ];
    expect(new Set(keys.map((key) => key?.toString("hex"))).size).toBe(keys.length);
  });

  it("uses the first secret for new data, and the others by their ids", () => {
    const old = ring("old secret");
    const both = ring("new secret", "old secret");
    expect(both.currentId).toBe(ring("new secret").currentId);
    expect(both.ids).toEqual([both.currentId, old.currentId]);
    expect(both.key("chunks", { secretId: old.currentId })).toEqual(old.key("chunks"));
    expect(old.key("chunks", { secretId: both.currentId })).toBe(undefined);
  });
});
