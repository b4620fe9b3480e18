import { mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { sharedDirectory } from "../../packages/providers/src/host/testing/shared.ts";
import { useNode } from "./node-process.ts";
import { runCli } from "./run-cli.ts";

const node = await useNode();
const scratch = sharedDirectory("e2e");
const env = { SANDPIPER_HOME: join(scratch, "embedded") };

function sourceFile(code: string): string {
  const file = join(mkdtempSync(join(scratch, "code-")), "source");
  writeFileSync(file, code);
  return file;
}

describe("sandpiper run --language", () => {
  const typescript = "const answer: number = 6 * 7;\nconsole.log(answer);";

  it("runs code from standard input, without a node and on one", async () => {
    for (const options of [{ env }, { env: node.env }]) {
      const python = await runCli(["run", "--language", "python", "-"], { ...options, stdin: "print(6 * 7)" });
      expect(python).toMatchObject({ stdout: "42\n", stderr: "", exitCode: 0 });
      const result = await runCli(["run", "--language", "typescript", "-"], { ...options, stdin: typescript });
      expect(result).toMatchObject({ stdout: "42\n", stderr: "", exitCode: 0 });
    }
  });

  it("runs code from a file, whose standard input it leaves to the code", async () => {
    const file = sourceFile("import sys\nprint(sys.stdin.read().upper())\nsys.exit(3)");
    const argv = ["run", "--language", "python", file];
    expect(await runCli(argv, { env, stdin: "typed" })).toMatchObject({ stdout: "TYPED\n", exitCode: 3 });
  });

  it("reports how the code ended with --json", async () => {
    const argv = ["run", "--json", "--timeout", "1s", "--language", "python", "-"];
    const { stdout, exitCode } = await runCli(argv, { env, stdin: "while True: pass" });
    expect(exitCode).toBe(124);
    expect(JSON.parse(stdout)).toMatchObject({ timedOut: true, outOfMemory: false, truncated: false });
  });

  it("explains a missing file, a second word, text in another encoding and an unknown language", async () => {
    const refusal = async (argv: readonly string[], stdin: string | Buffer = "") => {
      const { stderr, exitCode } = await runCli(["run", ...argv], { env, stdin });
      expect(exitCode).toBe(2);
      return stderr;
    };
    expect(await refusal(["--language", "python", "/nowhere.py"])).toContain(
      "cannot read source code from /nowhere.py",
    );
    expect(await refusal(["--language", "python", "a", "b"])).toContain("--language takes one file");
    expect(await refusal(["--language", "bash", "-"], Buffer.of(0xff, 0xfe))).toContain("is not UTF-8 text");
    const languages = "expected one of python, javascript, typescript, bash, sh";
    expect(await refusal(["--language", "cobol", "-"])).toContain(languages);
  });
});

describe("sandpiper exec --language", () => {
  it("runs code in an existing sandbox, also detached", async () => {
    const id = (await node.run(["create", "--language", "bash", "--memory", "512M"])).stdout.trim();
    expect(JSON.parse((await node.run(["get", id])).stdout)).toMatchObject({ language: "bash", memoryMib: 512 });
    const result = await node.run(["exec", id, "--language", "javascript", "-"], { stdin: "console.log(6 * 7)" });
    expect(result).toMatchObject({ stdout: "42\n", exitCode: 0 });
    const file = sourceFile("echo detached");
    const { stdout } = await node.run(["exec", "--detach", id, "--language", "bash", file]);
    await expect.poll(async () => (await node.run(["logs", id, stdout.trim()])).stdout).toBe("detached\n");
  });
});
