import { describe, expect, it } from "vitest";
import { Arguments } from "../command/arguments.ts";
import { parseNumber } from "./number-option.ts";

const given = (text: string) => new Arguments([], new Map([["cpus", [text]]]));

describe("a number on the command line", () => {
  it("is undefined when it was not given", () => {
    expect(parseNumber(new Arguments([], new Map()), "cpus")).toBeUndefined();
  });

  it("is whole, or has as many decimals as allowed", () => {
    expect(parseNumber(given("512"), "cpus")).toBe(512);
    expect(parseNumber(given("0.5"), "cpus", { decimals: 2 })).toBe(0.5);
  });

  it.each(["", "0", "-1", "1.5", "1e3", "0x10", "512m", " 1", "Infinity", "NaN"])("is never %j", (text) => {
    expect(() => parseNumber(given(text), "cpus")).toThrow(`--cpus ${text} is not a whole number above 0`);
  });

  it("never has more decimals than allowed", () => {
    expect(() => parseNumber(given("0.125"), "cpus", { decimals: 2 })).toThrow("at most 2 decimals");
  });
});
