import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { sandpiper } from "../e2e/run-cli.ts";

/** The message to the test, which may then kill the program. */
export interface ClientStarted {
  readonly serverPid: number;
  readonly sandboxIds: readonly string[];
}

/** A client in its own process, with two sandboxes, a process and a running command. */
async function work(): Promise<void> {
  const env = process.env as Record<string, string>;
  const transport = new StdioClientTransport({ command: sandpiper, args: ["mcp"], env });
  const mcp = new Client({ name: "test", version: "1.0.0" });
  await mcp.connect(transport);
  const call = async (name: string, input: Record<string, unknown>) =>
    (await mcp.callTool({ name, arguments: input })).structuredContent as { sandbox_id: string };
  const { sandbox_id: first } = await call("start_process", { command: "sleep 1000" });
  const { sandbox_id: second } = await call("create_sandbox", {});
  call("run_command", { command: "sleep 1000" }).catch(() => {});
  const started: ClientStarted = { serverPid: transport.pid as number, sandboxIds: [first, second] };
  process.send?.(started);
}

await work();
