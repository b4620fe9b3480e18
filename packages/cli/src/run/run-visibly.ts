import { SandboxError } from "@sandpiper/protocol/error";
import type { Arguments } from "../command/arguments.ts";
import { exitCodeOfError } from "../command/exit-code.ts";
import { Interruption } from "../command/interruption.ts";
import type { Guest } from "../guest/guest.ts";
import { parseDuration } from "../options/values.ts";
import { OutputCollector } from "../output/output-collector.ts";
import { noticeOf, type OutputHandler, passThrough, printJson } from "../output/print.ts";
import { type Job, readJob } from "./read-job.ts";
import type { RunOutcome } from "./run-command.ts";

/** A run in a sandbox, which may be gone by now. */
export interface EndedRun {
  readonly outcome: RunOutcome;
  readonly guest: Pick<Guest, "id" | "provider" | "memoryMib">;
}

export interface RunOptions {
  readonly job: Job;
  readonly timeoutMs: number | undefined;
  readonly interruption: Interruption;
  readonly onOutput: OutputHandler;
}

/** Undefined when the user interrupted it. */
export type Run = (arguments_: Arguments, options: RunOptions) => Promise<EndedRun | undefined>;

/** Runs the command and shows its output, live or as JSON. Returns the program's exit code. */
export async function runVisibly(arguments_: Arguments, run: Run): Promise<number> {
  const timeoutMs = parseDuration(arguments_, "timeout");
  // Until the sandbox is created, Ctrl-C ends the program at once.
  const job = await readJob(arguments_);
  using interruption = new Interruption();
  const collector = arguments_.has("json") ? new OutputCollector() : undefined;
  const onOutput = collector === undefined ? passThrough(interruption) : collector.add;
  let ended: EndedRun | undefined;
  try {
    ended = await run(arguments_, { job, timeoutMs, interruption, onOutput });
  } catch (error) {
    if (collector === undefined) throw error;
    return printErrorJson(error);
  }
  if (ended === undefined) return interruption.exitCode as number;
  explain(ended, arguments_);
  if (collector !== undefined) await printJson(runObject(ended, collector));
  return ended.outcome.exitCode;
}

/** One object with everything about a run; its keys and their order are an interface. */
function runObject({ outcome, guest }: EndedRun, output: OutputCollector) {
  const { exitCode, signal, durationMs, timedOut, outOfMemory, hasLostOutput } = outcome;
  const truncated = output.isTruncated || hasLostOutput;
  return {
    exitCode,
    signal,
    stdout: output.text("stdout"),
    stderr: output.text("stderr"),
    durationMs,
    timedOut,
    outOfMemory,
    truncated,
    sandboxId: guest.id,
    provider: guest.provider,
  };
}

/** With --json a failure is an object, too. */
async function printErrorJson(thrown: unknown): Promise<number> {
  const error = SandboxError.from(thrown);
  const { code, reason, message, hint } = error;
  await printJson({ error: { code, reason, message, hint } });
  return exitCodeOfError(error, { endsLikeItsCommand: true });
}

function explain({ outcome, guest }: EndedRun, arguments_: Arguments): void {
  const notice = noticeOf(arguments_);
  if (outcome.timedOut) notice(`killed the command after its --timeout of ${withUnit(arguments_.get("timeout"))}`);
  if (outcome.outOfMemory) {
    notice(
      `out of memory: killed the command for using more than ${guest.memoryMib} MiB; raise the limit with --memory`,
    );
  }
}

function withUnit(timeout = ""): string {
  return /\d$/.test(timeout) ? `${timeout} s` : timeout;
}
