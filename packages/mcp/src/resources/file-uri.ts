import { SandboxError } from "@sandpiper/sdk";

/** Media types that clients show by themselves; everything else is text or bytes. */
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

/** By the end of its name. */
export function mediaTypeOf(path: string): string {
  const suffix = /\.([^./]+)$/.exec(path)?.[1]?.toLowerCase() ?? "";
  return Object.hasOwn(mediaTypes, suffix) ? (mediaTypes[suffix] as string) : "application/octet-stream";
}

/** Of a file by its absolute path. */
export function fileUri(sandboxId: string, path: string): string {
  return `sandbox://${sandboxId}/files${path.split("/").map(encodeURIComponent).join("/")}`;
}

/** The path in such an address. */
export function decodePath(path: string): string {
  try {
    return decodeURIComponent(path) || "/";
  } catch (cause) {
    throw new SandboxError("bad_path", {
      message: `${path} is no path of an address`,
      hint: "encode each part of it as in a URL",
      cause,
    });
  }
}
