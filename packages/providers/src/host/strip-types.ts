import { Worker } from "node:worker_threads";
import type { StripTypes } from "@sandpiper/core";
import { abortError } from "@sandpiper/protocol";
import { Semaphore } from "./semaphore.ts";

/** Generous: 4 MiB, the most that a request carries, take less than a second. */
const TIME_LIMIT_MS = 10_000;
const MAX_WORKERS = 2;

const WORKER = `
const { parentPort, workerData } = require("node:worker_threads");
const { stripTypeScriptTypes } = require("node:module");
try {
  parentPort.postMessage({ javascript: stripTypeScriptTypes(workerData) });
} catch (error) {
  parentPort.postMessage({ problem: String(error.message).split("\\n", 1)[0] });
}`;

type Answer = { readonly javascript: string } | { readonly problem: string };

const workers = new Semaphore(MAX_WORKERS);

/**
 * Replaces types by spaces, as Node.js itself does, so that lines and columns stay. Each call has its own thread: code that
 * breaks or blocks the parser harms no other call.
 */
export const stripTypes: StripTypes = async (code, { signal = new AbortController().signal }) => {
  try {
    const answer = await workers.run(() => askWorker(code, signal), signal);
    return "javascript" in answer ? answer.javascript : reporting(answer.problem);
  } catch (thrown) {
    throw signal.aborted ? abortError(signal, "removing the types of code") : thrown;
  }
};

function askWorker(code: string, signal: AbortSignal): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const worker = new Worker(WORKER, {
    eval: true,
    workerData: code,
    env: {},
    execArgv: ["--disable-warning=ExperimentalWarning"],
    resourceLimits: { maxOldGenerationSizeMb: 256 },
  });
  const timer = setTimeout(() => resolve({ problem: `it takes over ${TIME_LIMIT_MS} ms to parse` }), TIME_LIMIT_MS);
  const abort = () => reject(signal.reason);
  signal.addEventListener("abort", abort, { once: true });
  if (signal.aborted) abort();
  worker.once("message", resolve);
  worker.once("error", ({ message }) => resolve({ problem: message }));
  worker.once("exit", () => resolve({ problem: "its parser has ended" }));
  return promise.finally(async () => {
    clearTimeout(timer);
    signal.removeEventListener("abort", abort);
    await worker.terminate();
  });
}

/** Fails like any program with a syntax error, with the message on standard error. */
function reporting(problem: string): string {
  const message = `SyntaxError: cannot run this code as TypeScript: ${problem}`;
  return `console.error(${JSON.stringify(message)});\nprocess.exitCode = 1;\n`;
}
