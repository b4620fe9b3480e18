import { afterAll, describe, expect, it } from "vitest";
import { sandpiper } from "../e2e/run-cli.ts";
import { useNode } from "../sdk/sdk-node.ts";
import { Inspector } from "./inspector.ts";

const node = await useNode();
// Inspector does not pass its own environment on to the server.
const env = ["-e", `SANDPIPER_URL=${node.url}`, "-e", `SANDPIPER_API_KEY=${node.apiKey}`];
const inspector = new Inspector({ target: [sandpiper, "mcp", ...env] });
const sandbox = await node.client.sandboxes.create();

afterAll(() => inspector[Symbol.dispose]());

type Input = Readonly<Record<string, string | number | boolean>>;

/** A call of every tool, in an order in which each finds what it needs. Each call is its own session. */
const calls: readonly (readonly [tool: string, input: Input | ((process_id: string) => Input), expected: string])[] = [
  ["run_command", { command: "echo $((6 * 7))" }, "42"],
  ["execute_code", { code: "print(6 * 7)" }, "42"],
  ["write_file", { path: "a.txt", content: "text" }, "Wrote 4 bytes"],
  ["read_file", { path: "a.txt" }, "text"],
  ["upload_file", { path: "b.bin", content_base64: "AP8B" }, "Wrote 3 bytes"],
  ["download_file", { path: "b.bin" }, "Bytes 0 to 3 of b.bin"],
  ["list_directory", {}, "b.bin (3 bytes)"],
  ["start_process", { command: "cat" }, "Process"],
  ["write_process_input", (process_id) => ({ process_id, input: "line" }), "Wrote 4 bytes"],
  ["read_process_output", (process_id) => ({ process_id, wait_seconds: 10 }), "line"],
  ["list_processes", {}, "runs"],
  ["kill_process", (process_id) => ({ process_id }), "SIGKILL"],
  ["checkpoint_sandbox", { name: "before" }, "checkpoint before"],
  ["list_checkpoints", {}, "(before)"],
  ["restore_sandbox", { checkpoint: "before" }, "is restored to checkpoint before"],
  ["fork_sandbox", {}, "was copied to"],
  ["create_sandbox", {}, "is ready"],
  ["list_sandboxes", {}, "ready"],
  ["destroy_sandbox", {}, "is destroyed"],
];

describe("MCP Inspector's command line, over standard input and output", () => {
  it("lists exactly the tools that the following tests call", async () => {
    expect((await inspector.toolNames()).toSorted()).toEqual(calls.map(([tool]) => tool).toSorted());
  });

  let process_id = "";
  it.each(calls)("calls %s", async (tool, input, expected) => {
    const own = typeof input === "function" ? input(process_id) : input;
    const takesSandbox = !["create_sandbox", "list_sandboxes"].includes(tool);
    const answer = await inspector.call(tool, takesSandbox ? { sandbox_id: sandbox.id, ...own } : own);
    const text = answer.content.map((block) => block.text ?? "").join("\n");
    expect(answer.isError, text).toBeFalsy();
    expect(text).toContain(expected);
    if (tool === "start_process") process_id = String(answer.structuredContent["process_id"]);
  });

  it("leaves no sandbox of its sessions behind", async () => {
    const left = async () => {
      const all = await Array.fromAsync(node.client.sandboxes.list());
      return all.filter(({ state }) => state !== "destroyed").map(({ id }) => id);
    };
    await expect.poll(left).toEqual([]);
  });
});
