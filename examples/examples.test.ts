import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, describe, expect, it } from "vitest";

const home = mkdtempSync(join(tmpdir(), "sandpiper-examples-"));
afterAll(() => rmSync(home, { recursive: true }));

const stories = readdirSync(import.meta.dirname, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map((entry) => entry.name);

describe("an example", () => {
  it.each(stories)("passes its own assertions and exits with 0: %s", async (story) => {
    const program = join(import.meta.dirname, story, "main.ts");
    const env = { ...process.env, SANDPIPER_HOME: home, NO_COLOR: "1" };
    const { stdout } = await promisify(execFile)(process.execPath, [program], { env });
    expect(stdout).not.toBe("");
    expect(stdout).not.toContain("\u001b[");
  });
});
