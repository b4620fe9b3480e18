import { createHash, randomBytes } from "node:crypto";
import { type Sandbox, SandboxError } from "@sandpiper/sdk";

const BYTES = 200_000;
const SUM = /^([0-9a-f]{64}) {2}payload$/m;

/** A file of random bytes in a sandbox: whatever checkpoint it comes from, its bytes are those that were written. */
export class Payload {
  /** A shell command. */
  readonly show = "sha256sum payload; true";
  /** A rollback may bring back an earlier one. */
  readonly #written = new Set<string>();
  #isMissing = true;

  get isMissing(): boolean {
    return this.#isMissing;
  }

  async write(sandbox: Sandbox, signal: AbortSignal): Promise<void> {
    const bytes = randomBytes(BYTES);
    // Before the write: a rollback to a moment during it may complete it, without an answer to the client.
    this.#written.add(createHash("sha256").update(bytes).digest("hex"));
    const isWhole = `[ $(wc -c < payload.new) -eq ${BYTES} ]`;
    const command = `cat > payload.new && ${isWhole} && sync payload.new && mv payload.new payload && ${this.show}`;
    const { stdout, stderr } = await sandbox.exec(command, { stdin: bytes, signal });
    if (!SUM.test(stdout)) throw new SandboxError("write_failed", { message: stderr });
    this.#isMissing = false;
  }

  /** Faults in the output of `show`. */
  check(output: string, { mayBeMissing }: { readonly mayBeMissing: boolean }): string[] {
    const [, sum] = SUM.exec(output) ?? [];
    if (sum !== undefined) return this.#written.has(sum) ? [] : [`its payload has wrong bytes: ${sum}`];
    const isNew = this.#isMissing;
    this.#isMissing = true;
    return mayBeMissing || isNew ? [] : ["its payload is lost without a reported rollback"];
  }
}
