import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { sharedDirectory } from "../../packages/providers/src/host/testing/shared.ts";
import { findLeftovers } from "./leftovers.ts";
import { runCli } from "./run-cli.ts";

const scratch = sharedDirectory("e2e");

describe("sandpiper doctor", () => {
  it("reports every check in JSON and leaves nothing behind", async () => {
    const { stdout, stderr, exitCode } = await runCli(["doctor", "--json"], { env: { SANDPIPER_HOME: scratch } });
    expect([stderr, exitCode]).toEqual(["", 0]);
    const { works, checks } = JSON.parse(stdout);
    expect(works).toBe(true);
    const names = checks.map(({ name }: { name: string }) => name);
    expect(names).toEqual(
      expect.arrayContaining(["node", "root", "go", "cargo", "runsc", "cgroups", "agent", "languages", "disk"]),
    );
    expect(names).toEqual(expect.arrayContaining(["process ids", "leftovers", "provider gvisor", "provider local"]));
    expect(checks).not.toContainEqual(expect.objectContaining({ status: "failed" }));
    expect(findLeftovers(scratch)).toEqual([]);
  });

  it("prints a report without colors when its output is not a terminal", async () => {
    const { stdout, exitCode } = await runCli(["doctor"], { env: { SANDPIPER_HOME: scratch } });
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/^✓ provider gvisor +runsc .* ran a command$/m);
    expect(stdout).toMatch(/^✓ provider local +isolates nothing/m);
    expect(stdout).not.toContain("\x1b");
  });

  it("prints a fix and exits with 1 when the default provider does not work", async () => {
    const { stdout, exitCode } = await runCli(["doctor"], {
      env: { SANDPIPER_HOME: scratch, SANDPIPER_RUNSC: join(scratch, "no-runsc") },
    });
    expect(exitCode).toBe(1);
    expect(stdout).toMatch(/^✗ runsc .*no-runsc/m);
    expect(stdout).toMatch(/^✗ provider gvisor /m);
    expect(stdout).toContain("unset SANDPIPER_RUNSC");
    expect(stdout).toContain("Sandpiper does not work here yet");
  });
});
