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

  it("is nothing after the last operand, or for an operand without names", () => {
    expect(nextOperand({ name: "get", operands: ["SANDBOX"], options: [] }, ["a"])).toBeUndefined();
    expect(nextOperand({ name: "pool set", operands: ["COUNT"], options: [] }, [])).toBeUndefined();
  });
});
