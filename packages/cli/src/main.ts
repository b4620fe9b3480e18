import { enableCompileCache } from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";

// In the user's own cache and not in /tmp, where another user could place code.
enableCompileCache(join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "sandpiper/compiled"));

const { runProgram } = await import("./program.ts");
// Standard input may still be open, and would keep the program alive.
process.exit(await runProgram(process.argv.slice(2)));
