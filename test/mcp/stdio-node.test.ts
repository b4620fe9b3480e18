import type { Sandbox } from "@sandpiper/sdk";
import { describe, expect, it, onTestFinished } from "vitest";
import { runCli } from "../e2e/run-cli.ts";
import { useNode } from "../sdk/sdk-node.ts";
import { StdioBed, StdioClient } from "./stdio-bed.ts";

const node = await useNode();

async function connect(...args: readonly string[]): Promise<StdioClient> {
  const env = { ...(process.env as Record<string, string>), SANDPIPER_URL: node.url, SANDPIPER_API_KEY: node.apiKey };
  return await StdioClient.start({ args, env });
}

async function sandboxes(): Promise<Sandbox[]> {
  const all = await Array.fromAsync(node.client.sandboxes.list());
  return all.filter(({ state }) => state !== "destroyed");
}

describe("an MCP server with a node", () => {
  it("creates its sandboxes on the node, and destroys them when its client disconnects", async () => {
    const agent = await connect("--memory", "128");
    const { structured } = await agent.call("run_command", { command: "echo hi" });
    const [sandbox] = await sandboxes();
    expect(sandbox?.info).toMatchObject({ id: structured.sandbox_id, memoryMib: 128, idleTimeoutMs: 1_800_000 });
    await agent.close();
    await expect.poll(sandboxes).toEqual([]);
  });

  it("leaves a sandbox that the model asked to keep, and finds it again", async () => {
    const agent = await connect();
    const { sandbox_id } = (await agent.call("create_sandbox", { keep: true })).structured;
    await agent.call("write_file", { sandbox_id, path: "notes", content: "kept" });
    await agent.call("run_command", { command: "true" });
    await agent.close();
    await expect.poll(async () => (await sandboxes()).map(({ id }) => id)).toEqual([sandbox_id]);
    const next = await connect();
    const { structured } = await next.call("list_sandboxes");
    expect(structured.sandboxes).toMatchObject([{ sandbox_id, is_temporary: false, is_default: false }]);
    expect((await next.call("read_file", { sandbox_id, path: "notes" })).structured.content).toBe("kept");
    await next.call("destroy_sandbox", { sandbox_id });
    expect(await sandboxes()).toEqual([]);
  });

  it("leaves all sandboxes on the node with --keep", async () => {
    const agent = await connect("--keep");
    const { sandbox_id } = (await agent.call("run_command", { command: "true" })).structured;
    onTestFinished(async () => (await node.client.sandboxes.connect(sandbox_id)).destroy());
    await agent.close();
    expect((await sandboxes()).map(({ id, info }) => [id, info.idleTimeoutMs])).toEqual([[sandbox_id, null]]);
  });

  it("leaves its sandboxes to the node when it is killed; the node destroys them after the idle timeout", async () => {
    const agent = await connect("--idle-timeout", "1");
    // A background process does not count as activity once its client has disconnected.
    await agent.call("start_process", { command: "while sleep 0.1; do echo tick; done" });
    expect(await sandboxes()).toHaveLength(1);
    process.kill(agent.pid, "SIGKILL");
    await expect.poll(sandboxes).toEqual([]);
  });

  it("reports an exceeded quota of its key to the model, with the tool that frees it", async () => {
    const { key } = await node.client.keys.create({ name: "small", scopes: ["sandboxes"], quota: { maxSandboxes: 1 } });
    const env = { ...(process.env as Record<string, string>), SANDPIPER_URL: node.url, SANDPIPER_API_KEY: key };
    const agent = await StdioClient.start({ args: [], env });
    await agent.call("run_command", { command: "true" });
    const { isError, text } = await agent.call("create_sandbox");
    expect(isError).toBe(true);
    expect(text).toMatch(/has a quota of 1 sandboxes: 1 are used.*quota_exceeded.*destroy_sandbox/s);
    await agent.call("destroy_sandbox");
    expect((await agent.call("create_sandbox")).isError).toBe(false);
  });
});

describe("an MCP server without a node", () => {
  it("refuses --keep, because its sandboxes end with it", async () => {
    const bed = new StdioBed();
    const { exitCode, stdout, stderr } = await runCli(["mcp", "--keep"], { env: bed.env });
    expect([exitCode, stdout]).toEqual([2, ""]);
    expect(stderr).toContain("sandpiper up");
    expect(bed.left()).toEqual([]);
  });
});
