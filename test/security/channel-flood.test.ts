import type { Sandbox } from "@sandpiper/sdk";
import { describe, expect, it } from "vitest";
import { GvisorHome } from "../node/gvisor-home.ts";
import { NodeProcess } from "../node/node-process.ts";

/** Writes to the agent's end of the channel, as root can. The agent's own messages stay between those of the flood. */
const floodProgram = (line: string) => `
import os
ends = [f"/proc/1/fd/{fd}" for fd in os.listdir("/proc/1/fd") if os.readlink(f"/proc/1/fd/{fd}").startswith("host:")]
end = os.open(sorted(ends, key=lambda path: int(path.rsplit("/")[-1]))[-1], os.O_WRONLY)
while True: os.write(end, ${line} * 1000)`;

/** Each took all of the node's time, and blocked its event loop for up to five seconds. */
const floods = {
  "blank lines": String.raw`b"\n"`,
  "messages that do not follow the protocol": String.raw`b"{}\n"`,
  "messages about calls that have ended": String.raw`b'{"jsonrpc":"2.0","id":1,"result":{}}\n'`,
};

/** How many commands a sandbox completes while another does `work`. */
async function completed(sandbox: Sandbox, rounds: number): Promise<number> {
  const untilMs = performance.now() + rounds;
  let count = 0;
  while (performance.now() < untilMs) {
    await sandbox.exec("true");
    count++;
  }
  return count;
}

describe("a guest that floods its channel", () => {
  it("does not keep its neighbours from running commands", async () => {
    await using home = new GvisorHome();
    await using node = await NodeProcess.start({ home: home.path, port: 0 });
    const neighbour = await node.client.sandboxes.create();
    const quiet = await completed(neighbour, 1000);
    for (const [name, line] of Object.entries(floods)) {
      const noisy = await node.client.sandboxes.create();
      await noisy.start(["python3", "-c", floodProgram(line)], { user: "root" });
      const next = await completed(neighbour, 1000);
      await noisy.destroy();
      // An idle machine completes as many; without a budget, a tenth.
      expect(next, name).toBeGreaterThan(quiet / 4);
    }
  });
});
