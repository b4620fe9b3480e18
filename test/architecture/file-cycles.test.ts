import { expect, it } from "vitest";
import { findCycles } from "./cycles.ts";
import { readImports } from "./imports.ts";

it("no import cycles exist between files", () => {
  expect(findCycles(readImports())).toEqual([]);
});

it("the search finds every import cycle", () => {
  const imports = ["ab", "ad", "bc", "cb", "ce", "de", "ed"].map(([from = "", to = ""]) => ({ from, to }));
  expect(findCycles(imports)).toEqual(["b → c → b", "e → d → e"]);
});
