import type { Sandbox } from "@sandpiper/core";
import { describe, expect, it } from "vitest";
import { createGvisorFixture } from "../../packages/providers/src/gvisor/testing/fixture.ts";
import { shared } from "../../packages/providers/src/host/testing/shared.ts";

const fixture = await shared(createGvisorFixture());

/** Once /tmp/go exists, writes to the agent's end of the channel, as root can. */
const floodProgram = (lines: string, repeats: string) => `
import itertools, os, time
ends = [int(fd) for fd in os.listdir("/proc/1/fd") if os.readlink(f"/proc/1/fd/{fd}").startswith("host:")]
end = os.open(f"/proc/1/fd/{max(ends)}", os.O_WRONLY)
print("ready", flush=True)
while not os.path.exists("/tmp/go"): time.sleep(0.01)
for _ in ${repeats}: os.write(end, ${lines} * 65536)`;

const PERIOD_MS = 700;

/** How many commands the sandbox completes in a period. */
async function completed(sandbox: Sandbox): Promise<number> {
  const untilMs = performance.now() + PERIOD_MS;
  let count = 0;
  for (; performance.now() < untilMs; count++) await sandbox.exec("true");
  return count;
}

async function prepareFlood(sandbox: Sandbox, program: string): Promise<void> {
  const flood = await sandbox.start(["python3", "-c", program], { user: "root" });
  for await (const _ of flood.output) break;
}

describe("a guest that floods its channel", () => {
  it("loses it after repeated nonsense; the next command opens another", async () => {
    await using noisy = await fixture.create();
    await prepareFlood(noisy, floodProgram(String.raw`b"x\n"`, "range(4)"));
    await expect(noisy.exec("touch /tmp/go; sleep 60")).rejects.toMatchObject({ reason: "agent_malformed" });
    await expect.poll(() => noisy.exec("echo back").then(({ stdout }) => stdout, String)).toBe("back\n");
  });

  it("does not keep this program from serving its neighbours", async () => {
    await using noisy = await fixture.create();
    await using neighbour = await fixture.create();
    const quiet = await completed(neighbour);
    // The protocol allows blank lines. Without a budget, each batch blocked the event loop for seconds.
    await prepareFlood(noisy, floodProgram(String.raw`b"\n"`, "itertools.count()"));
    await noisy.writeFile("/tmp/go", "");
    expect(await completed(neighbour)).toBeGreaterThan(quiet / 4);
  });
});
