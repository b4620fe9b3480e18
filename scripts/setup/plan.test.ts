import { describe, expect, it } from "vitest";
import { announce } from "./plan.mjs";

describe("the announcement of set-up", () => {
  it("names what set-up will do and how long it takes", () => {
    const plans = [
      { announcement: { name: "npm packages", seconds: 20 } },
      { announcement: undefined },
      { announcement: { name: "gVisor", seconds: 80 } },
    ];
    expect(announce(plans)).toBe("Set-up: npm packages, gVisor. Takes about 2 minutes on 2 cores, once.");
  });

  it.each([
    [1, "10 seconds"],
    [42, "50 seconds"],
    [89, "90 seconds"],
    [90, "2 minutes"],
    [260, "4 minutes"],
  ])("rounds %i seconds to about %s", (seconds, text) => {
    expect(announce([{ announcement: { name: "agent", seconds } }])).toContain(`Takes about ${text} on 2 cores`);
  });

  it("is silent when nothing takes long", () => {
    expect(announce([{}, { announcement: undefined }])).toBeUndefined();
  });
});
