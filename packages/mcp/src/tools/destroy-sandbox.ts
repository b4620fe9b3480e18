import { z } from "zod";
import { sandboxIdInput, sandboxIdOutput } from "../tool/fields.ts";
import { defineTool } from "../tool/tool.ts";

export const destroySandbox = defineTool({
  name: "destroy_sandbox",
  title: "Destroy a sandbox",
  description:
    "Destroys a sandbox with its processes and files, permanently. After the default sandbox is destroyed, the next call without sandbox_id creates a new, empty one.",
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  input: z.object({ sandbox_id: sandboxIdInput }),
  output: z.object({ sandbox_id: sandboxIdOutput.nullable(), destroyed: z.boolean() }),
  async run({ sandbox_id }, { session, signal }) {
    if (sandbox_id === undefined && session.defaultId === undefined) {
      return {
        text: "Nothing was destroyed: the session has no default sandbox.",
        structured: { sandbox_id: null, destroyed: false },
      };
    }
    const sandbox = await session.sandbox(sandbox_id, signal);
    await session.destroy(sandbox);
    return { text: `Sandbox ${sandbox.id} is destroyed.`, structured: { sandbox_id: sandbox.id, destroyed: true } };
  },
});
