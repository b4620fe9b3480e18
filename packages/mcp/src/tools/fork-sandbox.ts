import { z } from "zod";
import { checkpointInput } from "../tool/fields.ts";
import { sandboxFields, sandboxRow } from "../tool/sandbox-row.ts";
import { defineSandboxTool } from "../tool/tool.ts";

const MAX_FORKS = 32;

export const forkSandbox = defineSandboxTool({
  name: "fork_sandbox",
  title: "Copy a sandbox",
  description:
    "Creates copies of a sandbox, with its files and, if its provider supports it, its running processes. The original does not change. The copies are destroyed when the session ends.",
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
  input: {
    count: z.int().min(1).max(MAX_FORKS).optional().describe("The number of copies; the default is 1."),
    checkpoint: checkpointInput.describe("The id or name of the checkpoint to copy; the current state if omitted."),
    name: z.string().min(1).max(128).optional().describe("A name for people."),
  },
  output: { forks: z.array(z.object(sandboxFields)) },
  async run({ count, checkpoint, name }, { sandbox, session }) {
    const forks = await session.fork(sandbox, { count, checkpoint, name });
    const rows = forks.map(({ info }) => sandboxRow(info, session));
    return {
      text: `Sandbox ${sandbox.id} was copied to ${rows.map((row) => row.sandbox_id).join(", ")}.`,
      structured: { forks: rows },
    };
  },
});
