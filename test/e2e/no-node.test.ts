import { describe, expect, it } from "vitest";
import { runCli } from "./run-cli.ts";
import { useScratchDirectory } from "./scratch-directory.ts";

const scratch = useScratchDirectory();
/** Nothing listens on port 1. */
const run = (argv: readonly string[], env: NodeJS.ProcessEnv = {}) =>
  runCli(argv, { env: { SANDPIPER_HOME: scratch.path, SANDPIPER_PORT: "1", ...env } });

describe("where no node runs", () => {
  it.each([
    ["create"],
    ["ls"],
    ["ps", "x"],
    ["logs", "x"],
    ["kill", "x", "1"],
    ["cp", "x", "box:y"],
    ["rm", "x"],
    ["events"],
    ["stats"],
    ["keys", "ls"],
    ["pool", "ls"],
  ])("sandpiper %s says in one line how to start one, with exit code 3", async (...argv) => {
    expect(await run(argv)).toMatchObject({
      stdout: "",
      stderr: "sandpiper: no node runs at http://127.0.0.1:1; start one with: sandpiper up\n",
      exitCode: 3,
    });
  });

  it("exec says so too, with the exit code that no command has", async () => {
    const { stderr, exitCode } = await run(["exec", "x", "--", "true"]);
    expect([stderr, exitCode]).toEqual([expect.stringContaining("sandpiper up"), 125]);
  });

  it("run works in its own program, unless a node was named", async () => {
    expect(await run(["run", "--", "echo", "embedded"])).toMatchObject({ stdout: "embedded\n", exitCode: 0 });
    const { stderr, exitCode } = await run(["run", "--", "true"], { SANDPIPER_URL: "http://127.0.0.1:1" });
    expect(exitCode).toBe(125);
    expect(stderr).toContain("no node runs at http://127.0.0.1:1; start one there, or correct SANDPIPER_URL");
  });
});
