import { setTimeout as sleep } from "node:timers/promises";
import { systemClock } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import { Guard } from "../guard.ts";
import { cgroupTargets } from "../kill-list.ts";
import { boxPath } from "./cgroup-box.ts";

// A program that renews the lease of one sandbox without end, and prints a line once it has begun.
const LEASE_MS = 1500;
const RENEW_MS = 100;

const [, , directory = "", id] = process.argv;
const guard = new Guard({ directory, graceMs: LEASE_MS / 10 });
await guard.start();
guard.killList.set(id as SandboxId, cgroupTargets(boxPath(id as SandboxId)));
guard.set(id as SandboxId, systemClock.monotonicMs() + LEASE_MS);
process.stdout.write("renewing\n");
for (;;) {
  await sleep(RENEW_MS);
  guard.set(id as SandboxId, systemClock.monotonicMs() + LEASE_MS);
}
