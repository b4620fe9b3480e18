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
  ])("%s means %s", (text, id) => {
    expect(pick("sandbox", text, items).id).toBe(id);
  });

  it("is somebody's name before it is the beginning of an id", () => {
    expect(pick("sandbox", "aaaa", items).id).toBe("cccc-4");
  });

  it("that several have is refused with their ids", () => {
    expect(() => pick("sandbox", "twin", items)).toThrow('"twin" could be 2 of them: b, bb-3');
    expect(() => pick("sandbox", "aa", items)).toThrow("aaaa-1, aaab-2");
  });

  it("that nobody has is said with how to list what there is", () => {
    for (const text of ["nobody", ""]) {
      expect(() => pick("process", text, items)).toThrow(
        expect.objectContaining({ reason: "no_such_process", hint: expect.stringContaining("sandpiper ps") }),
      );
    }
  });
});
