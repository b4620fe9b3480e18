import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
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
      console.log((await process.wait()).exitCode);`;
    expect(await runProgram(code, env)).toEqual({ exitCode: 0, output: "0\n" });
  });

  it("ends after it wrote to a process of another program, which keeps running", async () => {
    await using sandbox = await node.client.sandboxes.create();
    const cat = await sandbox.start("cat", { stdin: true, id: "kept" });
    await cat.write("two\n");
    const again = `
      const sandbox = await Sandbox.connect(${JSON.stringify(sandbox.id)});
      const process = await sandbox.attach("kept", { offset: 4 });
      await process.write("three\\n");
      for await (const bytes of process.stdout) { console.log(Buffer.from(bytes).toString().trim()); break; }`;
    expect(await runProgram(again, env)).toEqual({ exitCode: 0, output: "three\n" });
    // The first writer closed its idle stream meanwhile, and continues after the other's input.
    await cat.write("four\n");
    await cat.closeStdin();
    let text = "";
    for await (const bytes of cat.stdout) text += new TextDecoder().decode(bytes);
    expect(text).toBe("two\nthree\nfour\n");
  });

  const port = new URL(node.url).port;
  const userHome = join(sharedDirectory("sdk"), "user");

  it.each([
    ["its home", { SANDPIPER_HOME: dirname(node.apiKeyFile) }],
    ["the user's home", { HOME: userHome }],
  ])("finds the node by its port and %s, as the command line does", async (_, given) => {
    mkdirSync(join(userHome, ".sandpiper"), { recursive: true });
    writeFileSync(join(userHome, ".sandpiper/api-key"), node.apiKey);
    const code = `
      const { url } = new Client();
      await using sandbox = await Sandbox.create();
      console.log(url, (await sandbox.exec("echo found")).stdout.trim());`;
    const found = await runProgram(code, { SANDPIPER_PORT: port, ...given });
    expect(found).toEqual({ exitCode: 0, output: `http://127.0.0.1:${port} found\n` });
  });

  it("sends the key of its home to no node that it names itself", async () => {
    const code = `await Sandbox.create({ url: ${JSON.stringify(node.url)} }).catch(({ code }) => console.log(code));`;
    const refused = await runProgram(code, { SANDPIPER_HOME: dirname(node.apiKeyFile) });
    expect(refused).toEqual({ exitCode: 0, output: "unauthenticated\n" });
  });
});
