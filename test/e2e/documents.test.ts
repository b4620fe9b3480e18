import { execFile } from "node:child_process";
import { mkdtemp, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { sharedDirectory } from "../../packages/providers/src/host/testing/shared.ts";
import { findLeftovers } from "./leftovers.ts";
import { sandpiper } from "./run-cli.ts";

const run = promisify(execFile);
const repo = join(import.meta.dirname, "../..");
const scratch = sharedDirectory("e2e");

const cli = await readFile(join(repo, "docs/cli.md"), "utf8");
const embedding = await readFile(join(repo, "docs/embedding.md"), "utf8");

describe("docs/cli.md", () => {
  const sessions = blocksOf(cli, "console");

  it.each(sessions.map((session) => [session[0], session] as const))(
    "has a session that prints what it shows: %s",
    async (_, session) => {
      const commands = session.filter((line) => line.startsWith("$ ")).map((line) => line.slice(2));
      const expected = session.filter((line) => !line.startsWith("$ "));
      const directory = await mkdtemp(join(scratch, "session-"));
      const env = {
        ...process.env,
        SANDPIPER_HOME: join(scratch, "home"),
        PATH: `${dirname(sandpiper)}:${process.env["PATH"]}`,
      };
      const { stdout } = await run("bash", ["-c", `exec 2>&1\n${commands.join("\n")}\nexit 0`], {
        cwd: directory,
        env,
      });
      // An ellipsis stands for text that differs between runs.
      const pattern = expected.map((line) => `${line.split("…").map(RegExp.escape).join(".*")}\n`).join("");
      expect(stdout).toMatch(new RegExp(`^${pattern}$`));
    },
  );

  it("has examples", () => {
    expect(sessions.length).toBeGreaterThanOrEqual(4);
  });
});

describe("docs/embedding.md", () => {
  const programs = blocksOf(embedding, "ts");

  it.each(programs.map((lines, index) => [index + 1, lines] as const))(
    "has a program %i that prints what its comments say",
    async (number, lines) => {
      const home = join(scratch, `home-${number}`);
      const argv = ["--input-type=module-typescript", "--eval", lines.join("\n")];
      const { stdout } = await run(process.execPath, argv, {
        cwd: repo,
        env: { ...process.env, SANDPIPER_HOME: home },
      });
      const comments = lines.map((line) => /console\.log\(.*; \/\/ (.*)$/.exec(line)?.[1]);
      for (const comment of comments) if (comment !== undefined) expect(flat(stdout)).toContain(flat(comment));
      expect(findLeftovers(home)).toEqual([]);
    },
  );

  it("has programs", () => {
    expect(programs.length).toBeGreaterThanOrEqual(5);
  });
});

/** The lines of each fenced block of that kind. */
function blocksOf(markdown: string, kind: string): string[][] {
  const fence = new RegExp(`^\`\`\`${kind}\n([\\s\\S]*?)^\`\`\``, "gm");
  return [...markdown.matchAll(fence)].map(([, text = ""]) => text.trimEnd().split("\n"));
}

function flat(text: string): string {
  return text.split(/\s+/).join(" ");
}
