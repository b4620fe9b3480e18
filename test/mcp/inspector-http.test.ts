import { afterAll, describe, expect, it } from "vitest";
import { useNode } from "../sdk/sdk-node.ts";
import { Inspector } from "./inspector.ts";

const node = await useNode();
const authorization = `Authorization: Bearer ${node.apiKey}`;
const inspector = new Inspector({ target: [`${node.url}/mcp`, "--transport", "http", "--header", authorization] });
const sandbox = await node.client.sandboxes.create();
const called = new Set<string>();

afterAll(() => inspector[Symbol.dispose]());

async function call(tool: string, args: Readonly<Record<string, string | number | boolean>> = {}) {
  called.add(tool);
  const answer = await inspector.call(tool, args);
  expect(answer.isError, JSON.stringify(answer.content)).toBeFalsy();
  return answer;
}

/** Calls a tool on the sandbox that the tests of this file share; each call is its own session. */
const inside = (tool: string, args: Readonly<Record<string, string | number | boolean>> = {}) =>
  call(tool, { sandbox_id: sandbox.id, ...args });

describe("MCP Inspector's command line, over HTTP", () => {
  it("runs commands and code", async () => {
    expect((await inside("run_command", { command: "echo $((6 * 7))" })).structuredContent).toMatchObject({
      exit_code: 0,
      stdout: "42\n",
    });
    const code = await inside("execute_code", { language: "python", code: "print(6 * 7)" });
    expect(code.structuredContent).toMatchObject({ stdout: "42\n" });
  });

  it("reads and writes files, as text and as bytes", async () => {
    await inside("write_file", { path: "a.txt", content: "text" });
    expect((await inside("read_file", { path: "a.txt" })).content[0]?.text).toContain("text");
    await inside("upload_file", { path: "b.bin", content_base64: Buffer.from([0, 255, 1]).toString("base64") });
    expect(JSON.stringify(await inside("download_file", { path: "b.bin" }))).toContain("AP8B");
    expect((await inside("list_directory")).content[0]?.text).toMatch(/a\.txt\b.*\bb\.bin/s);
  });

  it("starts, feeds, follows and kills processes", async () => {
    const { structuredContent } = await inside("start_process", { command: "cat" });
    const process_id = structuredContent["process_id"] as string;
    await inside("write_process_input", { process_id, input: "line" });
    const read = await inside("read_process_output", { process_id, wait_seconds: 10 });
    expect(read.content[0]?.text).toContain("line");
    expect((await inside("list_processes")).content[0]?.text).toContain(process_id);
    await inside("kill_process", { process_id });
  });

  it("checkpoints, restores and forks a sandbox", async () => {
    await inside("checkpoint_sandbox", { name: "before" });
    expect((await inside("list_checkpoints")).content[0]?.text).toContain("before");
    await inside("run_command", { command: "rm a.txt" });
    await inside("restore_sandbox", { checkpoint: "before" });
    expect((await inside("read_file", { path: "a.txt" })).content[0]?.text).toContain("text");
    await inside("fork_sandbox");
  });

  it("creates, lists and destroys sandboxes", async () => {
    const made = await call("create_sandbox", { name: "kept", keep: true });
    const id = made.structuredContent["sandbox_id"] as string;
    expect((await call("list_sandboxes")).content[0]?.text).toContain(id);
    await call("destroy_sandbox", { sandbox_id: id });
    expect((await call("list_sandboxes")).content[0]?.text).not.toContain(id);
  });

  it("lists no tool that the tests before did not call", async () => {
    expect([...called].toSorted()).toEqual((await inspector.toolNames()).toSorted());
  });
});
