import { z } from "zod";
import { sandboxFields, sandboxRow } from "../tool/sandbox-row.ts";
import { defineTool } from "../tool/tool.ts";

const MAX_ROWS = 200;

export const listSandboxes = defineTool({
  name: "list_sandboxes",
  title: "List sandboxes",
  description:
    "Lists the sandboxes that this server's key may use, newest first: those of this session, and those that were kept or created elsewhere.",
  annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  input: z.object({}),
  output: z.object({
    sandboxes: z.array(z.object(sandboxFields)),
    has_more: z.boolean().describe(`True if there are more than the ${MAX_ROWS} sandboxes listed.`),
  }),
  async run(_, { session, signal }) {
    const client = await session.client();
    const sandboxes = [];
    let hasMore = false;
    for await (const { info } of client.sandboxes.list({ signal })) {
      if (info.state === "destroyed") continue;
      hasMore = sandboxes.length === MAX_ROWS;
      if (hasMore) break;
      sandboxes.push(sandboxRow(info, session));
    }
    const lines = sandboxes.map(({ sandbox_id, state, name, is_default, is_temporary }) => {
      const marks = [name, is_default && "default", !is_temporary && "kept"].filter(Boolean).join(", ");
      return `${sandbox_id} ${state}${marks === "" ? "" : ` (${marks})`}`;
    });
    const text = lines.length === 0 ? "No sandboxes." : lines.join("\n");
    return { text: hasMore ? `${text}\n… and more.` : text, structured: { sandboxes, has_more: hasMore } };
  },
});
