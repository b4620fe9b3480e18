import { startVitest, type TestModule } from "vitest/node";
import type { Failure, Skip, Tally } from "./tally.ts";

/**
 * Runs Vitest files, given by their paths.
 * @param options.isIsolated runs each file in its own process; a shared one takes half the time
 */
export async function runVitestTests(
  files: readonly string[],
  options: { readonly isIsolated: boolean },
): Promise<Tally> {
  const vitest = await startVitest("test", [], {
    run: true,
    watch: false,
    include: [...files],
    isolate: options.isIsolated,
  });
  const modules = vitest.state.getTestModules();
  const unhandled = vitest.state.getUnhandledErrors().map((error) => `unhandled error: ${messageOf(error)}`);
  const tally = vitestTally(modules);
  await vitest.close();
  return { ...tally, faults: [...tally.faults, ...unhandled] };
}

function vitestTally(modules: readonly TestModule[]): Tally {
  let passed = 0;
  const failures: Failure[] = [];
  const skips: Skip[] = [];
  const faults: string[] = [];
  for (const module of modules) {
    for (const test of module.children.allTests()) {
      const result = test.result();
      if (result.state === "passed") passed++;
      else if (result.state === "failed") {
        const message = result.errors.map(messageOf).join("; ");
        failures.push({ test: `${module.relativeModuleId} > ${test.fullName}`, message });
      } else if (result.state === "skipped") skips.push(skipOf(test.fullName, result.note));
      else faults.push(`${module.relativeModuleId}: "${test.fullName}" did not finish`);
    }
    for (const part of [module, ...module.children.allSuites()]) {
      for (const error of part.errors()) faults.push(`${module.relativeModuleId}: ${error.message}`);
    }
  }
  return { passed, failures, skips, faults };
}

/** The reason is the note of `context.skip("why")`, or the end of the title, `(skipped: why)`. */
export function skipOf(title: string, note: string | undefined): Skip {
  const [, test = title, reason] = /^(.*) \(skipped: (.+)\)$/.exec(title) ?? [];
  return { test, reason: note ?? reason };
}

function messageOf(error: unknown): string {
  return typeof error === "object" && error !== null && "message" in error ? String(error.message) : String(error);
}
