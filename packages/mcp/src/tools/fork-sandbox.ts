import { z } from "zod";
import { sandboxIdInput, sandboxIdOutput } from "../tool/fields.ts";
import { sandboxFields, sandboxRow } from "../tool/sandbox-row.ts";
import { defineTool } from "../tool/tool.ts";

const MAX_FORKS = 32;

export const forkSandbox = defineTool({
  name: "fork_sandbox",
  title: "Copy a sandbox",
  description:
    "Makes new sandboxes that go on from where one is, with its files and, where its provider can, its running processes; that one is not touched. The copies are destroyed when the session ends.",
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
  input: z.object({
    sandbox_id: sandboxIdInput,
    count: z.int().min(1).max(MAX_FORKS).optional().describe("How many copies; 1 unless given."),
    checkpoint: z.string().min(1).optional().describe("Where they begin: a checkpoint's id or name; now unless given."),
    name: z.string().min(1).max(128).optional().describe("A name for people."),
  }),
  output: z.object({ sandbox_id: sandboxIdOutput, forks: z.array(z.object(sandboxFields)) }),
  async run({ sandbox_id, count, checkpoint, name }, { session, signal }) {
    const sandbox = await session.sandbox(sandbox_id, signal);
    const forks = await session.fork(sandbox, { count, checkpoint, name });
    const rows = forks.map(({ info }) => sandboxRow(info, session));
    return {
      text: `Sandbox ${sandbox.id} goes on in ${rows.map((row) => row.sandbox_id).join(", ")} as well.`,
      structured: { sandbox_id: sandbox.id, forks: rows },
    };
  },
});
