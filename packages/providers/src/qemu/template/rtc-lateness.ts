import { setTimeout as sleep } from "node:timers/promises";
import type { QmpClient } from "../qmp/qmp-client.ts";

const LOOK_EVERY_MS = 3;

/**
 * By how much a machine's RTC is behind this host's clock: QEMU starts it at a whole second and at any time within one.
 * It stays so in every copy of the machine, and wherever it is restored. Takes up to a second.
 */
export async function measureRtcLateness(monitor: QmpClient, signal: AbortSignal): Promise<number> {
  const first = await readRtc(monitor);
  for (;;) {
    await sleep(LOOK_EVERY_MS, undefined, { signal });
    const now = await readRtc(monitor);
    if (now !== first) return Math.max(0, Date.now() - now);
  }
}

async function readRtc(monitor: QmpClient): Promise<number> {
  const time = await monitor.execute("qom-get", { path: "/machine", property: "rtc-time" });
  return Date.UTC(time.tm_year + 1900, time.tm_mon, time.tm_mday, time.tm_hour, time.tm_min, time.tm_sec);
}
