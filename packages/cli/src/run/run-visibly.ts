import type { Arguments } from "../command/arguments.ts";
import { Interruption } from "../command/interruption.ts";
import type { Guest } from "../guest/guest.ts";
import { parseNumber } from "../options/number-option.ts";
import { noticeOf } from "../output/notice.ts";
import { passThrough } from "../output/pass-through.ts";
import { print } from "../output/print.ts";
import { OutputCollector } from "./output-collector.ts";
import type { OutputHandler, RunOutcome } from "./run-command.ts";
import { printErrorJson, runJson } from "./run-json.ts";

/** What happened in a sandbox, which may be gone again. */
export interface EndedRun {
  readonly outcome: RunOutcome;
  readonly guest: Pick<Guest, "id" | "provider" | "memoryMib">;
}

export interface RunOptions {
  readonly timeoutMs: number | undefined;
  readonly interruption: Interruption;
  readonly onOutput: OutputHandler;
}

/** Undefined when the user interrupted it. */
export type Run = (arguments_: Arguments, options: RunOptions) => Promise<EndedRun | undefined>;

/** Runs the command and shows its output, live or as JSON. Returns the program's exit code. */
export async function runVisibly(arguments_: Arguments, run: Run): Promise<number> {
  using interruption = new Interruption();
  const timeoutSeconds = parseNumber(arguments_, "timeout", { decimals: 3, example: 30 });
  const timeoutMs = timeoutSeconds === undefined ? undefined : Math.round(timeoutSeconds * 1000);
  const collector = arguments_.has("json") ? new OutputCollector() : undefined;
  const onOutput = collector === undefined ? passThrough(interruption) : collector.add;
  let ended: EndedRun | undefined;
  try {
    ended = await run(arguments_, { timeoutMs, interruption, onOutput });
  } catch (error) {
    if (collector === undefined) throw error;
    return printErrorJson(error);
  }
  if (ended === undefined) return interruption.exitCode as number;
  explain(ended, arguments_);
  if (collector !== undefined) await print(runJson(ended, collector));
  return ended.outcome.exitCode;
}

function explain({ outcome, guest }: EndedRun, arguments_: Arguments): void {
  const notice = noticeOf(arguments_);
  if (outcome.endedBy === "timeout")
    notice(`the command was killed after ${arguments_.get("timeout")} s, its --timeout`);
  if (outcome.endedBy === "out_of_memory") {
    const limit = `${guest.memoryMib} MiB`;
    notice(`out of memory: the command used more than ${limit} and was killed; --memory MIB gives it more`);
  }
}
