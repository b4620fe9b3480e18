import { enableCompileCache } from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";

// In the user's own cache and not in /tmp, where somebody else could have put code to run.
enableCompileCache(join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "sandpiper/compiled"));

const { runNode } = await import("./run-node.ts");
process.exit(await runNode(process.argv.slice(2)));
