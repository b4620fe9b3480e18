import { routes } from "@sandpiper/protocol";
import { describe, expect, it } from "vitest";
import { handlerGroups, handlers } from "./handlers.ts";

describe("the handlers", () => {
  const named = Object.values(handlerGroups).flatMap((group) => Object.keys(group));

  it("exist for exactly the operations of the table", () => {
    expect(Object.keys(handlers).sort()).toEqual(Object.keys(routes).sort());
  });

  it("belong to one resource each", () => {
    expect(named.toSorted()).toEqual([...new Set(named)].sort());
    expect(named.toSorted()).toEqual(Object.keys(handlers).sort());
  });
});
