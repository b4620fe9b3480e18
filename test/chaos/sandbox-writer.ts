import { setTimeout as sleep } from "node:timers/promises";
import { type Client, type Sandbox, SandboxError } from "@sandpiper/sdk";
import { MAX_SKEW_MS } from "./chaos-bed.ts";
import type { ChaosSandbox } from "./chaos-sandbox.ts";
import type { Deadlines } from "./deadlines.ts";
import { appendLine, LINES_FILE, readLines } from "./numbered-lines.ts";
import { Payload } from "./payload.ts";
import type { Random } from "./random.ts";
import type { SchedulerLag } from "./scheduler-lag.ts";
import { WriteLedger } from "./write-ledger.ts";

const CALL_MS = 30_000;
const VERIFY_EVERY = 5;
/** Permanent errors in a row before the writer gives up: a single node may report one by mistake for a moment. */
const ENDS_BELIEVED = 4;
const END_PAUSE_MS = 700;

export interface SandboxWriterOptions {
  readonly sandbox: ChaosSandbox;
  /** One for each node. */
  readonly clients: readonly Client[];
  readonly random: Random;
  readonly deadlines: Deadlines;
  readonly lag: Pick<SchedulerLag, "totalMs">;
  readonly onFault: (rule: "lost" | "repeated", fault: string) => void;
}

/** Writes numbered lines into a file of a sandbox through random nodes, and reads them back. */
export class SandboxWriter {
  readonly sandbox: ChaosSandbox;
  readonly ledger = new WriteLedger({ slackMs: MAX_SKEW_MS });
  /** The number of failed calls by error. */
  readonly failures = new Map<string, number>();
  readonly #options: SandboxWriterOptions;
  readonly #payload = new Payload();
  readonly #handles = new Map<Client, Sandbox>();
  readonly #stop = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #line = 0;
  #ends: string[] = [];

  constructor(options: SandboxWriterOptions) {
    this.sandbox = options.sandbox;
    this.#options = options;
  }

  get id(): string {
    return this.sandbox.id;
  }

  /** The permanent error that ended the sandbox. It counts only after the repair of all faults. */
  get over(): string | undefined {
    return this.#ends.length >= ENDS_BELIEVED ? this.#ends.at(-1) : undefined;
  }

  start(): void {
    this.#running = this.#write();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  /**
   * Waits for a write that began after the call or for permanent errors; false when neither comes in time. Time for which
   * programs waited for a processor does not count.
   */
  async progress(withinMs: number): Promise<boolean> {
    const { lag } = this.#options;
    const before = this.ledger.acknowledged;
    const [startedAt, lagBeforeMs] = [performance.now(), lag.totalMs];
    this.#ends = [];
    while (this.ledger.acknowledged < before + 2 && this.over === undefined) {
      if (performance.now() - startedAt - (lag.totalMs - lagBeforeMs) > withinMs) return false;
      await sleep(50);
    }
    return true;
  }

  /** Compares the sandbox's lines and its payload with the acknowledged ones. */
  async verify(): Promise<void> {
    await this.#call("read", async (handle, signal) => {
      const last = this.#line;
      const { stdout } = await handle.exec(`cat ${LINES_FILE}; ${this.#payload.show}`, { signal });
      this.ledger.reported((await handle.refresh({ signal })).rolledBackTo);
      const lines = readLines(stdout);
      const invented = lines.filter((line) => line > last).map((line) => `line ${line} was never written`);
      const wrong = this.#payload.check(stdout, { mayBeMissing: this.ledger.rollbacks > 0 });
      const { lost, repeated } = this.ledger.check(lines);
      const report = (rule: "lost" | "repeated", faults: readonly string[]) => {
        for (const fault of faults)
          this.#options.onFault(rule, `${this.sandbox.provider} sandbox ${this.id}: ${fault}`);
      };
      report("lost", [...lost, ...invented, ...wrong]);
      report("repeated", repeated);
    });
  }

  async #write(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      try {
        if (this.#payload.isMissing)
          await this.#call("payload", (handle, signal) => this.#payload.write(handle, signal));
        await this.#append();
        if (this.#line % VERIFY_EVERY === 0) await this.verify();
        this.#ends = [];
        await sleep(this.#options.random.between(0, 300));
      } catch (thrown) {
        await this.#failed(SandboxError.from(thrown));
      }
    }
  }

  async #append(): Promise<void> {
    await this.#call("write", async (handle, signal) => {
      const line = ++this.#line;
      const beganAtMs = Date.now();
      const { exitCode, stderr } = await handle.exec(appendLine(line), { signal });
      const acknowledgedAtMs = Date.now();
      if (exitCode !== 0) throw new SandboxError("write_failed", { message: stderr });
      this.ledger.acknowledge(line, { beganAtMs, acknowledgedAtMs });
      this.ledger.reported((await handle.refresh({ signal })).rolledBackTo);
    });
  }

  /** A request through a random node, with a deadline. */
  async #call(what: string, request: (handle: Sandbox, signal: AbortSignal) => Promise<void>): Promise<void> {
    const { clients, random, deadlines } = this.#options;
    const client = random.pick(clients);
    await deadlines.run(`${what} in ${this.sandbox.provider} ${this.id}`, CALL_MS, async (signal) => {
      const handle = this.#handles.get(client) ?? (await client.sandboxes.connect(this.id, { signal }));
      this.#handles.set(client, handle);
      await request(handle, signal);
    });
  }

  async #failed({ code, reason }: SandboxError): Promise<void> {
    const what = `${code}/${reason}`;
    this.failures.set(what, (this.failures.get(what) ?? 0) + 1);
    const isEnd = ["not_found", "gone", "data_loss"].includes(code) && reason !== "rolled_back";
    if (isEnd) this.#ends.push(what);
    else this.#ends = [];
    await sleep(isEnd ? END_PAUSE_MS : this.#options.random.between(50, 300));
  }
}
