import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The root of this clone, without a slash at its end. */
export const repoDirectory = fileURLToPath(new URL("../../", import.meta.url)).replace(/\/$/, "");

/** Where set-up keeps what it downloads and builds. */
export const cacheDirectory = join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "sandpiper");
