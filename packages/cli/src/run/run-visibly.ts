import type { Arguments } from "../arguments.ts";
import { Interruption } from "../interruption.ts";
import { noticeOf } from "../notice.ts";
import { print } from "../print.ts";
import { OutputCollector } from "./output-collector.ts";
import { passThrough } from "./pass-through.ts";
import { type EndedRun, runInNewSandbox } from "./run-in-new-sandbox.ts";
import { printErrorJson, runJson } from "./run-json.ts";

/** Runs the command and shows its output, live or as JSON. Returns the program's exit code. */
export async function runVisibly(arguments_: Arguments, timeoutMs: number | undefined): Promise<number> {
  using interruption = new Interruption();
  const collector = arguments_.has("json") ? new OutputCollector() : undefined;
  const onOutput = collector === undefined ? passThrough(interruption) : collector.add;
  let ended: EndedRun | undefined;
  try {
    ended = await runInNewSandbox(arguments_, { timeoutMs, interruption, onOutput });
  } catch (error) {
    if (collector === undefined) throw error;
    return printErrorJson(error);
  }
  if (ended === undefined) return interruption.exitCode as number;
  explain(ended, arguments_);
  if (collector !== undefined) await print(runJson(ended, collector));
  return ended.outcome.exitCode;
}

function explain({ outcome }: EndedRun, arguments_: Arguments): void {
  const notice = noticeOf(arguments_);
  if (outcome.endedBy === "timeout")
    notice(`the command was killed after ${arguments_.get("timeout")} s, its --timeout`);
  if (outcome.endedBy === "out_of_memory") {
    const limit = `${arguments_.get("memory") ?? 256} MiB`;
    notice(`out of memory: the command used more than ${limit} and was killed; --memory MIB gives it more`);
  }
}
