import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { checkStore } from "./check-store.ts";

describe("checkStore", () => {
  let directory: string;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), "sandpiper-check-store-"));
  });
  afterEach(() => {
    vi.unstubAllEnvs();
    rmSync(directory, { recursive: true });
  });

  it("checks nothing on a standalone node", async () => {
    vi.stubEnv("SANDPIPER_STORE", undefined);
    expect(await checkStore()).toEqual([]);
  });

  it("confirms a store whose conditional writes work, and leaves no object in it", async () => {
    const [check] = await checkStore(`file://${directory}`);
    expect(check).toEqual({ name: "store", status: "ok", detail: expect.stringContaining("conditional writes work") });
    expect(readdirSync(join(directory, "probes"))).toEqual([]);
  });

  it("warns with the remedy about a URL that names no store, and about a store that does not answer", async () => {
    expect(await checkStore("gs://")).toMatchObject([{ status: "warning", hint: expect.stringContaining("gs://") }]);
    vi.stubEnv("STORAGE_EMULATOR_HOST", "http://127.0.0.1:9");
    expect(await checkStore("gs://bucket/x")).toMatchObject([
      { status: "warning", hint: expect.stringContaining("STORAGE_EMULATOR_HOST") },
    ]);
  });
});
