import { setTimeout as sleep } from "node:timers/promises";
import { type Client, type Sandbox, SandboxError } from "@sandpiper/sdk";
import { appendLine, LINES_FILE, readLines } from "./numbered-lines.ts";
import type { Random } from "./random.ts";
import { WriteLedger } from "./write-ledger.ts";

const CALL_MS = 12_000;
const VERIFY_EVERY = 5;
/** Permanent errors in a row before the writer gives up: a single node may report one by mistake for a moment. */
const ENDS_BELIEVED = 4;
const END_PAUSE_MS = 700;

export interface SandboxWriterOptions {
  readonly id: string;
  /** One for each node. */
  readonly clients: readonly Client[];
  readonly random: Random;
  readonly onFault: (fault: string) => void;
}

/** Writes numbered lines into a file of a sandbox through random nodes, and reads them back. */
export class SandboxWriter {
  readonly id: string;
  readonly ledger = new WriteLedger();
  /** The number of failed calls by error. */
  readonly failures = new Map<string, number>();
  readonly #options: SandboxWriterOptions;
  readonly #handles = new Map<Client, Sandbox>();
  readonly #stop = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #line = 0;
  #ends: string[] = [];
  #over: string | undefined;

  constructor(options: SandboxWriterOptions) {
    this.id = options.id;
    this.#options = options;
  }

  /** The permanent error that ended the sandbox. */
  get over(): string | undefined {
    return this.#over;
  }

  start(): void {
    this.#running = this.#write();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  /** A handle of the sandbox through a random node. */
  async handle(signal?: AbortSignal): Promise<Sandbox> {
    const client = this.#options.random.pick(this.#options.clients);
    const handle = this.#handles.get(client) ?? (await client.sandboxes.connect(this.id, { signal }));
    this.#handles.set(client, handle);
    return handle;
  }

  /** Waits for a write that began after the call or for a permanent error; false when neither comes in time. */
  async progress(withinMs: number): Promise<boolean> {
    const before = this.ledger.acknowledged;
    const endAt = performance.now() + withinMs;
    while (this.ledger.acknowledged < before + 2 && this.#over === undefined) {
      if (performance.now() > endAt) return false;
      await sleep(50);
    }
    return true;
  }

  /** Compares the sandbox's lines with the acknowledged ones. */
  async verify(): Promise<void> {
    const signal = AbortSignal.timeout(CALL_MS);
    const handle = await this.handle(signal);
    const { stdout } = await handle.exec(`cat ${LINES_FILE} || true`, { signal });
    this.ledger.reported((await handle.refresh({ signal })).rolledBackTo);
    for (const fault of this.ledger.check(readLines(stdout))) this.#options.onFault(`sandbox ${this.id}: ${fault}`);
  }

  async #write(): Promise<void> {
    while (!this.#stop.signal.aborted && this.#over === undefined) {
      try {
        await this.#append();
        if (this.#line % VERIFY_EVERY === 0) await this.verify();
        this.#ends = [];
        await sleep(this.#options.random.between(0, 60));
      } catch (thrown) {
        await this.#failed(SandboxError.from(thrown));
      }
    }
  }

  async #append(): Promise<void> {
    const signal = AbortSignal.timeout(CALL_MS);
    const handle = await this.handle(signal);
    const line = ++this.#line;
    const beganAtMs = Date.now();
    const { exitCode, stderr } = await handle.exec(appendLine(line), { signal });
    const acknowledgedAtMs = Date.now();
    if (exitCode !== 0) throw new SandboxError("write_failed", { message: stderr });
    this.ledger.acknowledge(line, { beganAtMs, acknowledgedAtMs });
    this.ledger.reported((await handle.refresh({ signal })).rolledBackTo);
  }

  async #failed({ code, reason }: SandboxError): Promise<void> {
    const what = `${code}/${reason}`;
    this.failures.set(what, (this.failures.get(what) ?? 0) + 1);
    const isEnd = ["not_found", "gone", "data_loss"].includes(code) && reason !== "rolled_back";
    if (!isEnd) this.#ends = [];
    else if (this.#ends.push(what) >= ENDS_BELIEVED) this.#over = what;
    await sleep(isEnd ? END_PAUSE_MS : this.#options.random.between(50, 300));
  }
}
