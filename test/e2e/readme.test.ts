import { execFile } from "node:child_process";
import { readFile, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { useNode } from "./node-process.ts";

const run = promisify(execFile);
const repo = join(import.meta.dirname, "../..");
const readme = await readFile(join(repo, "README.md"), "utf8");
const rest = await readFile(join(repo, "docs/rest.md"), "utf8");
const node = await useNode();

describe("the README", () => {
  it("has curl lines that answer as printed below them", async () => {
    const [script = ""] = blocksOf(readme, "sh");
    // The reader has a node at the default port, with the default home directory.
    await symlink(node.home, join(dirname(node.home), ".sandpiper"));
    const printed = script.replaceAll("http://127.0.0.1:4747", node.url);
    const { stdout } = await run("bash", ["-euo", "pipefail", "-c", printed], {
      env: { PATH: process.env["PATH"], HOME: dirname(node.home) },
    });
    const answers = [...script.matchAll(/^(?:curl|echo) .*\n# (.*)$/gm)].map(([, answer = ""]) => answer);
    expect(answers).toHaveLength(4);
    // An ellipsis stands for text that differs between runs.
    const pattern = answers.map((answer) => answer.split("…").map(RegExp.escape).join(".*")).join("");
    expect(stdout.replaceAll("\n", "")).toMatch(new RegExp(`^${pattern}$`));
    expect((await node.run(["ls", "--json"])).stdout).toBe("[]\n");
  });

  it.each(["with the SDK", "that saves and forks", "without a node"].entries().toArray())(
    "has a program (%i, %s) that prints what its comments say",
    async (index) => {
      const programs = blocksOf(readme, "ts");
      expect(programs).toHaveLength(3);
      const program = programs[index] ?? "";
      const apiKey = (await readFile(join(node.home, "api-key"), "utf8")).trim();
      const { stdout } = await run(process.execPath, ["--input-type=module-typescript", "--eval", program], {
        cwd: repo,
        env: { ...process.env, ...node.env, SANDPIPER_URL: node.url, SANDPIPER_API_KEY: apiKey },
      });
      const comments = [...program.matchAll(/console\.log\(.*; \/\/ (.*)$/gm)].map(([, text = ""]) => text);
      expect(comments).not.toEqual([]);
      for (const comment of comments) expect(flat(stdout)).toContain(comment);
      expect((await node.run(["ls", "--json"])).stdout).toBe("[]\n");
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
    const script = blocksOf(rest, "sh")
      .join("\n")
      .replaceAll("/tmp/", `${dirname(node.home)}/`);
    const env = { PATH: process.env["PATH"], SANDPIPER_URL: node.url, SANDPIPER_HOME: node.home };
    const { stdout } = await run("bash", ["-euo", "pipefail", "-c", script], { env });
    const parts = ['"status":"ok"', '"stdout":"hello\\n"', "LOUD", "outsidebye", "hello file", "spk_"];
    for (const part of parts) expect(stdout).toContain(part);
    expect((await node.run(["ls", "--json"])).stdout).toBe("[]\n");
  });
});

function blocksOf(markdown: string, kind: string): string[] {
  const fence = new RegExp(`^\`\`\`${kind}\n([\\s\\S]*?)^\`\`\``, "gm");
  return [...markdown.matchAll(fence)].map(([, text = ""]) => text);
}

function flat(text: string): string {
  return text.split(/\s+/).join(" ");
}
