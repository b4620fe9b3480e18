import { describe, expect, it } from "vitest";
import { pick } from "./pick.ts";

const items = [
  { id: "aaaa-1", name: "first" },
  { id: "aaab-2", name: null },
  { id: "b", name: "twin" },
  { id: "bb-3", name: "twin" },
  { id: "cccc-4", name: "aaaa" },
];

describe("a name on the command line", () => {
  it.each([
    ["aaaa-1", "aaaa-1"],
    ["first", "aaaa-1"],
    ["aaab", "aaab-2"],
    ["b", "b"],
  ])("%s resolves to %s", (text, id) => {
    expect(pick("sandbox", text, items).id).toBe(id);
  });

  it("is a name before it is the beginning of an ID", () => {
    expect(pick("sandbox", "aaaa", items).id).toBe("cccc-4");
  });

  it("that matches several is refused with their IDs", () => {
    expect(() => pick("sandbox", "twin", items)).toThrow('sandbox "twin" is ambiguous, with 2 matches: b, bb-3');
    expect(() => pick("sandbox", "aa", items)).toThrow("aaaa-1, aaab-2");
  });

  it("that matches none is refused with the verb that lists them", () => {
    for (const text of ["missing", ""]) {
      expect(() => pick("process", text, items)).toThrow(
        expect.objectContaining({ reason: "no_such_process", hint: expect.stringContaining("sandpiper ps") }),
      );
    }
  });
});
