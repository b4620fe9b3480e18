import { Worker } from "node:worker_threads";

const TICK_MS = 10;

/** An idle thread's loop: its timers are late only if the machine gives it no processor. */
const LOOP = `
const { workerData } = require("node:worker_threads");
const counters = new BigInt64Array(workerData.shared);
let due = performance.now() + ${TICK_MS};
const look = () => {
  const now = performance.now();
  const lateMs = Math.max(0, now - due);
  if (lateMs > ${TICK_MS}) Atomics.add(counters, 0, BigInt(Math.round(lateMs)));
  if (lateMs > Number(Atomics.load(counters, 1))) Atomics.store(counters, 1, BigInt(Math.round(lateMs)));
  due = now + ${TICK_MS};
  setTimeout(look, ${TICK_MS});
};
setTimeout(look, ${TICK_MS});
`;

/** Measures how long a thread that wants to run waits for a processor. */
export class SchedulerLag implements AsyncDisposable {
  readonly #counters = new BigInt64Array(new SharedArrayBuffer(16));
  readonly #worker: Worker;

  constructor() {
    this.#worker = new Worker(LOOP, { eval: true, workerData: { shared: this.#counters.buffer } });
  }

  /** The sum of all delays since the start. */
  get totalMs(): number {
    return Number(Atomics.load(this.#counters, 0));
  }

  get longestMs(): number {
    return Number(Atomics.load(this.#counters, 1));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#worker.terminate();
  }
}
