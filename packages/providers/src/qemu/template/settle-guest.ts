import { setTimeout as sleep } from "node:timers/promises";
import type { AgentClient } from "@sandpiper/core";
import type { Accelerator } from "../machine/machine-arguments.ts";

/** What a kernel puts off while it boots, it does within about a second; a copy of one that has not would do it again each time. */
const BOOT_REST_MS = 700;
/** In which what the last commands left is cleared away. */
const QUIESCED_REST_MS = 100;

export interface SettleOptions {
  readonly accelerator: Accelerator;
  /** What the machine's RTC is late by. */
  readonly rtcLateMs: number;
  readonly signal: AbortSignal;
}

/** Brings a machine that has booted to where its copies are to begin: with nothing under way, and what they run first in memory. */
export async function settleGuest(
  client: AgentClient,
  { accelerator, rtcLateMs, signal }: SettleOptions,
): Promise<void> {
  const late = `mkdir -p /run/sandpiper && echo ${rtcLateMs} > /run/sandpiper/rtc-late-ms`;
  const asRoot = [late, RARER_WORK, ...(accelerator === "tcg" ? [SAME_ADDRESSES] : [])].join("\n");
  // An image without a shell is a root filesystem too: its machines are a little slower, and their clocks right to a second.
  await client.exec(asRoot, { user: "0" }).catch(() => {});
  await client.exec(FIRST_PROGRAMS).catch(() => {});
  signal.throwIfAborted();
  await sleep(BOOT_REST_MS, undefined, { signal });
  await client.quiesce({ signal });
  await sleep(QUIESCED_REST_MS, undefined, { signal });
}

/** What nobody inside uses, and every process pays for: counters once a second, groups of processes, queues of disks that are files. */
const RARER_WORK = `
echo 60 > /proc/sys/vm/stat_interval
echo 0 > /proc/sys/kernel/sched_autogroup_enabled
echo 0 > /proc/sys/kernel/watchdog
for disk in /sys/block/vd*; do echo 0 > $disk/queue/wbt_lat_usec; done`;

/** Code is translated for the address it runs at: at random ones, that of every new process would be translated again. */
const SAME_ADDRESSES = "echo 0 > /proc/sys/kernel/randomize_va_space";

/** Their files and libraries are read, and then the same memory for all copies. An image need not have them. */
const FIRST_PROGRAMS = `
true; /bin/true; env true; cat /dev/null; ls / > /dev/null
bash -c /bin/true
python3 -c 0`;
