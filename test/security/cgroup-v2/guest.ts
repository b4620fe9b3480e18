// Runs in a virtual machine with cgroup v2: starts hogs in sandboxes of gVisor, and prints a line of JSON for each case.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Sandbox } from "@sandpiper/core";
import { GvisorProvider } from "../../../packages/providers/src/gvisor/provider.ts";
import { findCgroups } from "../../../packages/providers/src/host/find-cgroups.ts";
import { instanceCgroup } from "../../../packages/providers/src/host/instance-cgroup.ts";
import type { HogCase, HogFigures } from "./figures.ts";

const MIB = 1024 * 1024;
const MEMORY_MIB = 256;
/** An emulated processor boots gVisor slowly. */
const CONNECT_TIMEOUT_MS = 300_000;
const STATE_DIRECTORY = "/var/lib/sandpiper";
const COMPILED_HOG = "/tmp/hog";

const BYSTANDERS = [
  ...Array.from({ length: 3 }, () => "while sleep 0.02; do :; done"),
  "exec python3 -c 'x = b\"x\" * (20 << 20); import time; time.sleep(3600)'",
];

const cases: readonly HogCase[] = JSON.parse(process.argv[2] ?? "[]");
const cgroups = findCgroups();
if (cgroups?.version !== 2) throw new Error(`this machine has cgroup version ${cgroups?.version}, not 2`);

const provider = new GvisorProvider({ stateDirectory: STATE_DIRECTORY });
for (const each of cases) console.log(JSON.stringify(await runCase(each)));

async function runCase({ name, command, count }: HogCase): Promise<HogFigures> {
  const options = { memoryMib: MEMORY_MIB, diskMib: 256 };
  await using sandbox = await Sandbox.create(provider, options, { connectTimeoutMs: CONNECT_TIMEOUT_MS });
  if (existsSync(COMPILED_HOG)) await sandbox.files.write(COMPILED_HOG, readFileSync(COMPILED_HOG), { mode: 0o755 });
  const bystanders = await Promise.all(BYSTANDERS.map((bystander) => sandbox.start(bystander)));
  const results = await Promise.allSettled(Array.from({ length: count }, () => sandbox.exec(command)));
  const processes = await sandbox.processes().catch(() => []);
  const running = processes.filter(({ isRunning }) => isRunning).map(({ id }) => id);
  const isAlive = await sandbox.exec("echo alive").then(
    ({ stdout }) => stdout === "alive\n",
    () => false,
  );
  const cgroup = instanceCgroup(sandbox.id, { stateDirectory: STATE_DIRECTORY });
  const peak = Number(readFileSync(join("/sys/fs/cgroup", cgroup, "memory.peak"), "utf8"));
  return {
    name,
    count,
    results: results.map((result) =>
      result.status === "fulfilled"
        ? { exitCode: result.value.exitCode, outOfMemory: result.value.outOfMemory }
        : { error: String(result.reason) },
    ),
    isAlive,
    bystandersAlive: bystanders.filter(({ id }) => running.includes(id)).length,
    bystanders: bystanders.length,
    mostAboveMib: Math.max(0, Math.round(peak / MIB) - MEMORY_MIB),
    hostKills: (await cgroups?.oomKills(cgroup)) ?? 0,
  };
}
