import { readFileSync } from "node:fs";
import { decodeText, type ExecResult } from "@sandpiper/sdk";
import { describe, expect, it } from "vitest";
import { useNode } from "./sdk-node.ts";

const node = await useNode();

interface Answer extends ExecResult {
  readonly message: string;
}

async function post(path: string, body: unknown) {
  const headers = { authorization: `Bearer ${node.apiKey}`, "content-type": "application/json" };
  const response = await fetch(`${node.url}/v1/sandboxes/${path}`, {
    method: "POST",
    headers,
    body: JSON.stringify(body),
  });
  return { status: response.status, body: (await response.json()) as Answer };
}

const programs = {
  python: "import sys\nprint(6 * 7)\nsys.stderr.write('err\\n')\nsys.exit(3)",
  javascript: 'console.log(6 * 7);\nconsole.error("err");\nprocess.exit(3);',
  typescript: `import { argv } from "node:process";
type Answer = { readonly value: number };
function answer<T extends Answer>(given: T): number { return given.value; }
console.log(answer({ value: 6 * 7 } satisfies Answer));
console.error("err");
process.exit(argv.length > 0 ? 3 : 0);`,
  bash: "values=(6 7)\necho $((values[0] * values[1]))\necho err >&2\nexit 3",
};

describe("source code, in a gVisor sandbox", () => {
  it.each(Object.entries(programs))("in %s runs through the SDK and through REST", async (language, code) => {
    await using sandbox = await node.client.sandboxes.create();
    const result = await sandbox.runCode(code, { language });
    const expected = { exitCode: 3, stdout: "42\n", stderr: "err\n", timedOut: false, outOfMemory: false };
    expect(result).toMatchObject({ ...expected, truncated: false });
    const answer = await post(`${sandbox.id}/exec`, { language, code });
    expect(answer.status).toBe(200);
    expect(answer.body).toMatchObject({ ...expected, truncated: false });
    expect(Object.keys(answer.body)).toEqual(Object.keys(result));
    await expect.poll(async () => (await sandbox.exec("ls /tmp")).stdout).toBe("");
  });

  it("runs in the sandbox's own language by default, which an unknown name cannot be", async () => {
    await using sandbox = await node.client.sandboxes.create({ language: "bash" });
    const code = 'list=(a b); echo "$0" | cut -c -9; echo $list';
    expect((await sandbox.runCode(code)).stdout).toBe("/tmp/code\na\n");
    expect((await post(`${sandbox.id}/exec`, { code })).body.stdout).toBe("/tmp/code\na\n");
    await expect(node.client.sandboxes.create({ language: "cobol" })).rejects.toMatchObject({
      reason: "unknown_language",
      hint: "use one of python, javascript, typescript, bash, sh",
    });
  });

  it("takes input, environment, directory, user, a time limit and listeners, as commands do", async () => {
    await using sandbox = await node.client.sandboxes.create({ language: "python" });
    const code = "import os, sys\nprint(sys.stdin.read(), os.environ['WHO'], os.getcwd(), os.getuid())";
    const streamed: string[] = [];
    const result = await sandbox.runCode(code, {
      stdin: "typed",
      env: { WHO: "me" },
      cwd: "/usr",
      user: "root",
      onStdout: (bytes) => streamed.push(new TextDecoder().decode(bytes)),
    });
    expect(result).toMatchObject({ exitCode: 0, stdout: "typed me /usr 0\n" });
    expect(streamed.join("")).toBe(result.stdout);
    const slow = await sandbox.runCode("while True: pass", { timeoutMs: 300 });
    expect(slow).toMatchObject({ timedOut: true, signal: "SIGKILL" });
  });

  it("never passes through a shell, and may be megabytes long", async () => {
    await using sandbox = await node.client.sandboxes.create({ language: "python" });
    const quoted = `print("$(id) \`id\` 'x' \\\\ ; touch /tmp/no")`;
    expect((await sandbox.runCode(quoted)).stdout).toBe("$(id) `id` 'x' \\ ; touch /tmp/no\n");
    const long = `${"# a comment that fills the file\n".repeat(100_000)}print("end")`;
    expect(long.length).toBeGreaterThan(3_000_000);
    expect((await sandbox.runCode(long)).stdout).toBe("end\n");
    const tooLong = "#".repeat(5 * 1024 * 1024);
    await expect(sandbox.runCode(tooLong)).rejects.toMatchObject({ reason: "code_too_long" });
    expect((await post(`${sandbox.id}/exec`, { code: tooLong })).status).toBe(400);
  });

  it("in an unknown language fails with the languages of the sandbox", async () => {
    await using sandbox = await node.client.sandboxes.create();
    await expect(sandbox.runCode("x", { language: "cobol" })).rejects.toMatchObject({
      code: "invalid_argument",
      reason: "unknown_language",
      hint: expect.stringContaining("python, javascript, bash, sh, typescript"),
    });
    await expect(sandbox.runCode("x")).rejects.toMatchObject({ reason: "unknown_language" });
    expect((await post(`${sandbox.id}/exec`, { language: "bash", command: "true" })).body.message).toContain(
      "language needs code",
    );
  });

  it("without its interpreter fails with the name of the missing program", async () => {
    await using sandbox = await node.client.sandboxes.create({ env: { PATH: "/nowhere" } });
    await expect(sandbox.runCode("let a: number = 1", { language: "typescript" })).rejects.toMatchObject({
      code: "failed_precondition",
      reason: "no_interpreter",
      message: expect.stringContaining("it has no node"),
    });
    await expect(sandbox.runCode("pass", { language: "python" })).rejects.toMatchObject({
      message: expect.stringContaining("it has no python3 or python"),
    });
  });

  it("that is not TypeScript fails like a program, with the error on standard error", async () => {
    await using sandbox = await node.client.sandboxes.create({ language: "ts" });
    const result = await sandbox.runCode("let x: = 1");
    expect(result).toMatchObject({ exitCode: 1, stdout: "" });
    expect(result.stderr).toContain("SyntaxError: cannot run this code as TypeScript: ");
    // A parser that overflows its stack harms no later call.
    expect((await sandbox.runCode("(".repeat(300_000))).exitCode).toBe(1);
    expect((await sandbox.runCode("console.log(1 as number)")).stdout).toBe("1\n");
  });

  it("starts as a process that outlives its caller, by SDK and by REST", async () => {
    await using sandbox = await node.client.sandboxes.create({ language: "python" });
    const process = await sandbox.startCode("print(input(), flush=True)\nprint(input())", { stdin: true });
    await process.write("one\n");
    process.detach();
    const again = await sandbox.attach(process.id);
    await again.write("two\n");
    let text = "";
    for await (const piece of decodeText(again.stdout)) text += piece;
    expect(text).toBe("one\ntwo\n");
    const body = { process: "mine", code: "print('rest')" };
    expect((await post(`${sandbox.id}/processes`, body)).status).toBe(201);
    // A retry attaches to the same process.
    expect((await post(`${sandbox.id}/processes`, body)).status).toBe(201);
    const attached = await sandbox.attach("mine");
    expect(await attached.wait()).toMatchObject({ exitCode: 0 });
    let rest = "";
    for await (const piece of decodeText(attached.stdout)) rest += piece;
    expect(rest).toBe("rest\n");
  });
});

it("names the same languages and programs as the agent's table", async () => {
  const { languages, programsOf } = await import("@sandpiper/protocol");
  const source = readFileSync(new URL("../../agent/src/process/language.rs", import.meta.url), "utf8");
  const rows = [...source.matchAll(/Language \{ name: "(\w+)",.*interpreters: &\[(.*)\] \}/g)];
  const inAgent = rows.map(([, name, programs = ""]) => [name, programs.replaceAll('"', "").split(", ")]);
  const own = languages.filter((name) => name !== "typescript").map((name) => [name, programsOf(name)]);
  expect(inAgent).toEqual(own);
});
