import { homedir } from "node:os";
import { join } from "node:path";

/** Where set-up keeps what it fetched or built for this user. */
export function cacheDirectory(environment: NodeJS.ProcessEnv = process.env): string {
  return join(environment["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "sandpiper");
}
