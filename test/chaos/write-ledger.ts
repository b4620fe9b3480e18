/** As the client is told of it. */
export interface ReportedRollback {
  /** When the checkpoint was taken. */
  readonly createdAt: string;
  readonly at: string;
}

interface Write {
  readonly beganAtMs: number;
  readonly acknowledgedAtMs: number;
}

/** What a client was told to be written, and what it was told to be lost again. */
export class WriteLedger {
  readonly #writes = new Map<number, Write>();
  readonly #rollbacks = new Map<string, ReportedRollback>();
  #acknowledged = 0;
  #setBack = 0;

  get acknowledged(): number {
    return this.#acknowledged;
  }

  /** Lost, and said to be. */
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

  /** Compares with what is there. Gives what is missing although nobody was told so, or is there twice. */
  check(lines: readonly number[]): string[] {
    const present = new Set(lines);
    const faults = lines.filter((line, at) => lines.indexOf(line) !== at).map((line) => `line ${line} is there twice`);
    for (const [line, write] of this.#writes) {
      if (present.has(line)) continue;
      this.#writes.delete(line);
      if (this.#isExcused(write)) this.#setBack++;
      else faults.push(`line ${line} was acknowledged at ${iso(write.acknowledgedAtMs)} and is lost; ${this.#told()}`);
    }
    return faults;
  }

  /** A rollback takes what was written after its checkpoint and before itself, and nothing else. */
  #isExcused({ beganAtMs, acknowledgedAtMs }: Write): boolean {
    return [...this.#rollbacks.values()].some(
      ({ createdAt, at }) => acknowledgedAtMs >= Date.parse(createdAt) && beganAtMs <= Date.parse(at),
    );
  }

  #told(): string {
    const told = [...this.#rollbacks.values()].map(({ createdAt, at }) => `to ${createdAt} at ${at}`);
    return `rollbacks told: ${told.slice(-3).join(", ") || "none"}`;
  }
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
