import { execFile } from "node:child_process";
import { globSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { installDouble } from "../../packages/providers/src/firecracker/testing/install-double.ts";

const script = fileURLToPath(new URL("../../scripts/verify-firecracker.ts", import.meta.url));
const run = promisify(execFile);

async function verify(
  args: readonly string[],
  signal: AbortSignal,
): Promise<{ code: number; stdout: string; stderr: string }> {
  const env = { ...process.env, SANDPIPER_KVM: "/dev/null" };
  return await run(process.execPath, [script, ...args], { env, signal }).then(
    (output) => ({ code: 0, ...output }),
    (error) => error,
  );
}

describe("npm run verify-firecracker", () => {
  it("takes the double of Firecracker through every step, reports its one difference, and leaves nothing", async ({
    signal,
  }) => {
    await using double = await installDouble();
    const before = globSync("/tmp/vf-*");
    const { code, stdout } = await verify([double.firecracker, "--boot-timeout", "120"], signal);
    const steps = [...stdout.matchAll(/^\| (.+?) \| (passed|failed|not run) \| \d+ \| (.*) \|$/gm)];
    const failed = steps.filter(([, , status]) => status !== "passed").map(([row]) => row);
    // The double's agent is not the machine's first process, so it cannot set a hostname.
    expect(failed).toEqual([expect.stringContaining("hostname prints the same in several machines")]);
    expect(steps.length).toBe(12);
    expect(stdout).toContain("Firecracker v1.16.1");
    expect(stdout).toContain("11 of 12 steps passed");
    expect(code).toBe(1);
    expect(globSync("/tmp/vf-*")).toEqual(before);
  }, 240_000);

  it("reports a program that is not a Firecracker, and does not run the other steps", async ({ signal }) => {
    const { code, stdout } = await verify(["/bin/true"], signal);
    expect(code).toBe(1);
    expect(stdout).toMatch(/\| boot \| failed \| \d+ \| .*is not a working Firecracker/);
    expect(stdout).toContain("| leftovers | not run | 0 | no machine boots |");
  });

  it.each([
    [[], "PATH of the firecracker program is missing"],
    [["/nonexistent/firecracker"], "/nonexistent/firecracker does not exist"],
    [["/bin/true", "--boot-timeout", "soon"], "expected a number of seconds above 0"],
    [["/bin/true", "--fast"], "--fast"],
  ])("refuses %j and shows its usage", async (args, words) => {
    const { code, stderr } = await verify(args, AbortSignal.timeout(20_000));
    expect(code).toBe(2);
    expect(stderr).toContain(words);
    expect(stderr).toContain("usage: npm run verify-firecracker");
  });
});
