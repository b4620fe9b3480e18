import { enableCompileCache } from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";

// Not in /tmp, where other users could plant code.
enableCompileCache(join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "sandpiper/compiled"));

const { runNode } = await import("./run-node.ts");
process.exit(await runNode(process.argv.slice(2)));
