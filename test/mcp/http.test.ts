import { globSync } from "node:fs";
import { dirname } from "node:path";
import { describe, expect, it } from "vitest";
import { sharedDirectory } from "../../packages/providers/src/host/testing/shared.ts";
import { startSdkNode, useNode } from "../sdk/sdk-node.ts";
import { connectHttp, sessionStatus } from "./http-client.ts";

const node = await useNode({ mcp: { idleMs: 1500 } });
const { url, client: admin } = node;
const stoppedHome = sharedDirectory("mcp-stopped");

/** Directories of instances, running or left over. */
const instancesIn = (home: string) => globSync("node/gvisor/instances/*", { cwd: home });
const connect = (apiKey: string, mode?: "auto") => connectHttp({ url, apiKey }, mode);
const makeKey = (tenant: string) => admin.keys.create({ name: tenant, tenant });
const sandboxIds = async () => (await Array.fromAsync(admin.sandboxes.list())).map(({ id }) => id);

describe("an MCP client over HTTP", () => {
  it("uses a sandbox that keeps its state, and gets progress while a command runs", async () => {
    const { key } = await makeKey("agent");
    await using agent = await connect(key);
    const written = await agent.call("write_file", { path: "a.py", content: "print(6 * 7)" });
    expect(written).toMatchObject({ isError: false });
    expect(await agent.call("run_command", { command: "python3 a.py" })).toMatchObject({ stdout: "42\n" });
    const heard: number[] = [];
    const slow = { name: "run_command", arguments: { command: "for i in 1 2 3; do echo $i; sleep 1; done" } };
    await agent.client.callTool(slow, { onprogress: ({ progress }) => heard.push(progress) });
    expect(heard.length).toBeGreaterThan(0);
    await agent.transport.terminateSession();
    expect(await sandboxIds()).toEqual([]);
  });

  it("kills a command by canceling the call", async () => {
    const { key } = await makeKey("agent");
    await using agent = await connect(key);
    const { sandbox_id } = (await agent.call("create_sandbox")) as unknown as { sandbox_id: string };
    const sandbox = await admin.sandboxes.connect(sandbox_id);
    const abort = new AbortController();
    const call = agent.client.callTool(
      { name: "run_command", arguments: { sandbox_id, command: "sleep 600" } },
      { signal: abort.signal },
    );
    const running = async () => (await sandbox.exec("pgrep -x sleep | wc -l")).stdout.trim();
    await expect.poll(running).toBe("1");
    abort.abort();
    await expect(call).rejects.toThrow();
    await expect.poll(running).toBe("0");
    await agent.transport.terminateSession();
  });

  it("negotiates the protocol revision with sessions, also when it supports a newer one without", async () => {
    const { key } = await makeKey("agent");
    await using agent = await connect(key, "auto");
    expect(agent.client.getNegotiatedProtocolVersion()).toBe("2025-11-25");
    expect(agent.transport.sessionId).toBeDefined();
    await agent.transport.terminateSession();
  });

  it("leaves no sandbox behind when it disconnects without ending its session", async () => {
    const { key } = await makeKey("agent");
    const agent = await connect(key);
    await agent.call("run_command", { command: "true" });
    await agent.call("start_process", { command: "sleep 600" });
    expect(await sandboxIds()).toHaveLength(1);
    await agent.client.close();
    await expect.poll(sandboxIds).toEqual([]);
    expect(await sessionStatus({ url, apiKey: key }, agent.transport.sessionId)).toBe(404);
    expect(instancesIn(dirname(node.apiKeyFile))).toEqual([]);
  });
});

describe("two MCP clients with different keys", () => {
  it("neither see each other's sandboxes nor reach them by id", async () => {
    await using one = await connect((await makeKey("one")).key);
    await using other = await connect((await makeKey("other")).key);
    const { sandbox_id } = (await one.call("create_sandbox")) as unknown as { sandbox_id: string };
    await one.call("write_file", { sandbox_id, path: "secret", content: "mine" });
    expect((await other.call("list_sandboxes")).text).not.toContain(sandbox_id);
    for (const [tool, args] of [
      ["read_file", { path: "secret" }],
      ["run_command", { command: "cat secret" }],
      ["fork_sandbox", {}],
      ["destroy_sandbox", {}],
    ] as const) {
      const refused = await other.call(tool, { sandbox_id, ...args });
      expect(refused).toMatchObject({ isError: true });
      expect(refused.text).toMatch(/there is no sandbox/);
    }
    await expect(other.client.readResource({ uri: `sandbox://${sandbox_id}/files/secret` })).rejects.toThrow();
    expect((await one.call("read_file", { sandbox_id, path: "secret" })).text).toContain("mine");
    await one.transport.terminateSession();
    await other.transport.terminateSession();
    expect(await sandboxIds()).toEqual([]);
  });
});

describe("a node that stops", () => {
  it("ends its MCP sessions and destroys their sandboxes", async () => {
    await using stopped = await startSdkNode({ home: stoppedHome });
    await using agent = await connectHttp(stopped);
    const running = agent.call("run_command", { command: "sleep 600" });
    running.catch(() => {});
    await expect.poll(() => instancesIn(stoppedHome)).toHaveLength(1);
    await stopped.stop();
    expect(instancesIn(stoppedHome)).toEqual([]);
    await agent.client.close();
    await expect(running).rejects.toThrow();
  });
});
