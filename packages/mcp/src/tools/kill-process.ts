import { z } from "zod";
import { processIdInput } from "../tool/fields.ts";
import { findProcess, processFields, processRow, processState } from "../tool/process-row.ts";
import { defineSandboxTool } from "../tool/tool.ts";
import { within } from "../tool/within.ts";

/** Time for a process to clean up after a signal; one that ignores it keeps running. */
const PATIENCE_MS = 2000;

export const killProcess = defineSandboxTool({
  name: "kill_process",
  title: "Kill a process",
  description: "Sends a signal, SIGKILL by default, to a process and its descendants. Its output can still be read.",
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  input: {
    process_id: processIdInput,
    signal: z
      .string()
      .regex(/^(SIG)?[A-Z0-9]{1,10}$/)
      .optional()
      .describe('For example "SIGTERM" or "SIGINT"; the default is SIGKILL.'),
  },
  output: processFields,
  async run({ process_id, signal: name = "SIGKILL" }, { sandbox, signal }) {
    const before = await findProcess(sandbox, process_id, signal);
    if (before.isRunning) {
      const process = await sandbox.attach(process_id, { offset: before.endOffset, signal });
      try {
        await process.signal(name, { target: "tree", signal });
        await within(PATIENCE_MS, signal, process.wait());
      } finally {
        process.detach();
      }
    }
    const after = await findProcess(sandbox, process_id, signal);
    const note = after.isRunning ? ` It received ${name}; use SIGKILL to end it.` : "";
    return { text: `Process ${process_id} ${processState(after)}.${note}`, structured: processRow(after) };
  },
});
