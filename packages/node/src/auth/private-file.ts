import { renameSync, rmSync, writeFileSync } from "node:fs";

/** Writes a file with mode 0600 atomically. */
export function writePrivateFile(path: string, content: string | Uint8Array): void {
  const draft = `${path}.new`;
  rmSync(draft, { force: true });
  writeFileSync(draft, content, { mode: 0o600, flag: "wx", flush: true });
  renameSync(draft, path);
}
