import type { LinkResource, PreviewResource } from "@sandpiper/protocol";
import type { CallOptions } from "../call-options.ts";
import type { SandboxLink } from "../sandbox-link.ts";

export interface UrlOptions extends CallOptions {
  /** How long a link is valid; an hour by default, at most 30 days. Not with `public`. */
  readonly expiresInMs?: number | undefined;
  /** Open the preview to everyone, or make it private again. Without it, nothing changes. */
  readonly public?: boolean | undefined;
  /** The page to open, with its query. */
  readonly path?: string | undefined;
}

export async function previewUrl({ id, http }: SandboxLink, port: number, options: UrlOptions): Promise<string> {
  const { expiresInMs, public: isPublic, path, signal } = options;
  if (isPublic === undefined) {
    return (await http.json<LinkResource>("createLink", { path: { id }, json: { port, expiresInMs, path }, signal }))
      .url;
  }
  const request = { path: { id, port: String(port) }, json: { isPublic }, signal, isRepeatable: true };
  const { url } = await http.json<PreviewResource>("setPreview", request);
  return path === undefined ? url : url.slice(0, -1) + path;
}
