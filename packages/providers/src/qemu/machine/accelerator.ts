import { spawn } from "node:child_process";
import { once } from "node:events";
import { accessSync, constants } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { AgentClient } from "@sandpiper/core";
import type { GuestKernel } from "../../guest/kernel.ts";
import { cacheDirectory } from "../../host/cache-directory.ts";
import { readBootId } from "../../host/process-owner.ts";
import { connectSocket } from "../../host/unix-socket.ts";
import type { Qemu } from "../find-qemu.ts";
import { agentChannel } from "./agent-channel.ts";
import { type Accelerator, AGENT_SOCKET, machineArguments } from "./machine-arguments.ts";

/** Working KVM boots a guest in a fraction of this. */
const KVM_BOOT_MS = 4_000;
const PROBE_MIB = 128;
/** The user `nobody`. */
const PROBE_UID = 65_534;
const RETRY_MS = 10;

/**
 * Returns KVM only if it boots a guest in time. The device alone proves little: on virtual machines a guest may hang,
 * or run slower than translated. The result is kept until the next reboot, for each QEMU.
 */
export async function findAccelerator(qemu: Qemu, kernel: () => Promise<GuestKernel>): Promise<Accelerator> {
  if (!canOpen("/dev/kvm")) return "tcg";
  const cache = join(cacheDirectory(), "accelerator");
  const bootId = await readBootId();
  const { ino, ctimeMs } = await stat(qemu.program);
  const path = join(cache, `${bootId}-${ino}-${ctimeMs}`);
  const known = await readFile(path, "utf8").catch(() => "");
  if (known === "kvm" || known === "tcg") return known;
  const boots = await bootsGuest(qemu, await kernel(), { accelerator: "kvm", timeoutMs: KVM_BOOT_MS });
  const found = boots ? "kvm" : "tcg";
  await mkdir(cache, { recursive: true, mode: 0o700 });
  const outdated = (await readdir(cache)).filter((name) => !name.startsWith(bootId));
  await Promise.all(outdated.map((name) => rm(join(cache, name), { force: true })));
  await writeFile(path, found);
  return found;
}

/** Whether a guest without disks answers in time. */
export async function bootsGuest(
  qemu: Qemu,
  kernel: GuestKernel,
  { accelerator, timeoutMs }: { readonly accelerator: Accelerator; readonly timeoutMs: number },
): Promise<boolean> {
  const directory = await mkdtemp(join(tmpdir(), "sandpiper-boot-"));
  const args = machineArguments({
    qemuVersion: qemu.version,
    accelerator,
    memoryMib: PROBE_MIB,
    processors: 1,
    kernel,
    isIncoming: false,
    memory: {},
    uid: PROBE_UID,
  });
  // `timeout` ends QEMU even if this program dies.
  const limit = ["-s", "KILL", String((2 * timeoutMs) / 1000)];
  const words = [...limit, qemu.program, ...qemu.args, ...args];
  const child = spawn("timeout", words, { cwd: directory, env: { ...process.env, ...qemu.env }, stdio: "ignore" });
  const ended = once(child, "exit").catch(() => {});
  const giveUp = AbortSignal.any([AbortSignal.timeout(timeoutMs), abortedBy(ended)]);
  try {
    return await answers(directory, giveUp);
  } finally {
    // `timeout` passes the signal on.
    child.kill("SIGTERM");
    await ended;
    await rm(directory, { recursive: true, force: true });
  }
}

async function answers(directory: string, signal: AbortSignal): Promise<boolean> {
  while (!signal.aborted) {
    const socket = await connectSocket(join(directory, AGENT_SOCKET), signal).catch(() => undefined);
    if (socket !== undefined) {
      const channel = agentChannel(socket, directory);
      const client = await AgentClient.open({ channel, needsResync: false }, { signal }).catch(() => undefined);
      client?.close();
      return client !== undefined;
    }
    await sleep(RETRY_MS);
  }
  return false;
}

function abortedBy(ended: Promise<unknown>): AbortSignal {
  const controller = new AbortController();
  ended.then(() => controller.abort());
  return controller.signal;
}

function canOpen(path: string): boolean {
  try {
    accessSync(path, constants.R_OK | constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
