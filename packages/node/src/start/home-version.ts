import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { SandboxError } from "@sandpiper/core";
import manifest from "../../package.json" with { type: "json" };
import { writePrivateFile } from "../auth/private-file.ts";

const FILE = "version";
const TOO_NEW: readonly string[] = ["database_too_new", "store_too_new"];

/** Records which version of Sandpiper used the home last, for the error of an earlier one. */
export function recordVersion(home: string): void {
  if (versionOf(home) !== manifest.version) writePrivateFile(join(home, FILE), `${manifest.version}\n`);
}

/** Adds both versions of Sandpiper to an error about a home that a newer one wrote. */
export function withVersions(home: string, thrown: unknown): unknown {
  if (!(thrown instanceof SandboxError) || !TOO_NEW.includes(thrown.reason)) return thrown;
  const newer = versionOf(home);
  if (newer === undefined) return thrown;
  const { code, reason, message, hint, details } = thrown;
  const versions = `Sandpiper ${newer} used this home last, and this is Sandpiper ${manifest.version}`;
  return SandboxError.fromFields({ code, reason, message: `${message}. ${versions}`, hint, details, cause: thrown });
}

function versionOf(home: string): string | undefined {
  const path = join(home, FILE);
  return existsSync(path) ? readFileSync(path, "utf8").trim().slice(0, 100) : undefined;
}
