import { setTimeout as sleep } from "node:timers/promises";
import type { AgentClient } from "@sandpiper/core";
import type { Accelerator } from "../machine/machine-arguments.ts";
import type { QmpClient } from "../qmp/qmp-client.ts";

/** A kernel finishes the work that it deferred during its boot in about a second. Without this rest each clone would repeat it. */
const BOOT_REST_MS = 700;
/** Time for the kernel to clean up after the last commands. */
const QUIESCED_REST_MS = 100;
const RTC_POLL_MS = 3;

export interface SettleOptions {
  readonly accelerator: Accelerator;
  /** By how much the machine's RTC is behind the host's clock. */
  readonly rtcLateMs: number;
  readonly signal: AbortSignal;
}

/** Brings a booted machine to the state in which its clones start: idle, with their first programs in memory. */
export async function settleGuest(
  client: AgentClient,
  { accelerator, rtcLateMs, signal }: SettleOptions,
): Promise<void> {
  const late = `mkdir -p /run/sandpiper && echo ${rtcLateMs} > /run/sandpiper/rtc-late-ms`;
  const asRoot = [late, RARER_WORK, ...(accelerator === "tcg" ? [SAME_ADDRESSES] : [])].join("\n");
  // Without a shell in the image, machines are slower and their clocks are exact only to a second.
  await client.exec(asRoot, { user: "0" }).catch(() => {});
  await client.exec(FIRST_PROGRAMS).catch(() => {});
  signal.throwIfAborted();
  await sleep(BOOT_REST_MS, undefined, { signal });
  await client.quiesce({ signal });
  await sleep(QUIESCED_REST_MS, undefined, { signal });
}

/** Turns off kernel work that sandboxes do not use: statistics each second, autogroups, the watchdog, write-back throttling. */
const RARER_WORK = `
echo 60 > /proc/sys/vm/stat_interval
echo 0 > /proc/sys/kernel/sched_autogroup_enabled
echo 0 > /proc/sys/kernel/watchdog
for disk in /sys/block/vd*; do echo 0 > $disk/queue/wbt_lat_usec; done`;

/** QEMU translates code for its address, so random addresses would make it translate the code of every new process again. */
const SAME_ADDRESSES = "echo 0 > /proc/sys/kernel/randomize_va_space";

/** Reads their files and libraries into memory that all clones share. An image may lack them. */
const FIRST_PROGRAMS = `
true; /bin/true; env true; cat /dev/null; ls / > /dev/null
bash -c /bin/true
python3 -c 0`;

/**
 * By how much a machine's RTC is behind this host's clock, because QEMU starts it at a whole second. The difference stays
 * the same in every clone and after every restore. Takes up to a second.
 */
export async function measureRtcLateness(monitor: QmpClient, signal: AbortSignal): Promise<number> {
  const first = await readRtc(monitor);
  for (;;) {
    await sleep(RTC_POLL_MS, undefined, { signal });
    const now = await readRtc(monitor);
    if (now !== first) return Math.max(0, Date.now() - now);
  }
}

async function readRtc(monitor: QmpClient): Promise<number> {
  const time = await monitor.execute("qom-get", { path: "/machine", property: "rtc-time" });
  return Date.UTC(time.tm_year + 1900, time.tm_mon, time.tm_mday, time.tm_hour, time.tm_min, time.tm_sec);
}
