import { SandboxError } from "@sandpiper/core";

/** An entry's place below the directory an archive is unpacked into; empty for that directory itself. */
export function archiveName(name: string): string {
  const parts = name.split("/").filter((part) => part !== "" && part !== ".");
  if (!name.startsWith("/") && !name.includes("\0") && !parts.includes("..")) return parts.join("/");
  throw new SandboxError("invalid_argument", {
    reason: "path_escapes",
    message: `the archive holds ${JSON.stringify(name.slice(0, 256))}, which could lead outside of its directory`,
    hint: "make the archive with relative names and without ..",
  });
}
