import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";

const TICK_MS = 100;

/** Runs in its own thread, so that the test's own work does not delay it. */
const LOOP = `
const { readFileSync } = require("node:fs");
const { workerData } = require("node:worker_threads");
const counters = new BigInt64Array(workerData.shared);
let before = performance.now();
const look = () => {
  const now = performance.now();
  // The fourth field of the file: runnable threads, of all threads.
  const runnable = Number(readFileSync("/proc/loadavg", "utf8").split(" ")[3].split("/")[0]);
  const waitedMs = (now - before) * Math.max(0, 1 - workerData.processors / runnable);
  Atomics.add(counters, 0, BigInt(Math.round(waitedMs)));
  const lateMs = Math.round(now - before - ${TICK_MS});
  if (lateMs > Number(Atomics.load(counters, 1))) Atomics.store(counters, 1, BigInt(lateMs));
  before = now;
  setTimeout(look, ${TICK_MS});
};
setTimeout(look, ${TICK_MS});
`;

/** Measures how long a program that wants to run waits for a processor, from the number of threads that want one. */
export class SchedulerLag implements AsyncDisposable {
  readonly #counters = new BigInt64Array(new SharedArrayBuffer(16));
  readonly #worker: Worker;

  constructor() {
    const workerData = { shared: this.#counters.buffer, processors: availableParallelism() };
    this.#worker = new Worker(LOOP, { eval: true, workerData });
  }

  /** The time since the start for which such a program waited. */
  get totalMs(): number {
    return Number(Atomics.load(this.#counters, 0));
  }

  /** The longest delay of a thread that is otherwise idle. */
  get longestMs(): number {
    return Number(Atomics.load(this.#counters, 1));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#worker.terminate();
  }
}
