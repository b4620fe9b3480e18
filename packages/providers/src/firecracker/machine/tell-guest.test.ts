import { join } from "node:path";
import { systemClock } from "@sandpiper/core";
import { expect, it } from "vitest";
import { shared } from "../../host/testing/shared.ts";
import { createDoubleFixture } from "../testing/fixture.ts";
import { untilConnected } from "../vsock/vsock-connection.ts";
import { tellGuest } from "./tell-guest.ts";

const fixture = await shared(createDoubleFixture());
const sandbox = await shared(fixture.create());

it("takes the time after the first command of the restored machine, which is slow", async () => {
  const path = join(fixture.stateDirectory, "firecracker/instances", sandbox.id, "machine/vsock.sock");
  const { signal } = new AbortController();
  const agent = await untilConnected(path, signal);
  const heard: string[] = [];
  agent.on("data", (chunk: Buffer) => void heard.push(chunk.toString()));
  let before = "";
  const clock = {
    ...systemClock,
    now: () => {
      before = heard.join("");
      return systemClock.now();
    },
  };
  await tellGuest(agent, { hostname: "restored", maxProcesses: 64, clock, signal });
  expect(before).toContain('"exit_code":0');
  const exec = () => sandbox.exec("cat /run/sandpiper/instance", { user: "root" });
  // The sandbox's own connection was replaced; a call fails until it is open again.
  const written = () =>
    exec().then(
      ({ stdout }) => stdout,
      () => "",
    );
  await expect.poll(written).toMatch(/^hostname restored\nseed [0-9a-f]{128}\nprocesses 64\ntime \d{13}\n$/);
});
