import { describe, expect, it } from "vitest";
import { createSandboxId, isSandboxId, sandboxIdSchema } from "./sandbox-id.ts";

describe("a sandbox id", () => {
  it("is a random UUID v4 by default", () => {
    const [one, other] = [createSandboxId(), createSandboxId()];
    expect(isSandboxId(one)).toBe(true);
    expect(one).not.toBe(other);
  });

  it("uses the given source of randomness", () => {
    const uuid = "9b2f8c1e-4c1d-4f6a-8a57-0d3e5b7c9a11";
    expect(createSandboxId(() => uuid)).toBe(uuid);
  });

  it("is refused when the source gives something else", () => {
    expect(() => createSandboxId(() => "s1")).toThrow();
  });

  it.each([
    ["a short name", "s1"],
    ["four hex digits", "9b2f"],
    ["a UUID of version 1", "9b2f8c1e-4c1d-11ee-8a57-0d3e5b7c9a11"],
    ["a UUID of version 7", "018f8c1e-4c1d-7f6a-8a57-0d3e5b7c9a11"],
    ["a path that ends in a UUID", "../9b2f8c1e-4c1d-4f6a-8a57-0d3e5b7c9a11"],
    ["a UUID and a newline", "9b2f8c1e-4c1d-4f6a-8a57-0d3e5b7c9a11\n"],
    ["nothing", undefined],
    ["a number", 7],
  ])("is not %s", (_, value) => {
    expect(isSandboxId(value)).toBe(false);
    expect(sandboxIdSchema.safeParse(value).success).toBe(false);
  });
});
