import { createHash } from "node:crypto";
import { copyFile, mkdir, open, readdir, rename, rm, stat, utimes } from "node:fs/promises";
import { join } from "node:path";
import { AgentClient } from "@sandpiper/core";
import { createTransientMachine, removeTransientMachine } from "../../host/transient-machine.ts";
import type { QemuHost } from "../host.ts";
import { agentChannel } from "../machine/agent-channel.ts";
import { DISK, type LaunchedMachine, launchMachine, VOLUMES_DISK } from "../machine/launch-machine.ts";
import { DEVICES } from "../machine/machine-arguments.ts";
import type { MachineShape } from "../machine/machine-shape.ts";
import { saveState } from "../machine/migration.ts";
import { blankDisk } from "../machine/overlay-disk.ts";
import { measureRtcLateness, type SettleOptions, settleGuest } from "./settle-guest.ts";

/** A translated guest boots in a few seconds, on a busy host in many. */
const BOOT_TIMEOUT_MS = 60_000;
const MEMORY = "memory";
const STATE = "state";
/** Raised when the way to make templates changes. */
const GENERATION = 3;
/** Each takes some tens of MiB: the memory that its guest has used. */
const MAX_TEMPLATES = 16;

/** A machine that was saved after its boot: its memory, the state of its devices and its disk, each a file. */
export interface Template {
  readonly memory: string;
  readonly state: string;
  readonly disk: string;
}

export function templateKey(host: QemuHost, shape: MachineShape): string {
  const { image, kernel, memoryMib, vcpuCount, diskMib, volumesMib } = shape;
  const parts = [GENERATION, DEVICES, host.qemu.version, host.accelerator, image.sha, kernel.sha];
  return createHash("sha256")
    .update(
      JSON.stringify([
        ...parts,
        memoryMib,
        Math.ceil(vcpuCount),
        diskMib,
        ...(volumesMib === undefined ? [] : [volumesMib]),
      ]),
    )
    .digest("hex")
    .slice(0, 24);
}

export async function findTemplate(host: QemuHost, key: string): Promise<Template | undefined> {
  const directory = join(host.templates, key);
  const template = { memory: join(directory, MEMORY), state: join(directory, STATE), disk: join(directory, DISK) };
  const now = new Date();
  // The time of use decides which templates are removed.
  return await utimes(directory, now, now).then(
    () => template,
    () => undefined,
  );
}

/** Boots a machine, waits until it is idle, and saves it with the programs that it ran in memory. */
export async function makeTemplate(host: QemuHost, key: string, shape: MachineShape): Promise<void> {
  const signal = AbortSignal.timeout(BOOT_TIMEOUT_MS);
  const transient = await createTransientMachine(host);
  const { directory } = transient;
  try {
    const blank = join(host.templates, `blank-${shape.diskMib}.qcow2`);
    await blankDisk(blank, shape.diskMib);
    await copyFile(blank, join(directory, DISK));
    // The guest of a template does not mount it, so it needs no content.
    if (shape.volumesMib !== undefined) await makeSparse(join(directory, VOLUMES_DISK), shape.volumesMib);
    const memory = join(directory, MEMORY);
    await makeSparse(memory, shape.memoryMib);
    const options = { ...transient, shape, memory: { file: memory, isShared: true }, hasBaseDisk: false, signal };
    const machine = await launchMachine(host, { ...options, ignoresShared: true });
    await save(machine, { accelerator: host.accelerator, path: join(directory, STATE), signal });
    await publish(directory, join(host.templates, key));
    await pruneTemplates(host.templates);
  } finally {
    await removeTransientMachine(host, transient);
  }
}

async function makeSparse(path: string, sizeMib: number): Promise<void> {
  await using file = await open(path, "wx", 0o600);
  await file.truncate(sizeMib * 2 ** 20);
}

async function save(
  { directory, monitor, agent }: LaunchedMachine,
  { path, ...options }: Omit<SettleOptions, "rtcLateMs"> & { readonly path: string },
): Promise<void> {
  const { signal } = options;
  const channel = agentChannel(agent, directory);
  const [client, rtcLateMs] = await Promise.all([
    AgentClient.open({ channel, needsResync: false }, { signal, rpcTimeoutMs: BOOT_TIMEOUT_MS }),
    measureRtcLateness(monitor, signal),
  ]);
  await settleGuest(client, { ...options, rtcLateMs });
  await monitor.execute("stop", {});
  await using file = await open(path, "wx", 0o600);
  await saveState(monitor, directory, file);
  const ended = monitor.closed;
  await monitor.execute("quit", {}).catch(() => {});
  await ended;
}

/** The first of several programs wins: their templates are the same. */
async function publish(directory: string, target: string): Promise<void> {
  const draft = join(directory, "done");
  await mkdir(draft, { mode: 0o700 });
  for (const name of [MEMORY, STATE, DISK]) await rename(join(directory, name), join(draft, name));
  await rename(draft, target).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOTEMPTY" && error.code !== "EEXIST") throw error;
  });
}

/** Removes the least recently used templates. Machines that were cloned from them hold links to the files they need. */
async function pruneTemplates(directory: string): Promise<void> {
  const entries = (await readdir(directory, { withFileTypes: true })).filter((entry) => entry.isDirectory());
  const templates = await Promise.all(
    entries.map(async ({ name }) => {
      const path = join(directory, name);
      const info = await stat(path).catch(() => undefined);
      return { path, usedAtMs: info?.mtimeMs ?? 0 };
    }),
  );
  const excess = templates.sort((one, other) => other.usedAtMs - one.usedAtMs).slice(MAX_TEMPLATES);
  await Promise.all(excess.map(({ path }) => rm(path, { recursive: true, force: true })));
}
