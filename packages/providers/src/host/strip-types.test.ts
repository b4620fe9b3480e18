import { rejection } from "@sandpiper/protocol/testing";
import { describe, expect, it } from "vitest";
import { stripTypes } from "./strip-types.ts";

describe("removing types", () => {
  it("keeps lines and columns", async () => {
    const code = "type A = 1;\nconst x: number = 1 as number;\nconsole.log(x);";
    const javascript = await stripTypes(code, {});
    expect(javascript.split("\n").map((line) => line.length)).toEqual(code.split("\n").map((line) => line.length));
    expect(javascript).not.toContain("number");
    expect(javascript).toContain("console.log(x);");
  });

  it.each([
    ["invalid", "let x: = 1"],
    ["more than types", "enum Colour { Red }"],
    ["nested too deeply", "(".repeat(300_000)],
  ])("turns code that is %s into a program that reports it and fails", async (_, code) => {
    const program = await stripTypes(code, {});
    expect(program).toMatch(/^console\.error\("SyntaxError: cannot run this code as TypeScript: .+"\);\n/);
    expect(program).toContain("process.exitCode = 1;");
    expect(await stripTypes("1", {})).toBe("1");
  });

  it("ends when its caller aborts, also while it waits for a free thread", async () => {
    const abort = new AbortController();
    const all = Array.from({ length: 6 }, () => rejection(stripTypes("let x: 1;", { signal: abort.signal })));
    abort.abort();
    for (const error of await Promise.all(all)) expect(error).toMatchObject({ code: "canceled" });
    expect(await stripTypes("1", {})).toBe("1");
  });
});
