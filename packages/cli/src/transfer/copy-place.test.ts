import { describe, expect, it } from "vitest";
import { parseCopy, parsePlace } from "./copy-place.ts";

describe("one end of a copy", () => {
  it.each([
    ["box:/tmp/x", "box", "/tmp/x"],
    ["box:x:y", "box", "x:y"],
    ["box:", "box", "."],
    ["/a:b", undefined, "/a:b"],
    ["./a:b", undefined, "./a:b"],
    ["plain", undefined, "plain"],
    [":x", undefined, ":x"],
  ])("%s", (text, sandbox, path) => {
    expect(parsePlace(text)).toEqual({ sandbox, path });
  });
});

describe("a copy", () => {
  it("goes into or out of the sandbox that is named", () => {
    expect(parseCopy("x", "box:y")).toEqual({ direction: "in", sandbox: "box", from: "x", to: "y" });
    expect(parseCopy("box:y", "x")).toEqual({ direction: "out", sandbox: "box", from: "y", to: "x" });
  });

  it("has exactly one end in a sandbox", () => {
    expect(() => parseCopy("x", "y")).toThrow("neither x nor y is in a sandbox");
    expect(() => parseCopy("a:x", "b:y")).toThrow("cannot copy from sandbox to sandbox");
  });
});
