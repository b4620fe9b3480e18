// Loaded into a node before its own modules: shifts its wall clock by the milliseconds in a file, which SIGUSR2 has it
// read again. Timers and the monotonic clock stay as they are, as when a machine's clock is set.
import { readFileSync } from "node:fs";

const SystemDate = globalThis.Date;
let shiftMs = 0;

function readShift(): void {
  try {
    shiftMs = Number(readFileSync(process.env["CHAOS_CLOCK_FILE"] ?? "", "utf8"));
  } catch {
    shiftMs = 0;
  }
}

const now = () => SystemDate.now() + shiftMs;

readShift();
process.on("SIGUSR2", readShift);

globalThis.Date = new Proxy(SystemDate, {
  construct: (target, values, newTarget) =>
    Reflect.construct(target, values.length === 0 ? [now()] : values, newTarget),
  get: (target, name) => (name === "now" ? now : Reflect.get(target, name)),
});
