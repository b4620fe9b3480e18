import { type ChildProcess, fork, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { sandpiper } from "../e2e/run-cli.ts";
import { StdioBed } from "./stdio-bed.ts";
import type { ClientStarted } from "./stdio-client-program.ts";

const program = join(import.meta.dirname, "stdio-client-program.ts");

async function startClient(bed: StdioBed): Promise<ClientStarted & { readonly client: ChildProcess }> {
  const client = fork(program, { env: bed.env });
  onTestFinished(() => void client.kill("SIGKILL"));
  const [started] = (await once(client, "message")) as [ClientStarted];
  bed.saw(...started.sandboxIds);
  onTestFinished(() => endProcess(started.serverPid));
  return { ...started, client };
}

function endProcess(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // The server has exited.
  }
}

const isRunning = (pid: number) => existsSync(`/proc/${pid}`);

describe("an MCP server over standard input and output", () => {
  it("exits and leaves nothing behind when its client is killed during a command", async () => {
    const bed = new StdioBed();
    const { client, serverPid } = await startClient(bed);
    expect(bed.left()).not.toEqual([]);
    client.kill("SIGKILL");
    await expect.poll(() => isRunning(serverPid)).toBe(false);
    await bed.expectNothingLeft();
  });

  it("removes the leftovers of a killed server when it starts", async () => {
    const bed = new StdioBed();
    const { client, serverPid } = await startClient(bed);
    process.kill(serverPid, "SIGKILL");
    await expect.poll(() => isRunning(serverPid)).toBe(false);
    client.kill("SIGKILL");
    expect(bed.left()).not.toEqual([]);
    const next = await bed.connect();
    expect((await next.call("list_sandboxes")).structured.sandboxes).toEqual([]);
    await next.close();
    await bed.expectNothingLeft();
  });

  it.each(["SIGTERM", "SIGINT", "SIGHUP"] as const)("exits on %s and leaves nothing behind", async (signal) => {
    const bed = new StdioBed();
    const server = await bed.connect();
    await server.call("start_process", { command: "sleep 1000" });
    const { pid } = server;
    process.kill(pid, signal);
    await expect.poll(() => isRunning(pid)).toBe(false);
    await bed.expectNothingLeft();
  });

  it("writes only messages to standard output, and exits with 0 when its input ends", async () => {
    const bed = new StdioBed();
    const server = spawn(sandpiper, ["mcp"], { env: bed.env, stdio: ["pipe", "pipe", "pipe"] });
    onTestFinished(() => void server.kill("SIGKILL"));
    let output = "";
    server.stdout.on("data", (chunk) => {
      output += chunk;
    });
    const clientInfo = { name: "raw", version: "1" };
    const send = (message: object) => server.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
    const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo };
    send({ id: 1, method: "initialize", params });
    send({ method: "notifications/initialized" });
    server.stdin.write("not a message\n");
    send({ id: 2, method: "tools/call", params: { name: "run_command", arguments: { command: "echo hi" } } });
    await expect.poll(() => output).toContain('"id":2');
    server.stdin.end();
    const [exitCode] = await once(server, "close");
    expect(exitCode).toBe(0);
    const messages = output
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(messages.every(({ jsonrpc }) => jsonrpc === "2.0")).toBe(true);
    expect(messages.find(({ id }) => id === 1).result).toMatchObject({ serverInfo: { name: "sandpiper" } });
    expect(messages.find(({ id }) => id === 2).result.structuredContent).toMatchObject({ stdout: "hi\n" });
    await bed.expectNothingLeft();
  });
});
