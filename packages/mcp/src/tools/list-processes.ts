import { z } from "zod";
import { sandboxIdInput, sandboxIdOutput } from "../tool/fields.ts";
import { processFields, processRow, processState } from "../tool/process-row.ts";
import { defineTool } from "../tool/tool.ts";

export const listProcesses = defineTool({
  name: "list_processes",
  title: "List processes",
  description:
    "Lists the processes of a sandbox that have an id: those that run, and those that have ended but whose output can still be read.",
  annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  input: z.object({ sandbox_id: sandboxIdInput }),
  output: z.object({ sandbox_id: sandboxIdOutput, processes: z.array(z.object(processFields)) }),
  async run({ sandbox_id }, { session, signal }) {
    const sandbox = await session.sandbox(sandbox_id, signal);
    const found = await sandbox.processes({ signal });
    const processes = found.map(processRow);
    const lines = found.map((process) => {
      const { process_id, command, output_bytes } = processRow(process);
      return `${process_id} ${processState(process)}, ${output_bytes} bytes of output: ${command}`;
    });
    return {
      text: lines.length === 0 ? "The sandbox has no processes." : lines.join("\n"),
      structured: { sandbox_id: sandbox.id, processes },
    };
  },
});
