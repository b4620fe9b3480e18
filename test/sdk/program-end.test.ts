import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { sharedDirectory } from "../../packages/providers/src/host/testing/shared.ts";
import { useNode } from "./sdk-node.ts";

const node = await useNode();
const sdk = import.meta.resolve("@sandpiper/sdk");

/** Runs a program that uses the SDK, until it ends by itself. */
async function runProgram(code: string, env: NodeJS.ProcessEnv) {
  const source = `import { Client, Sandbox } from ${JSON.stringify(sdk)};\n${code}`;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", source], {
    env: { PATH: process.env["PATH"], ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const output: Buffer[] = [];
  child.stdout.on("data", (bytes) => output.push(bytes));
  child.stderr.on("data", (bytes) => output.push(bytes));
  const [exitCode] = await once(child, "close");
  return { exitCode, output: Buffer.concat(output).toString() };
}

describe("a program that uses the SDK", () => {
  const env = { SANDPIPER_URL: node.url, SANDPIPER_API_KEY: node.apiKey };

  it("ends after it wrote to a process and did not close the input", async () => {
    await using sandbox = await node.client.sandboxes.create();
    const code = `
      const sandbox = await Sandbox.connect(${JSON.stringify(sandbox.id)});
      const process = await sandbox.start("read line; echo got $line", { stdin: true });
      await process.write("one\\n");
      console.log((await process.wait()).exitCode);
      const other = await sandbox.start("cat", { stdin: true, id: "kept" });
      await other.write("two\\n");
      other.detach();`;
    expect(await runProgram(code, env)).toEqual({ exitCode: 0, output: "0\n" });
    const again = `
      const sandbox = await Sandbox.connect(${JSON.stringify(sandbox.id)});
      const process = await sandbox.attach("kept", { offset: 4 });
      await process.write("three\\n");
      for await (const bytes of process.stdout) { console.log(Buffer.from(bytes).toString().trim()); break; }`;
    expect(await runProgram(again, env)).toEqual({ exitCode: 0, output: "three\n" });
  });
});
