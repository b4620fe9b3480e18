import type { FileTree } from "./file-tree.ts";

/** The progress of a program, from which it can continue in another instance. */
export interface Progress {
  step: number;
  /** The exit code of the previous step. */
  status: number;
  readonly variables: Record<string, string>;
  /** Whether the files that the step writes are open. */
  hasBegun: boolean;
  /** What the step has written since it last took input, and does not write again. */
  writtenBytes: number;
  /** The time that it has slept already. */
  sleptMs: number;
}

export function beginNextStep(progress: Progress, status: number): void {
  Object.assign(progress, { step: progress.step + 1, status, hasBegun: false, writtenBytes: 0, sleptMs: 0 });
}

export interface ProgramContext {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly files: FileTree;
  readonly progress: Progress;
  readonly isTerminal: boolean;
  readonly pid: number;
  /** The next piece of standard input, which is finished when the following one is requested; undefined at the end. */
  readonly read: () => Promise<Uint8Array | undefined>;
  readonly write: (source: "stdout" | "stderr", bytes: Uint8Array) => Promise<void>;
  readonly sleep: (durationMs: number) => Promise<void>;
  /** Ends the process by a signal; never returns to the program. */
  readonly die: (signal: string) => Promise<never>;
  /** Aborted when the process was killed. */
  readonly killed: AbortSignal;
}

/** Resolves with an exit code. */
export type Program = (context: ProgramContext) => Promise<number>;

const encoder = new TextEncoder();
const ZEROS = new Uint8Array(64 * 1024);

const say = (context: ProgramContext, text: string) => context.write("stdout", encoder.encode(text));

/** The few POSIX commands that the contract suite needs. */
export const programs: Readonly<Record<string, Program>> = {
  true: async () => 0,
  false: async () => 1,

  async echo(context) {
    await say(context, `${context.args.join(" ")}\n`);
    return 0;
  },

  async printf(context) {
    const [format = "", ...args] = context.args;
    const text = format.replaceAll("\\n", "\n").replaceAll("\\t", "\t");
    const holes = text.split("%s").length - 1;
    let out = "";
    do {
      out += text.replaceAll("%s", () => args.shift() ?? "");
    } while (holes > 0 && args.length > 0);
    await say(context, out);
    return 0;
  },

  async pwd(context) {
    await say(context, `${context.cwd}\n`);
    return 0;
  },

  async cat(context) {
    const [path] = context.args;
    if (path !== undefined) {
      await writeAll(context, context.files.read(context.files.resolve(path, context.cwd)));
      return 0;
    }
    for (let input = await context.read(); input !== undefined; input = await context.read()) {
      await context.write("stdout", input);
    }
    return 0;
  },

  async head(context) {
    const [flag, count, path = ""] = context.args;
    if (flag !== "-c") return 2;
    let left = Number(count);
    if (path !== "/dev/zero") {
      await writeAll(context, context.files.read(context.files.resolve(path, context.cwd)).subarray(0, left));
      return 0;
    }
    while (left > 0 && !context.killed.aborted) {
      const bytes = ZEROS.subarray(0, Math.min(left, ZEROS.length));
      await context.write("stdout", bytes);
      left -= bytes.length;
    }
    return 0;
  },

  async sleep(context) {
    await context.sleep(Number(context.args[0]) * 1000);
    return 0;
  },

  async kill(context) {
    const [signal = "", pid] = context.args;
    if (Number(pid) !== context.pid) return 1;
    return context.die(`SIG${signal.replace("-", "")}`);
  },

  async touch(context) {
    for (const path of context.args) context.files.append(context.files.resolve(path, context.cwd), new Uint8Array(0));
    return 0;
  },

  test: async (context) => (isTrue(context, context.args) ? 0 : 1),
  "[": async (context) => (isTrue(context, context.args.slice(0, -1)) ? 0 : 1),
};

function isTrue(context: ProgramContext, [operator, ...operands]: readonly string[]): boolean {
  if (operator === "!") return !isTrue(context, operands);
  if (operator === "-t") return context.isTerminal;
  return operator === "-e" && context.files.has(context.files.resolve(operands[0] ?? "", context.cwd));
}

async function writeAll(context: ProgramContext, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length; at += ZEROS.length) {
    await context.write("stdout", bytes.subarray(at, at + ZEROS.length));
  }
}
