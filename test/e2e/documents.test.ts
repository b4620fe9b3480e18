import { execFile } from "node:child_process";
import { mkdtemp, readFile, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { sharedDirectory } from "../../packages/providers/src/host/testing/shared.ts";
import { blocksOf, commentsOf, patternOf, readDocument, runProgram } from "./document.ts";
import { findLeftovers } from "./leftovers.ts";
import { useNode } from "./node-process.ts";
import { sandpiper } from "./run-cli.ts";

const run = promisify(execFile);
const scratch = sharedDirectory("e2e");
const node = await useNode();
const apiKey = (await readFile(join(node.home, "api-key"), "utf8")).trim();
const nodeEnv = { ...node.env, SANDPIPER_URL: node.url, SANDPIPER_API_KEY: apiKey };
const runScript = (script: string, env: NodeJS.ProcessEnv) => run("bash", ["-euo", "pipefail", "-c", script], { env });

const flat = (text: string) => text.split(/\s+/).join(" ");

async function expectNoSandboxes(): Promise<void> {
  expect((await node.run(["ls", "--json"])).stdout).toBe("[]\n");
}

describe("the README", () => {
  const readme = readDocument("README.md");

  it("has curl lines that answer as printed below them", async () => {
    const [script = ""] = blocksOf(readme, "sh");
    // The reader has a node at the default port, with the default home directory.
    await symlink(node.home, join(dirname(node.home), ".sandpiper"));
    const printed = script.replaceAll("http://127.0.0.1:4747", node.url);
    const { stdout } = await runScript(printed, { PATH: process.env["PATH"], HOME: dirname(node.home) });
    const answers = [...script.matchAll(/^(?:curl|echo) .*\n# (.*)$/gm)].map(([, answer = ""]) => answer);
    expect(answers).toHaveLength(4);
    expect(stdout.replaceAll("\n", "")).toMatch(new RegExp(`^${answers.map(patternOf).join("")}$`));
    await expectNoSandboxes();
  });

  it.each(["with the SDK", "that saves and forks", "without a node"].entries().toArray())(
    "has a program (%i, %s) that prints what its comments say",
    async (index) => {
      const programs = blocksOf(readme, "ts");
      expect(programs).toHaveLength(3);
      const program = programs[index] ?? "";
      const stdout = await runProgram(program, nodeEnv);
      expect(commentsOf(program)).not.toEqual([]);
      for (const comment of commentsOf(program)) expect(flat(stdout)).toContain(comment);
      await expectNoSandboxes();
    },
  );

  it("names only verbs and options that exist", async () => {
    const lines = [...readme.matchAll(/^npx sandpiper (\S+)(.*?) {3,}/gm)];
    expect(lines).toHaveLength(5);
    for (const [, verb = "", rest = ""] of lines) {
      const { stdout, exitCode } = await node.run([verb, "--help"]);
      expect(exitCode, `sandpiper ${verb} --help`).toBe(0);
      const own = rest.split(" -- ")[0] ?? "";
      for (const [option] of own.matchAll(/--[a-z]+/g)) expect(stdout).toContain(option);
    }
  });
});

describe("docs/rest.md", () => {
  it("has lines that work as printed, in order, in one shell", async () => {
    const lines = blocksOf(readDocument("docs/rest.md"), "sh").join("\n");
    const env = { PATH: process.env["PATH"], SANDPIPER_URL: node.url, SANDPIPER_HOME: node.home };
    const { stdout } = await runScript(lines.replaceAll("/tmp/", `${dirname(node.home)}/`), env);
    const parts = ['"status":"ok"', '"stdout":"hello\\n"', "LOUD", "outsidebye", "hello file", "spk_"];
    for (const part of parts) expect(stdout).toContain(part);
    await expectNoSandboxes();
  });
});

describe("docs/cli.md", () => {
  const sessions = blocksOf(readDocument("docs/cli.md"), "console").map((session) => session.trimEnd().split("\n"));

  it.each(sessions.map((session) => [session[0], session] as const))(
    "has a session that prints what it shows: %s",
    async (_, session) => {
      const commands = session.filter((line) => line.startsWith("$ ")).map((line) => line.slice(2));
      const expected = session.filter((line) => !line.startsWith("$ "));
      const cwd = await mkdtemp(join(scratch, "session-"));
      const PATH = `${dirname(sandpiper)}:${process.env["PATH"]}`;
      const env = { ...process.env, SANDPIPER_HOME: join(scratch, "home"), PATH };
      const { stdout } = await run("bash", ["-c", `exec 2>&1\n${commands.join("\n")}\nexit 0`], { cwd, env });
      expect(stdout).toMatch(new RegExp(`^${expected.map((line) => `${patternOf(line)}\n`).join("")}$`));
    },
  );

  it("has examples", () => {
    expect(sessions.length).toBeGreaterThanOrEqual(4);
  });
});

describe("docs/sdk.md", () => {
  const programs = blocksOf(readDocument("docs/sdk.md"), "ts");

  it.each(programs.map((program, index) => [index + 1, program] as const))(
    "has a program %i that prints what its comments say and exits",
    async (_, program) => {
      const stdout = await runProgram(program, nodeEnv);
      expect(commentsOf(program)).not.toEqual([]);
      for (const comment of commentsOf(program)) expect(stdout).toContain(`${comment}\n`);
    },
  );

  it("has at least six programs", () => {
    expect(programs.length).toBeGreaterThanOrEqual(6);
  });
});

describe("docs/embedding.md", () => {
  const programs = blocksOf(readDocument("docs/embedding.md"), "ts");

  it.each(programs.map((program, index) => [index + 1, program] as const))(
    "has a program %i that prints what its comments say",
    async (number, program) => {
      const home = join(scratch, `home-${number}`);
      const stdout = await runProgram(program, { SANDPIPER_HOME: home });
      for (const comment of commentsOf(program)) expect(flat(stdout)).toContain(flat(comment));
      expect(findLeftovers(home)).toEqual([]);
    },
  );

  it("has programs", () => {
    expect(programs.length).toBeGreaterThanOrEqual(5);
  });
});
