import { SandboxError } from "@sandpiper/sdk";

/** Media types that clients can show; all others are text or bytes. */
const mediaTypes: Readonly<Record<string, string>> = {
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  gif: "image/gif",
  webp: "image/webp",
  pdf: "application/pdf",
  json: "application/json",
  html: "text/html",
  css: "text/css",
  csv: "text/csv",
  md: "text/markdown",
  txt: "text/plain",
  log: "text/plain",
  py: "text/x-python",
  js: "text/javascript",
  ts: "text/x-typescript",
  sh: "text/x-shellscript",
};

/** By file extension. */
export function mediaTypeOf(path: string): string {
  const suffix = /\.([^./]+)$/.exec(path)?.[1]?.toLowerCase() ?? "";
  return Object.hasOwn(mediaTypes, suffix) ? (mediaTypes[suffix] as string) : "application/octet-stream";
}

/** The URI of a file, by its absolute path. */
export function fileUri(sandboxId: string, path: string): string {
  return `sandbox://${sandboxId}/files${path.split("/").map(encodeURIComponent).join("/")}`;
}

/** The path in such a URI. */
export function decodePath(path: string): string {
  try {
    return decodeURIComponent(path) || "/";
  } catch (cause) {
    throw new SandboxError("bad_path", {
      message: `${path} is not a valid path in a resource URI`,
      hint: "percent-encode each segment of the path",
      cause,
    });
  }
}
