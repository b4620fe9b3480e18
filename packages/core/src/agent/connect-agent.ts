import { abortError, type Clock, pause, SandboxError, systemClock } from "@sandpiper/protocol";
import type { ConnectedChannel, Instance } from "../provider.ts";
import { AgentClient, type AgentClientOptions } from "./agent-client.ts";
import { exitError } from "./exit-error.ts";

/** A starting agent usually answers within one or two of these. */
const CONNECT_RETRY_MS = 100;
export const DEFAULT_CONNECT_TIMEOUT_MS = 10_000;
/** After this time without an answer the client opens another channel. */
const CONNECT_ATTEMPT_TIMEOUT_MS = 4_000;

export interface ConnectAgentOptions extends Omit<AgentClientOptions, "label" | "exited"> {
  readonly connectTimeoutMs?: number | undefined;
}

/** Retries until the agent answers, the timeout passes, the instance ends or the caller aborts. */
export async function connectAgent(instance: Instance, options: ConnectAgentOptions = {}): Promise<AgentClient> {
  const clock = options.clock ?? systemClock;
  const timeoutMs = options.connectTimeoutMs ?? DEFAULT_CONNECT_TIMEOUT_MS;
  const label = `sandbox ${instance.id}`;
  const giveUp = new AbortController();
  let lastError: unknown;
  instance.exited.then((exit) => giveUp.abort(exitError(label, exit)));
  const cancel = () => giveUp.abort(abortError(options.signal as AbortSignal, `connecting to ${label}`));
  options.signal?.addEventListener("abort", cancel, { once: true });
  if (options.signal?.aborted) cancel();
  const stopTimer = clock.schedule(timeoutMs, () => giveUp.abort(agentTimeout(label, timeoutMs, lastError)));
  try {
    for (;;) {
      giveUp.signal.throwIfAborted();
      try {
        return await attempt(instance, { ...options, clock, label, exited: instance.exited, signal: giveUp.signal });
      } catch (thrown) {
        if (thrown instanceof SandboxError && thrown.reason === "agent_too_new") throw thrown;
        lastError = thrown;
      }
      await pause(clock, CONNECT_RETRY_MS, giveUp.signal);
    }
  } finally {
    stopTimer();
    options.signal?.removeEventListener("abort", cancel);
  }
}

async function attempt(
  instance: Instance,
  options: AgentClientOptions & { readonly clock: Clock; readonly label: string; readonly signal: AbortSignal },
): Promise<AgentClient> {
  const bound = new AbortController();
  const stopTimer = options.clock.schedule(CONNECT_ATTEMPT_TIMEOUT_MS, () => bound.abort(agentSilent(options.label)));
  const signal = AbortSignal.any([options.signal, bound.signal]);
  try {
    const connected = await connectOrAbort(instance, signal);
    return await AgentClient.open(connected, { ...options, signal });
  } finally {
    stopTimer();
  }
}

/** Does not rely on the provider to honor the signal; closes a channel that comes too late. */
function connectOrAbort(instance: Instance, signal: AbortSignal): Promise<ConnectedChannel> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    if (signal.aborted) abort();
    instance.connect(signal).then((connected) => {
      signal.removeEventListener("abort", abort);
      if (signal.aborted) connected.channel.close();
      else resolve(connected);
    }, reject);
  });
}

function agentTimeout(label: string, timeoutMs: number, cause: unknown): SandboxError {
  const last = cause instanceof Error ? `; the last attempt failed with: ${cause.message}` : "";
  return new SandboxError("agent_timeout", {
    message: `the agent of ${label} did not answer within ${timeoutMs} ms${last}`,
    details: { timeoutMs },
    cause,
  });
}

function agentSilent(label: string): SandboxError {
  return new SandboxError("agent_silent", {
    message: `the channel to ${label} was accepted, but received no data for ${CONNECT_ATTEMPT_TIMEOUT_MS} ms`,
  });
}
