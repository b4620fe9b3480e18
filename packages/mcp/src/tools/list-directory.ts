import { z } from "zod";
import { pathInput } from "../tool/fields.ts";
import { defineSandboxTool } from "../tool/tool.ts";

const MAX_DEPTH = 16;

export const listDirectory = defineSandboxTool({
  name: "list_directory",
  title: "List a directory",
  description: "Lists the entries of a directory of a sandbox, sorted by path.",
  annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  input: {
    path: pathInput.optional().describe("The default is the user's home directory, where relative paths start."),
    depth: z
      .int()
      .min(1)
      .max(MAX_DEPTH)
      .optional()
      .describe("1, the default, lists its own entries; 2 also lists those of its subdirectories, and so on."),
  },
  output: {
    path: z.string(),
    entries: z.array(
      z.object({
        path: z.string().describe("Relative to the listed directory."),
        kind: z.string().describe("file, directory, symlink and so on."),
        size_bytes: z.int(),
        modified_at: z.string(),
        target: z.string().nullable().describe("Where a symlink points to."),
      }),
    ),
    has_more: z.boolean().describe("True if the directory has more entries than are listed."),
  },
  async run({ path = ".", depth = 1 }, { sandbox, session, signal }) {
    const { directoryEntries } = session.limits;
    const all = await sandbox.files.list(path, { depth, signal });
    const entries = all
      .toSorted((a, b) => (a.path < b.path ? -1 : 1))
      .slice(0, directoryEntries)
      .map((entry) => ({
        path: entry.path,
        kind: entry.kind,
        size_bytes: entry.sizeBytes,
        modified_at: entry.modifiedAt,
        target: entry.target,
      }));
    const lines = entries.map(({ path, kind, size_bytes, target }) => {
      if (kind === "directory") return `${path}/`;
      return target === null
        ? `${path} (${kind === "file" ? "" : `${kind}, `}${size_bytes} bytes)`
        : `${path} -> ${target}`;
    });
    const hasMore = all.length > entries.length;
    if (hasMore) lines.push(`… and ${all.length - entries.length} more; list a subdirectory, or use find.`);
    return {
      text: lines.length === 0 ? "The directory is empty." : lines.join("\n"),
      structured: { path, entries, has_more: hasMore },
    };
  },
});
