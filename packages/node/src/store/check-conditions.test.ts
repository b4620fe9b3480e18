import type { ObjectStore } from "@sandpiper/core";
import { MemoryStore, rejection } from "@sandpiper/core/testing";
import { describe, expect, it } from "vitest";
import { checkConditions } from "./check-conditions.ts";

type Checked = Pick<ObjectStore, "label" | "put" | "delete">;

describe("a store's conditions", () => {
  const store = new MemoryStore();
  const { label } = store;
  const sound: Checked = {
    label,
    put: (...args) => store.put(...args),
    delete: (...args) => store.delete(...args),
  };

  it("are accepted when all of them work, and the check leaves no object behind", async () => {
    await checkConditions(sound);
    expect(await Array.fromAsync(store.list(""))).toEqual([]);
  });

  it.each<[string, Checked]>([
    [
      "If-None-Match",
      {
        ...sound,
        put: (key, bytes, condition) =>
          store.put(key, bytes, condition && "ifAbsent" in condition ? undefined : condition),
      },
    ],
    [
      "If-Match",
      {
        ...sound,
        put: (key, bytes, condition) =>
          store.put(key, bytes, condition && "ifMatch" in condition ? undefined : condition),
      },
    ],
    ["DELETE", { ...sound, delete: (key) => store.delete(key) }],
    [
      "tags",
      { ...sound, put: async (...args) => ((await store.put(...args)) === undefined ? undefined : "always the same") },
    ],
  ])("are missed when a server ignores them: %s", async (what, lax) => {
    const error = await rejection(checkConditions(lax));
    expect(error).toMatchObject({ code: "failed_precondition", reason: "store_lacks_conditions" });
    expect(error.message).toContain(what);
    expect(await Array.fromAsync(store.list(""))).toEqual([]);
  });
});
