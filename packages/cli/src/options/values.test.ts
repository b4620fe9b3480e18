import { languages } from "@sandpiper/protocol";
import { describe, expect, it } from "vitest";
import { Arguments } from "../command/arguments.ts";
import { defaultLanguageOption, languageOption } from "./shared-options.ts";
import { parseDuration, parseEnv, parseLabelFilters, parseLabels, parseNumber, parseSizeMib } from "./values.ts";

const given = (name: string, ...texts: string[]) => new Arguments([], new Map([[name, texts]]));
const nothing = new Arguments([], new Map());

describe("a number option", () => {
  it("is undefined when it is not given", () => {
    expect(parseNumber(nothing, "cpus")).toBeUndefined();
  });

  it("takes whole numbers, or as many decimals as allowed", () => {
    expect(parseNumber(given("cpus", "512"), "cpus")).toBe(512);
    expect(parseNumber(given("cpus", "0.5"), "cpus", { decimals: 2 })).toBe(0.5);
  });

  it.each(["", "0", "-1", "1.5", "1e3", "0x10", "512m", " 1", "Infinity", "NaN"])("refuses %j", (text) => {
    const message = `invalid value "${text}" for --cpus: expected a whole number above 0`;
    expect(() => parseNumber(given("cpus", text), "cpus")).toThrow(message);
  });

  it("refuses more decimals than allowed", () => {
    expect(() => parseNumber(given("cpus", "0.125"), "cpus", { decimals: 2 })).toThrow("at most 2 decimals");
  });
});

describe("a duration option", () => {
  it.each([
    ["90", 90_000],
    ["0.5", 500],
    ["10m", 600_000],
    ["1.5h", 5_400_000],
    ["7d", 604_800_000],
  ])("reads %s as %i ms", (text, durationMs) => {
    expect(parseDuration(given("ttl", text), "ttl")).toBe(durationMs);
  });

  it.each(["0", "m", "1w", "ten", "1h30m", "1e9"])("refuses %s", (text) => {
    const message = `invalid value "${text}" for --ttl: expected a duration`;
    expect(() => parseDuration(given("ttl", text), "ttl")).toThrow(message);
  });

  it("is undefined when it is not given", () => {
    expect(parseDuration(nothing, "ttl")).toBeUndefined();
  });
});

describe("a size option", () => {
  it.each([
    ["512", 512],
    ["512M", 512],
    ["512m", 512],
    ["512MiB", 512],
    ["2G", 2048],
    ["1.5g", 1536],
    ["1TiB", 1_048_576],
  ])("reads %s as %i MiB", (text, sizeMib) => {
    expect(parseSizeMib(given("memory", text), "memory")).toBe(sizeMib);
  });

  it.each(["", "0", "0M", "512MB", "1K", "1.5", "0.0001G", "G", "-1G", "1 G"])("refuses %j", (text) => {
    const message = `invalid value "${text}" for --memory: expected a size of whole MiB`;
    expect(() => parseSizeMib(given("memory", text), "memory")).toThrow(message);
  });

  it("is undefined when it is not given", () => {
    expect(parseSizeMib(nothing, "memory")).toBeUndefined();
  });
});

describe("--language", () => {
  it("takes the languages of the protocol", () => {
    expect(languageOption.choices).toEqual(languages);
    expect(defaultLanguageOption.choices).toEqual(languages);
  });
});

describe("--env", () => {
  const parse = (texts: readonly string[], env: NodeJS.ProcessEnv = {}) => parseEnv(given("env", ...texts), env);

  it("sets variables, including empty values and values with equals signs", () => {
    expect(parse(["A=1", "B=x=y", "C="])).toEqual({ A: "1", B: "x=y", C: "" });
  });

  it("copies the caller's value when only a name is given", () => {
    expect(parse(["TOKEN"], { TOKEN: "secret", OTHER: "no" })).toEqual({ TOKEN: "secret" });
  });

  it("lets the later of two values win", () => {
    expect(parse(["A=1", "A=2"])).toEqual({ A: "2" });
  });

  it("refuses a name that the caller has not set, instead of passing nothing", () => {
    expect(() => parse(["TOKEN"])).toThrow("TOKEN is not set in your environment");
  });

  it("refuses a value without a name", () => {
    expect(() => parse(["=1"])).toThrow("--env =1: missing name");
  });
});

describe("--label", () => {
  it("splits at the first equals sign", () => {
    expect(parseLabels(["a=1", "b=x=y", "c"])).toEqual({ a: "1", b: "x=y", c: "" });
  });

  it("without a value matches every value", () => {
    expect(parseLabelFilters(["a=", "b"])).toEqual({ a: "", b: null });
  });

  it("needs a key", () => {
    expect(() => parseLabels(["=1"])).toThrow("--label =1: missing key");
  });
});
