import { type Clock, type InstanceExit, type Provider, SandboxError, type Vm } from "@sandpiper/core";

/** The engine in a project's machine, and the provider that makes containers with it. */
export class ProjectEngine {
  readonly vm: Vm;
  readonly provider: Provider;
  /** Aborted, with the reason, once the machine has ended. */
  readonly gone: AbortSignal;

  constructor(vm: Vm, createProvider: (clock: Clock) => Provider, clock: Clock) {
    const ending = new AbortController();
    this.vm = vm;
    this.gone = ending.signal;
    this.provider = createProvider(clockUntil(ending.signal, clock));
    vm.exited.then((exit) => ending.abort(machineEnded(vm.projectId, exit)));
  }

  /** Nothing that happens in the machine outlives it: whoever waits for its engine is told that it has ended. */
  async while<T>(work: (signal: AbortSignal) => Promise<T>, signal?: AbortSignal): Promise<T> {
    const both = signal === undefined ? this.gone : AbortSignal.any([signal, this.gone]);
    this.gone.throwIfAborted();
    const ended = Promise.withResolvers<never>();
    const onEnd = () => ended.reject(this.gone.reason);
    this.gone.addEventListener("abort", onEnd, { once: true });
    try {
      return await Promise.race([work(both), ended.promise]);
    } catch (thrown) {
      // The engine's last words are those of a connection that broke.
      throw this.gone.aborted ? this.gone.reason : thrown;
    } finally {
      this.gone.removeEventListener("abort", onEnd);
    }
  }
}

/** Nobody goes on looking for an engine whose machine has ended. */
function clockUntil(gone: AbortSignal, clock: Clock): Clock {
  return {
    monotonicMs: () => clock.monotonicMs(),
    now: () => clock.now(),
    schedule(delayMs, callback) {
      if (gone.aborted) return () => {};
      const cancel = clock.schedule(delayMs, () => {
        gone.removeEventListener("abort", cancel);
        callback();
      });
      gone.addEventListener("abort", cancel, { once: true });
      return () => {
        gone.removeEventListener("abort", cancel);
        cancel();
      };
    },
  };
}

function machineEnded(projectId: string, { message }: InstanceExit): SandboxError {
  return new SandboxError("gone", {
    reason: "machine_ended",
    message: `the machine of project ${projectId} has ended: ${message}`,
    hint: "create a new sandbox, which starts a new machine",
  });
}
