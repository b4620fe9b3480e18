/** A rollback as the API reports it. */
export interface ReportedRollback {
  /** When the checkpoint was taken. */
  readonly createdAt: string;
  readonly at: string;
}

interface Write {
  readonly beganAtMs: number;
  readonly acknowledgedAtMs: number;
}

/** A client's acknowledged writes and reported rollbacks. */
export class WriteLedger {
  readonly #slackMs: number;
  readonly #writes = new Map<number, Write>();
  readonly #rollbacks = new Map<string, ReportedRollback>();
  readonly #repeated = new Set<number>();
  #acknowledged = 0;
  #setBack = 0;

  /** `slackMs` is how wrong the clock of a node may be that reports a rollback. */
  constructor({ slackMs = 0 } = {}) {
    this.#slackMs = slackMs;
  }

  get acknowledged(): number {
    return this.#acknowledged;
  }

  /** Writes that a reported rollback removed. */
  get setBack(): number {
    return this.#setBack;
  }

  get rollbacks(): number {
    return this.#rollbacks.size;
  }

  acknowledge(line: number, write: Write): void {
    this.#writes.set(line, write);
    this.#acknowledged++;
  }

  reported(rollback: ReportedRollback | null): void {
    if (rollback !== null) this.#rollbacks.set(rollback.at, rollback);
  }

  /** Compares with the lines in the sandbox. Returns lines that are lost without a reported rollback, and repeated ones, once. */
  check(lines: readonly number[]): { readonly lost: readonly string[]; readonly repeated: readonly string[] } {
    const present = new Set(lines);
    const repeated = lines.filter((line, at) => lines.indexOf(line) !== at && !this.#repeated.has(line));
    for (const line of repeated) this.#repeated.add(line);
    const lost: string[] = [];
    for (const [line, write] of this.#writes) {
      if (present.has(line)) continue;
      this.#writes.delete(line);
      if (this.#isExcused(write)) this.#setBack++;
      else lost.push(`line ${line}, acknowledged at ${iso(write.acknowledgedAtMs)}, is lost; ${this.#reported()}`);
    }
    return { lost, repeated: repeated.map((line) => `line ${line} was written twice`) };
  }

  /** A rollback removes exactly the writes between its checkpoint and itself. */
  #isExcused({ beganAtMs, acknowledgedAtMs }: Write): boolean {
    const slackMs = this.#slackMs;
    return [...this.#rollbacks.values()].some(
      ({ createdAt, at }) =>
        acknowledgedAtMs >= Date.parse(createdAt) - slackMs && beganAtMs <= Date.parse(at) + slackMs,
    );
  }

  #reported(): string {
    const reported = [...this.#rollbacks.values()].map(({ createdAt, at }) => `to ${createdAt} at ${at}`);
    return `reported rollbacks: ${reported.slice(-3).join(", ") || "none"}`;
  }
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
