import { readFileSync } from "node:fs";
import type { Process, Sandbox } from "@sandpiper/sdk";

const program = readFileSync(new URL("guest/net.py", import.meta.url), "utf8");
const DIRECTORY = "/tmp/network";

/** Puts the tests' network program into a sandbox. */
export async function installGuestProgram(sandbox: Sandbox): Promise<void> {
  await sandbox.files.write(`${DIRECTORY}/net.py`, program);
}

/** What a function of the guest program prints, or its error. */
export async function guest(sandbox: Sandbox, name: string, ...args: readonly (string | number)[]): Promise<string> {
  const argv = ["python3", `${DIRECTORY}/net.py`, name, ...args.map(String)];
  const { exitCode, stdout, stderr } = await sandbox.exec(argv, { timeoutMs: 600_000 });
  return exitCode === 0 ? stdout : `failed: ${stderr}`;
}

/** Runs lines of Python that have the guest program as `net`, and returns both outputs. */
export async function guestPython(sandbox: Sandbox, script: string, user?: string): Promise<string> {
  const preamble = `import sys; sys.path.insert(0, "${DIRECTORY}"); import net, os, socket, struct; net.TIMEOUT = 4`;
  const options = { timeoutMs: 60_000, ...(user === undefined ? {} : { user }) };
  const { stdout, stderr } = await sandbox.exec(["python3", "-c", `${preamble}\n${script}`], options);
  return stdout + stderr;
}

/** Starts a function that keeps a connection, and waits until it is open. */
export async function startHolding(
  sandbox: Sandbox,
  name: "hold" | "watch",
  ...target: readonly [string, number]
): Promise<HeldConnection> {
  const argv = ["python3", `${DIRECTORY}/net.py`, name, ...target.map(String)];
  const held = new HeldConnection(await sandbox.start(argv, { stdin: true }));
  await held.until("open");
  return held;
}

/** A connection that a process inside keeps. */
export class HeldConnection {
  readonly process: Process;
  readonly #lines: AsyncIterator<string>;

  constructor(process: Process) {
    this.process = process;
    this.#lines = linesOf(process);
  }

  /** Sends a line and returns the answer, or the word about the connection's end. */
  async say(text: string): Promise<string> {
    await this.process.write(`${text}\n`);
    return await this.next();
  }

  async next(): Promise<string> {
    const { value, done } = await this.#lines.next();
    return done === true ? "exited" : value;
  }

  async until(line: string): Promise<void> {
    const seen = await this.next();
    if (seen !== line) throw new Error(`expected "${line}", the process printed "${seen}"`);
  }
}

async function* linesOf(process: Process): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder();
  let pending = "";
  for await (const { bytes } of process.output) {
    pending += decoder.decode(bytes, { stream: true });
    const lines = pending.split("\n");
    pending = lines.pop() ?? "";
    yield* lines;
  }
}
