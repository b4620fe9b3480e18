import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { type PullProgress, SandboxError } from "@sandpiper/core";
import { findProgram } from "../host/find-program.ts";
import { SharedPulls } from "../host/shared-pulls.ts";

/** The parts that set-up can provide, by the names of its steps. */
export type Part = "agent" | "qemu" | "kernel" | "image" | "docker-image";

export interface ProvisionOptions {
  readonly signal: AbortSignal;
  readonly onProgress?: ((progress: PullProgress) => void) | undefined;
}

/** Downloads or builds the missing parts. */
export type Provision = (parts: readonly Part[], options: ProvisionOptions) => Promise<void>;

/** The image name in progress reports for parts that belong to no image. */
export const MACHINE_IMAGE = "the image of virtual machines";

const KEPT_LINES = 4;
const setUp = fileURLToPath(new URL("../../../../scripts/setup.mjs", import.meta.url));

/**
 * Runs set-up. Callers that need the same parts share one run, which ends without leftovers when the last of them
 * aborts.
 */
export function provisionBy(script: string): Provision {
  const running = new SharedPulls<void>();
  return (parts, options) =>
    running.join(
      parts.join(" "),
      (signal, report) => runSetUp([script, "--report", ...parts], signal, report),
      options,
    );
}

/** Uses the set-up of this clone. */
export const provision = provisionBy(setUp);

/** Whether set-up can run: it needs Debian's packages and root. */
export function canProvision(): boolean {
  const programs = ["apt-get", "dpkg-deb", "tar"];
  return (
    process.getuid?.() === 0 && existsSync(setUp) && programs.every((program) => findProgram(program) !== undefined)
  );
}

/** A line of set-up's report. */
type Line =
  | (Pick<PullProgress, "status"> & {
      readonly part: string;
      readonly doneBytes?: number;
      readonly totalBytes?: number;
    })
  | { readonly problems: readonly { readonly missing: string; readonly remedy: string }[] }
  | { readonly error: string };

async function runSetUp(
  words: readonly string[],
  signal: AbortSignal,
  report: (progress: PullProgress) => void,
): Promise<void> {
  // Ctrl-C in the terminal must reach this program, which then ends set-up.
  const child = spawn(process.execPath, words, {
    stdio: ["ignore", "pipe", "ignore"],
    detached: true,
  });
  const exited = once(child, "exit");
  const end = () => child.kill("SIGTERM");
  signal.addEventListener("abort", end, { once: true });
  let failure: SandboxError | undefined;
  try {
    for await (const text of createInterface({ input: child.stdout })) {
      const line = JSON.parse(text) as Line;
      if ("part" in line) {
        const { part: layer, status, doneBytes = 0, totalBytes } = line;
        report({ image: MACHINE_IMAGE, layer, status, doneBytes, totalBytes });
      } else {
        failure = "problems" in line ? unmet(line.problems) : failed(line.error);
      }
    }
    const [code] = await exited;
    signal.throwIfAborted();
    if (code !== 0) throw failure ?? failed(`set-up exited with ${code}`);
  } finally {
    signal.removeEventListener("abort", end);
  }
}

function unmet(problems: readonly { readonly missing: string; readonly remedy: string }[]): SandboxError {
  return new SandboxError("set_up_impossible", {
    message: `virtual machines cannot run here yet: ${problems.map(({ missing }) => missing).join(" ")}`,
    hint: problems.map(({ remedy }) => remedy).join("\n"),
  });
}

/** The last line is the remedy; of the others, the first names the step and the last ones the error. */
function failed(text: string): SandboxError {
  const lines = text.trim().split("\n");
  const hint = lines.length > 1 ? lines.pop() : undefined;
  if (lines.length > 1 + KEPT_LINES) lines.splice(1, lines.length - 1 - KEPT_LINES, "  │ ⋮");
  return new SandboxError("set_up_failed", {
    message: `the parts that virtual machines need could not be set up: ${lines.join("\n")}`,
    hint,
  });
}
