import { existsSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { startDockerd } from "./dockerd.ts";

describe("the tests' own Docker Engine", () => {
  it("leaves nothing when it is disposed", async () => {
    const dockerd = await startDockerd();
    await dockerd[Symbol.asyncDispose]();
    expect(existsSync(dockerd.directory)).toBe(false);
  });
});
