// JavaScript, so that Node loads its TypeScript compiler only for files that the cache does not hold yet.
// Old versions of Node must get as far as the message about them: use nothing newer than they are.
import module from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";

const words = process.argv.slice(2);
if (Number.parseInt(process.versions.node, 10) < 24) {
  console.error(`sandpiper: Node.js 24 or newer is needed; found: v${process.versions.node} at ${process.execPath}
  Install it from https://nodejs.org/en/download, or run npm install in your clone of Sandpiper.`);
  process.exitCode = 125;
} else if (words.length === 1 && (words[0] === "--version" || words[0] === "-V")) {
  // Scripts ask for it, so it loads no other module.
  const { version } = module.createRequire(import.meta.url)("../package.json");
  console.log(`sandpiper ${version}`);
} else {
  // In the user's own cache and not in /tmp, where another user could place code to run.
  module.enableCompileCache(join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "sandpiper/compiled"));
  const { runProgram } = await import("./program.ts");
  // Standard input may still be open, and would keep the program alive.
  process.exit(await runProgram(words));
}
