import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
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
  it.each(stories)("asserts what it shows and exits with 0: %s", async (story) => {
    const program = join(import.meta.dirname, story, "main.ts");
    const env = { ...process.env, SANDPIPER_HOME: home, NO_COLOR: "1" };
    const { stdout } = await promisify(execFile)(process.execPath, [program], { env });
    expect(stdout).not.toBe("");
    expect(stdout).not.toContain("\u001b[");
  });
});

it("the README shows the embedded example as it is", () => {
  const read = (path: string) => readFileSync(join(import.meta.dirname, path), "utf8");
  const shown = /```ts\n(.*?)```/s.exec(read("../README.md"))?.[1] ?? "";
  const withoutRemarks = shown.split("\n").map((line) => line.replace(/\s+\/\/ .*$/, ""));
  const program = read("embedded/main.ts").split("\n");
  expect(withoutRemarks.length).toBeGreaterThan(10);
  expect(withoutRemarks.filter((line) => !program.includes(line))).toEqual([]);
});
