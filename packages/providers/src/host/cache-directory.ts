import { homedir } from "node:os";
import { join } from "node:path";

/** The directory in which set-up keeps what it downloads or builds for this user. */
export function cacheDirectory(environment: NodeJS.ProcessEnv = process.env): string {
  return join(environment["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "sandpiper");
}
