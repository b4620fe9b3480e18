// JavaScript, so that Node loads its TypeScript compiler only for files that the cache does not hold yet.
import { enableCompileCache } from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";
import manifest from "../package.json" with { type: "json" };

const words = process.argv.slice(2);
if (words.length === 1 && (words[0] === "--version" || words[0] === "-V")) {
  // Scripts ask for it, so it loads no other module.
  console.log(`sandpiper ${manifest.version}`);
} else {
  // In the user's own cache and not in /tmp, where another user could place code to run.
  enableCompileCache(join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "sandpiper/compiled"));
  const { runProgram } = await import("./program.ts");
  // Standard input may still be open, and would keep the program alive.
  process.exit(await runProgram(words));
}
