import { SandboxError } from "@sandpiper/core";
import { exitCodeOfError } from "../command/exit-code.ts";
import { print } from "../output/print.ts";
import type { OutputCollector } from "./output-collector.ts";
import type { EndedRun } from "./run-visibly.ts";

/** One object with everything about a run; its keys and their order are an interface. */
export function runJson({ outcome, guest }: EndedRun, output: OutputCollector): string {
  const { exitCode, signal, durationMs } = outcome;
  const [stdout, stderr] = [output.text("stdout"), output.text("stderr")];
  return `${JSON.stringify({ exitCode, signal, stdout, stderr, durationMs, sandboxId: guest.id, provider: guest.provider })}\n`;
}

/** Whoever asked for JSON gets it also when there is no run to tell of. */
export async function printErrorJson(thrown: unknown): Promise<number> {
  const { code, reason, message, hint } = SandboxError.from(thrown);
  await print(`${JSON.stringify({ error: { code, reason, message, hint } })}\n`);
  return exitCodeOfError(SandboxError.from(thrown), { endsLikeItsCommand: true });
}
