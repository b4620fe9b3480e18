import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { useNode } from "./sdk-node.ts";

const run = promisify(execFile);
const repo = join(import.meta.dirname, "../..");
const node = await useNode();
const guide = await readFile(join(repo, "docs/sdk.md"), "utf8");
const programs = [...guide.matchAll(/^```ts\n([\s\S]*?)^```/gm)].map(([, text = ""]) => text);

describe("docs/sdk.md", () => {
  it.each(programs.map((program, index) => [index + 1, program] as const))(
    "has a program %i that prints what its comments say and exits",
    async (_, program) => {
      const argv = ["--input-type=module-typescript", "--eval", program];
      const env = { ...process.env, SANDPIPER_URL: node.url, SANDPIPER_API_KEY: node.apiKey };
      const { stdout } = await run(process.execPath, argv, { cwd: repo, env, timeout: 20_000 });
      const comments = [...program.matchAll(/console\.log\(.*; \/\/ (.*)$/gm)].map(([, comment = ""]) => comment);
      expect(comments).not.toEqual([]);
      for (const comment of comments) expect(stdout).toContain(`${comment}\n`);
    },
  );

  it("has at least six programs", () => {
    expect(programs.length).toBeGreaterThanOrEqual(6);
  });
});
