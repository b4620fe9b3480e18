import { SandboxError, type SandboxId } from "@sandpiper/protocol";

export function noSuchProcess(sandbox: SandboxId, process: string): SandboxError {
  return new SandboxError("no_such_process", { message: `sandbox ${sandbox} has no process ${process}` });
}

/** For a sandbox that was restored or rebuilt without its processes. Their ids are not saved, so any unknown id gets this. */
export function processLost(sandbox: SandboxId, process: string): SandboxError {
  return new SandboxError("process_lost", {
    message: `process ${process} is gone: sandbox ${sandbox} was restored or rebuilt without its processes`,
  });
}
