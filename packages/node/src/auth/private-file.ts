import { renameSync, rmSync, writeFileSync } from "node:fs";

/** Only for its owner, and whole or not there. */
export function writePrivateFile(path: string, content: string | Uint8Array): void {
  const draft = `${path}.new`;
  rmSync(draft, { force: true });
  writeFileSync(draft, content, { mode: 0o600, flag: "wx", flush: true });
  renameSync(draft, path);
}
