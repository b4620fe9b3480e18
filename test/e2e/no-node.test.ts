import { describe, expect, it } from "vitest";
import { sharedDirectory } from "../../packages/providers/src/host/testing/shared.ts";
import { runCli } from "./run-cli.ts";

const scratch = sharedDirectory("e2e");
/** Nothing listens on port 1. */
const run = (argv: readonly string[], env: NodeJS.ProcessEnv = {}) =>
  runCli(argv, { env: { SANDPIPER_HOME: scratch, SANDPIPER_PORT: "1", ...env } });

describe("without a node", () => {
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
  ])("sandpiper %s fails with one line that explains how to start one, and exit code 3", async (...argv) => {
    expect(await run(argv)).toMatchObject({
      stdout: "",
      stderr: 'sandpiper: no node is running at http://127.0.0.1:1: start one with "sandpiper up"\n',
      exitCode: 3,
    });
  });

  it("sandpiper exec fails in the same way, with exit code 125", async () => {
    const { stderr, exitCode } = await run(["exec", "x", "--", "true"]);
    expect([stderr, exitCode]).toEqual([expect.stringContaining("sandpiper up"), 125]);
  });

  it("sandpiper run works in its own process, unless SANDPIPER_URL names a node", async () => {
    expect(await run(["run", "--", "echo", "embedded"])).toMatchObject({ stdout: "embedded\n", exitCode: 0 });
    const { stderr, exitCode } = await run(["run", "--", "true"], { SANDPIPER_URL: "http://127.0.0.1:1" });
    expect(exitCode).toBe(125);
    expect(stderr).toContain("no node is running at http://127.0.0.1:1: start one there, or correct SANDPIPER_URL");
  });
});
