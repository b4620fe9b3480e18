import { describe, expect, it } from "vitest";
import type { Syntax } from "../command/syntax.ts";
import { nextOperand } from "./next-operand.ts";

const syntax: Syntax = {
  name: "kill",
  operands: ["SANDBOX", "PROCESS…"],
  options: [
    { name: "signal", short: "s", value: "NAME", summary: "" },
    { name: "json", summary: "" },
  ],
};

describe("the next word of a command line", () => {
  it.each([
    [[], { kind: "sandbox", sandbox: undefined }],
    [["--json", "-s", "TERM"], { kind: "sandbox", sandbox: undefined }],
    [["--signal=TERM", "a"], { kind: "process", sandbox: "a" }],
    [["a", "one", "two"], { kind: "process", sandbox: "a" }],
    [["a", "--signal"], undefined],
    [["a", "--"], undefined],
  ])("after %j is %j", (words, expected) => {
    expect(nextOperand(syntax, words)).toEqual(expected);
  });

  it("is a request of the named sandbox for net approve", () => {
    const approve: Syntax = { name: "net approve", operands: ["SANDBOX", "REQUEST…"], options: [] };
    expect(nextOperand(approve, ["a", "pypi.org"])).toEqual({ kind: "request", sandbox: "a" });
  });

  it("is nothing after the last operand, or for an operand without names", () => {
    expect(nextOperand({ name: "get", operands: ["SANDBOX"], options: [] }, ["a"])).toBeUndefined();
    expect(nextOperand({ name: "pool set", operands: ["COUNT"], options: [] }, [])).toBeUndefined();
  });
});
