import { type McpServer, ResourceTemplate } from "@modelcontextprotocol/server";
import type { Sandbox } from "@sandpiper/sdk";
import { readOutput } from "../output/read-output.ts";
import type { McpSession } from "../session/mcp-session.ts";
import { findProcess, processRow, processState } from "../tool/process-row.ts";
import { completeSandboxId, MAX_COMPLETIONS, ofEach, readResource } from "./read-resource.ts";

const MAX_NAME_CHARS = 200;

/** The output of processes. The list has those of the session's own sandboxes. */
export function registerProcessResources(server: McpServer, session: McpSession): void {
  const template = new ResourceTemplate("sandbox://{id}/processes/{process}/output", {
    list: async ({ mcpReq: { signal } }) => {
      return { resources: await ofEach(session, (sandbox) => outputsOf(sandbox, signal)) };
    },
    complete: {
      id: (value) => completeSandboxId(session, value),
      process: (value, context) => completeProcess(session, context?.arguments?.["id"], value),
    },
  });
  const metadata = {
    title: "Output of a process",
    description: "The output of a process of a sandbox so far; only the end of long output.",
    mimeType: "text/plain",
  };
  server.registerResource("process-output", template, metadata, (uri, { id, process }, { mcpReq: { signal } }) =>
    readResource(uri, async () => {
      const sandbox = await session.sandbox(String(id), signal);
      const { startOffset, endOffset } = await findProcess(sandbox, String(process), signal);
      const offset = Math.max(startOffset, endOffset - session.limits.outputBytes);
      const call = { session, signal, progress: () => {} };
      const { text } = await readOutput(sandbox, String(process), { offset, waitMs: 0, waitFor: "output", call });
      return { contents: [{ uri: uri.href, mimeType: "text/plain", text }] };
    }),
  );
}

async function outputsOf(sandbox: Sandbox, signal: AbortSignal) {
  const processes = await sandbox.processes({ signal });
  return processes.map((process) => ({
    uri: `sandbox://${sandbox.id}/processes/${process.id}/output`,
    name: processRow(process).command.slice(0, MAX_NAME_CHARS),
    description: `Output of a process that ${processState(process)}.`,
  }));
}

async function completeProcess(session: McpSession, id: string | undefined, typed: string): Promise<string[]> {
  if (id === undefined) return [];
  const processes = await (await session.sandbox(id)).processes();
  return processes
    .map((process) => process.id)
    .filter((process) => process.startsWith(typed))
    .slice(0, MAX_COMPLETIONS);
}
