import { type McpServer, type ReadResourceResult, ResourceTemplate } from "@modelcontextprotocol/server";
import type { Sandbox } from "@sandpiper/sdk";
import { textOf } from "../output/utf8.ts";
import type { McpSession } from "../session/mcp-session.ts";
import { decodePath, fileUri, mediaTypeOf } from "./file-uri.ts";
import { completeSandboxId, MAX_COMPLETIONS, ofEach, readResource } from "./read-resource.ts";

/** The files and directories of sandboxes. The list has those in the home directories of the session's own sandboxes. */
export function registerFileResources(server: McpServer, session: McpSession): void {
  const template = new ResourceTemplate("sandbox://{id}/files{+path}", {
    list: async ({ mcpReq: { signal } }) => {
      const resources = await ofEach(session, (sandbox) => homeFiles(sandbox, signal));
      return { resources: resources.slice(0, session.limits.directoryEntries) };
    },
    complete: {
      id: (value) => completeSandboxId(session, value),
      path: (value, context) => completePath(session, context?.arguments?.["id"], value),
    },
  });
  const metadata = {
    title: "Files of a sandbox",
    description: "A file of a sandbox by its absolute path; a directory reads as the list of its entries.",
  };
  server.registerResource("files", template, metadata, (uri, { id, path }, { mcpReq: { signal } }) =>
    readResource(uri, async () => {
      const sandbox = await session.sandbox(String(id), signal);
      return await readFile(sandbox, { path: decodePath(String(path)), uri: uri.href, session, signal });
    }),
  );
}

interface ReadFileOptions {
  readonly path: string;
  readonly uri: string;
  readonly session: McpSession;
  readonly signal: AbortSignal;
}

async function readFile(sandbox: Sandbox, options: ReadFileOptions): Promise<ReadResourceResult> {
  const { path, uri, session, signal } = options;
  const { kind } = await sandbox.files.stat(path, { signal });
  if (kind === "directory") {
    const entries = await sandbox.files.list(path, { signal });
    const names = entries.map((entry) => (entry.kind === "directory" ? `${entry.path}/` : entry.path)).sort();
    return { contents: [{ uri, mimeType: "text/plain", text: names.join("\n") }] };
  }
  const bytes = await sandbox.files.read(path, { lengthBytes: session.limits.transferBytes, signal });
  const mimeType = mediaTypeOf(path);
  const isText = !mimeType.startsWith("image/") && !bytes.includes(0);
  const content = isText ? { text: textOf(bytes) } : { blob: Buffer.from(bytes).toString("base64") };
  // Text without a known extension is plain text.
  const isUnknown = mimeType === "application/octet-stream";
  return { contents: [{ uri, mimeType: isText && isUnknown ? "text/plain" : mimeType, ...content }] };
}

async function homeFiles(sandbox: Sandbox, signal: AbortSignal) {
  const { path: home } = await sandbox.files.stat(".", { signal });
  const entries = await sandbox.files.list(".", { signal });
  return entries
    .filter(({ kind }) => kind === "file")
    .map(({ path, sizeBytes }) => {
      const absolute = `${home}/${path}`;
      return { uri: fileUri(sandbox.id, absolute), name: absolute, mimeType: mediaTypeOf(path), size: sizeBytes };
    });
}

/** Completes a path from the entries of its directory, if the sandbox is known. */
async function completePath(session: McpSession, id: string | undefined, typed: string): Promise<string[]> {
  if (id === undefined) return [];
  const directory = typed.slice(0, typed.lastIndexOf("/") + 1) || "/";
  const sandbox = await session.sandbox(id);
  const entries = await sandbox.files.list(decodePath(directory)).catch(() => []);
  return entries
    .map(({ path, kind }) => `${directory}${encodeURIComponent(path)}${kind === "directory" ? "/" : ""}`)
    .filter((path) => path.startsWith(typed))
    .sort()
    .slice(0, MAX_COMPLETIONS);
}
