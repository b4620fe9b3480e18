import { z } from "zod";
import { processFields, processRow, processState } from "../tool/process-row.ts";
import { defineSandboxTool } from "../tool/tool.ts";

export const listProcesses = defineSandboxTool({
  name: "list_processes",
  title: "List processes",
  description:
    "Lists the processes of a sandbox that have an id: those that run, and those that have ended but whose output can still be read.",
  annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  input: {},
  output: { processes: z.array(z.object(processFields)) },
  async run(_, { sandbox, signal }) {
    const found = await sandbox.processes({ signal });
    const processes = found.map(processRow);
    const lines = found.map((process) => {
      const { process_id, command, output_bytes } = processRow(process);
      return `${process_id} ${processState(process)}, ${output_bytes} bytes of output: ${command}`;
    });
    return { text: lines.length === 0 ? "The sandbox has no processes." : lines.join("\n"), structured: { processes } };
  },
});
