import { describe, expect, it } from "vitest";
import { parseEnv } from "./env-option.ts";

describe("--env", () => {
  it("sets variables, values with equals signs and empty ones included", () => {
    expect(parseEnv(["A=1", "B=x=y", "C="], {})).toEqual({ A: "1", B: "x=y", C: "" });
  });

  it("hands on the caller's value when only a name is given", () => {
    expect(parseEnv(["TOKEN"], { TOKEN: "secret", OTHER: "no" })).toEqual({ TOKEN: "secret" });
  });

  it("lets the later of two values win", () => {
    expect(parseEnv(["A=1", "A=2"], {})).toEqual({ A: "2" });
  });

  it("refuses a name that the caller has not set, instead of passing nothing", () => {
    expect(() => parseEnv(["TOKEN"], {})).toThrow("TOKEN is not set here");
  });

  it("refuses a value without a name", () => {
    expect(() => parseEnv(["=1"], {})).toThrow("the name is missing");
  });
});
