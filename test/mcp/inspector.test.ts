import type { Sandbox } from "@sandpiper/sdk";
import { beforeAll, describe, expect, it } from "vitest";
import { sandpiper } from "../e2e/run-cli.ts";
import { useNode } from "../sdk/sdk-node.ts";
import { Inspector } from "./inspector.ts";

type Input = Readonly<Record<string, string | number | boolean>>;

/** Inspector does not end its sessions over HTTP; the node does, when they are idle. */
const node = await useNode({ mcp: { idleMs: 5000 } });
const authorization = `Authorization: Bearer ${node.apiKey}`;
// Inspector does not pass its own environment on to the server.
const env = ["-e", `SANDPIPER_URL=${node.url}`, "-e", `SANDPIPER_API_KEY=${node.apiKey}`];
const overHttp = new Inspector([`${node.url}/mcp`, "--transport", "http", "--header", authorization]);

describe("MCP Inspector's command line, over standard input and output", { timeout: 90_000 }, () => {
  const inspector = new Inspector([sandpiper, "mcp", ...env]);

  it("lists the tools that it lists over HTTP, and runs a command", async () => {
    expect(await inspector.toolNames()).toEqual(await overHttp.toolNames());
    const { structuredContent } = await inspector.call("run_command", { command: "echo $((6 * 7))" });
    expect(structuredContent).toMatchObject({ exit_code: 0, stdout: "42\n" });
  });
});

describe("MCP Inspector's command line, over HTTP", { timeout: 90_000 }, () => {
  const called = new Set<string>();
  let sandbox: Sandbox;
  beforeAll(async () => {
    sandbox = await node.client.sandboxes.create();
  });

  async function call(tool: string, args: Input = {}) {
    called.add(tool);
    const { content, isError, structuredContent } = await overHttp.call(tool, args);
    expect(isError, JSON.stringify(content)).toBeFalsy();
    return { content, structuredContent, text: content.map((block) => block.text ?? "").join("\n") };
  }

  /** Calls a tool on the sandbox that these tests share; each call is its own session. */
  const inside = (tool: string, args: Input = {}) => call(tool, { sandbox_id: sandbox.id, ...args });

  it("runs commands and code", async () => {
    const command = await inside("run_command", { command: "echo $((6 * 7))" });
    expect(command.structuredContent).toMatchObject({ exit_code: 0, stdout: "42\n" });
    const code = await inside("execute_code", { language: "python", code: "print(6 * 7)" });
    expect(code.structuredContent).toMatchObject({ stdout: "42\n" });
    for (const { text } of [command, code]) expect(text).toContain("42");
  });

  it("reads and writes files, as text and as bytes", async () => {
    expect((await inside("write_file", { path: "a.txt", content: "text" })).text).toContain("Wrote 4 bytes");
    expect((await inside("read_file", { path: "a.txt" })).text).toContain("text");
    const content_base64 = Buffer.from([0, 255, 1]).toString("base64");
    expect((await inside("upload_file", { path: "b.bin", content_base64 })).text).toContain("Wrote 3 bytes");
    const { content, text } = await inside("download_file", { path: "b.bin" });
    expect([JSON.stringify(content), text]).toEqual([
      expect.stringContaining("AP8B"),
      expect.stringContaining("Bytes 0 to 3 of b.bin"),
    ]);
    expect((await inside("list_directory")).text).toMatch(/a\.txt\b.*\bb\.bin \(3 bytes\)/s);
  });

  it("starts, feeds, follows and kills processes", async () => {
    const { structuredContent, text } = await inside("start_process", { command: "cat" });
    expect(text).toContain("Process");
    const process_id = structuredContent["process_id"] as string;
    const written = await inside("write_process_input", { process_id, input: "line" });
    expect(written.text).toContain("Wrote 4 bytes");
    const read = await inside("read_process_output", { process_id, wait_seconds: 10 });
    expect(read.text).toContain("line");
    expect((await inside("list_processes")).text).toMatch(new RegExp(`${process_id}.*runs`, "s"));
    expect((await inside("kill_process", { process_id })).text).toContain("SIGKILL");
  });

  it("links to a port, and says that no program listens on it yet", async () => {
    const { text } = await inside("expose_port", { port: 8000 });
    expect(text).toContain(`http://8000-${sandbox.id}.localhost:`);
    expect(text).toContain("Nothing listens on port 8000 yet");
  });

  it("checkpoints, restores and forks a sandbox", async () => {
    expect((await inside("checkpoint_sandbox", { name: "before" })).text).toContain("checkpoint before");
    expect((await inside("list_checkpoints")).text).toContain("(before)");
    await inside("run_command", { command: "rm a.txt" });
    const restored = await inside("restore_sandbox", { checkpoint: "before" });
    expect(restored.text).toContain("is restored to checkpoint before");
    expect((await inside("read_file", { path: "a.txt" })).text).toContain("text");
    expect((await inside("fork_sandbox")).text).toContain("was copied to");
  });

  it("creates, lists and destroys sandboxes", async () => {
    expect((await call("create_sandbox")).text).toContain("is ready");
    const { structuredContent } = await call("create_sandbox", { name: "kept", keep: true });
    const sandbox_id = structuredContent["sandbox_id"] as string;
    expect((await call("list_sandboxes")).text).toMatch(new RegExp(`${sandbox_id}.*ready`, "s"));
    expect((await call("destroy_sandbox", { sandbox_id })).text).toContain("is destroyed");
    expect((await call("list_sandboxes")).text).not.toContain(sandbox_id);
  });

  it("lists no tool that the tests before did not call", async () => {
    expect([...called].toSorted()).toEqual((await overHttp.toolNames()).toSorted());
  });

  it("leaves no sandbox of its sessions behind", async () => {
    const left = async () => {
      const all = await Array.fromAsync(node.client.sandboxes.list());
      return all.filter(({ state }) => state !== "destroyed").map(({ id }) => id);
    };
    await expect.poll(left).toEqual([sandbox.id]);
    await sandbox.destroy();
  });
});
