import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { repo } from "./packed-packages.ts";

const run = promisify(execFile);
const main = join(repo, "packages/cli/src/main.mjs");

/** Writes the URL of every loaded module to standard error. */
const recorder = `data:text/javascript,${encodeURIComponent(`
  import { registerHooks } from "node:module";
  import { writeSync } from "node:fs";
  registerHooks({
    load(url, context, next) {
      if (!url.startsWith("node:")) writeSync(2, url + "\\n");
      return next(url, context);
    },
  });
`)}`;

/** The files that a command line loads, as paths in the repository. */
async function loadedBy(...argv: readonly string[]): Promise<string[]> {
  const { stderr } = await run(process.execPath, ["--import", recorder, main, ...argv]);
  return stderr
    .split("\n")
    .filter((url) => url.startsWith("file:"))
    .map((url) => url.slice(`file://${repo}/`.length));
}

describe("the command line", () => {
  it("answers --version without loading any other module", async () => {
    expect(await loadedBy("--version")).toEqual(["packages/cli/src/main.mjs", "packages/cli/package.json"]);
  });

  it.each(["--help", "run --help", "completion bash"])(
    "answers %s without loading schemas, the SDK, the node or any dependency",
    async (line) => {
      const loaded = await loadedBy(...line.split(" "));
      expect(loaded).toContain("packages/cli/src/program.ts");
      expect(loaded.filter((path) => !/^packages\/(cli|protocol)\//.test(path))).toEqual([]);
      expect(loaded).not.toContain("packages/protocol/src/index.ts");
    },
  );
});
