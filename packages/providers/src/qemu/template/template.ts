import { createHash } from "node:crypto";
import { copyFile, mkdir, open, rename, utimes } from "node:fs/promises";
import { join } from "node:path";
import { AgentClient } from "@sandpiper/core";
import { agentChannelEnds } from "../../host/agent-channel.ts";
import { SocketChannel } from "../../host/socket-channel.ts";
import { createTransientMachine, removeTransientMachine } from "../../host/transient-machine.ts";
import type { QemuHost } from "../host.ts";
import { blankDisk } from "../machine/blank-disk.ts";
import { DISK, type LaunchedMachine, launchMachine } from "../machine/launch-machine.ts";
import { type Accelerator, DEVICES } from "../machine/machine-arguments.ts";
import type { MachineShape } from "../machine/machine-shape.ts";
import { saveState } from "../machine/migration.ts";
import { pruneTemplates } from "./prune-templates.ts";
import { measureRtcLateness } from "./rtc-lateness.ts";
import { settleGuest } from "./settle-guest.ts";

/** A guest that translated code runs in takes a few seconds; a busy host makes that many. */
const BOOT_TIMEOUT_MS = 60_000;
const MEMORY = "memory";
const STATE = "state";
/** Raised when templates are made in another way. */
const GENERATION = 3;

/** A machine that has booted once, and stands still: its memory as a file, its devices' state, and its disk. */
export interface Template {
  readonly memory: string;
  readonly state: string;
  readonly disk: string;
}

export function templateKey(host: QemuHost, { image, kernel, memoryMib, vcpuCount, diskMib }: MachineShape): string {
  const parts = [GENERATION, DEVICES, host.qemu.version, host.accelerator, image.sha, kernel.sha];
  return createHash("sha256")
    .update(JSON.stringify([...parts, memoryMib, Math.ceil(vcpuCount), diskMib]))
    .digest("hex")
    .slice(0, 24);
}

export async function findTemplate(host: QemuHost, key: string): Promise<Template | undefined> {
  const directory = join(host.templates, key);
  const template = { memory: join(directory, MEMORY), state: join(directory, STATE), disk: join(directory, DISK) };
  const now = new Date();
  // Those that were not used for long go first.
  return await utimes(directory, now, now).then(
    () => template,
    () => undefined,
  );
}

/** Boots a machine, lets it come to rest, and saves it with what it ran in its memory. */
export async function makeTemplate(host: QemuHost, key: string, shape: MachineShape): Promise<void> {
  const signal = AbortSignal.timeout(BOOT_TIMEOUT_MS);
  const place = await createTransientMachine(host);
  const { directory } = place;
  try {
    const blank = join(host.templates, `blank-${shape.diskMib}.qcow2`);
    await blankDisk(blank, shape.diskMib);
    await copyFile(blank, join(directory, DISK));
    const memory = join(directory, MEMORY);
    await using file = await open(memory, "wx", 0o600);
    await file.truncate(shape.memoryMib * 2 ** 20);
    const options = { ...place, shape, memory: { file: memory, isShared: true }, hasBaseDisk: false, signal };
    const machine = await launchMachine(host, { ...options, ignoresShared: true });
    await save(machine, { accelerator: host.accelerator, path: join(directory, STATE), signal });
    await publish(directory, join(host.templates, key));
    await pruneTemplates(host.templates);
  } finally {
    await removeTransientMachine(host, place);
  }
}

interface SaveOptions {
  readonly accelerator: Accelerator;
  readonly path: string;
  readonly signal: AbortSignal;
}

async function save(
  { directory, monitor, agent }: LaunchedMachine,
  { accelerator, path, signal }: SaveOptions,
): Promise<void> {
  const channel = new SocketChannel(agentChannelEnds(agent, directory), () => {});
  const [client, rtcLateMs] = await Promise.all([
    AgentClient.open({ channel, needsResync: false }, { signal, rpcTimeoutMs: BOOT_TIMEOUT_MS }),
    measureRtcLateness(monitor, signal),
  ]);
  await settleGuest(client, { accelerator, rtcLateMs, signal });
  await monitor.execute("stop", {});
  await using file = await open(path, "wx", 0o600);
  await saveState(monitor, directory, file);
  const ended = monitor.closed;
  await monitor.execute("quit", {}).catch(() => {});
  await ended;
}

/** Whoever is first is right: what the other made would have been the same. */
async function publish(directory: string, target: string): Promise<void> {
  const draft = join(directory, "done");
  await mkdir(draft, { mode: 0o700 });
  for (const name of [MEMORY, STATE, DISK]) await rename(join(directory, name), join(draft, name));
  await rename(draft, target).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOTEMPTY" && error.code !== "EEXIST") throw error;
  });
}
