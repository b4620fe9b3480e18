import { describe, expect, it } from "vitest";
import { parseArguments } from "../command/arguments.ts";
import { parseDuration } from "./duration-option.ts";

const verb = { name: "create", options: [{ name: "ttl", value: "TIME", summary: "" }] };
const parse = (...argv: string[]) => parseDuration(parseArguments(verb, argv), "ttl");

describe("a length of time", () => {
  it.each([
    ["90", 90_000],
    ["0.5", 500],
    ["10m", 600_000],
    ["1.5h", 5_400_000],
    ["7d", 604_800_000],
  ])("%s is %i ms", (text, durationMs) => {
    expect(parse("--ttl", text)).toBe(durationMs);
  });

  it.each(["0", "m", "1w", "ten", "1h30m", "1e9"])("is not %s", (text) => {
    expect(() => parse(`--ttl=${text}`)).toThrow(`--ttl ${text} is no length of time`);
  });

  it("need not be given", () => {
    expect(parse()).toBeUndefined();
  });
});
