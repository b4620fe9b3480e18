import type { ObjectStore } from "@sandpiper/core";
import { MemoryStore, rejection } from "@sandpiper/core/testing";
import { describe, expect, it } from "vitest";
import { checkConditions } from "./check-conditions.ts";

type CheckedStore = Pick<ObjectStore, "label" | "put" | "delete">;

describe("the check for conditional writes", () => {
  const store = new MemoryStore();
  const { label } = store;
  const sound: CheckedStore = {
    label,
    put: (...args) => store.put(...args),
    delete: (...args) => store.delete(...args),
  };

  it("accepts a store that honors all conditions, and leaves no object behind", async () => {
    await checkConditions(sound);
    expect(await Array.fromAsync(store.list(""))).toEqual([]);
  });

  it.each<[string, CheckedStore]>([
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
  ])("refuses a store that ignores %s", async (condition, lax) => {
    const error = await rejection(checkConditions(lax));
    expect(error).toMatchObject({ code: "failed_precondition", reason: "store_lacks_conditions" });
    expect(error.message).toContain(condition);
    expect(await Array.fromAsync(store.list(""))).toEqual([]);
  });
});
