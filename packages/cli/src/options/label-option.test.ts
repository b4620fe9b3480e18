import { describe, expect, it } from "vitest";
import { parseLabelFilters, parseLabels } from "./label-option.ts";

describe("--label", () => {
  it("splits at the first equals sign", () => {
    expect(parseLabels(["a=1", "b=x=y", "c"])).toEqual({ a: "1", b: "x=y", c: "" });
  });

  it("without a value finds every value", () => {
    expect(parseLabelFilters(["a=", "b"])).toEqual({ a: "", b: null });
  });

  it("needs a key", () => {
    expect(() => parseLabels(["=1"])).toThrow("--label =1: the key is missing");
  });
});
